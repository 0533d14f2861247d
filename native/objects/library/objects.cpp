#include "objects.hpp"

#include <numeric>

double Shape::area() const { return side * side; }

double area_of(const Shape &shape) { return shape.area(); }

std::unique_ptr<Shape> make_shape(double side) { return std::make_unique<Shape>(side); }

double take_shape(std::unique_ptr<Shape> shape) { return shape->area(); }

double scaled(double x, double by, double plus) { return x * by + plus; }

const char *kind(std::int64_t) { return "int"; }

const char *kind(double) { return "float"; }

Color next_color(Color color) { return static_cast<Color>((static_cast<int>(color) + 1) % 3); }

double total(const std::vector<double> &values) { return std::accumulate(values.begin(), values.end(), 0.0); }

double total_by_name(const std::map<std::string, double> &values) {
    double sum = 0;
    for (const auto &[name, value] : values) {
        sum += value;
    }
    return sum;
}

void grow(std::vector<double> &values) { values.push_back(1); }

double Bell::ring(double x) const { return listener ? listener(x) : x; }
