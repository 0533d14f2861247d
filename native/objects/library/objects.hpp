// The C++ behind the bindings of native/objects. Nothing here locks: an object belongs to one thread.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

enum class Color { red, green, blue };

// [shape]
class Shape {
public:
    explicit Shape(double side) : side(side) {}
    virtual ~Shape() = default;
    virtual double area() const; // Python may override it

    double side;
    std::shared_ptr<Shape> inner;
};
// [/shape]

double area_of(const Shape &shape);                          // asks the shape
std::unique_ptr<Shape> make_shape(double side);              // gives a shape away
double take_shape(std::unique_ptr<Shape> shape);             // keeps it no longer than the call

double scaled(double x, double by = 2, double plus = 0);
const char *kind(std::int64_t x);
const char *kind(double x);
Color next_color(Color color);
double total(const std::vector<double> &values);
double total_by_name(const std::map<std::string, double> &values);

// A vector that Python sees as it is, beside those that are copied.
struct Doubles : std::vector<double> {
    using vector::vector;
};
void grow(std::vector<double> &values);                      // adds a number to it

// [bell]
// Stores what Python gives it. It may be asked to ring by whoever has it.
struct Bell {
    std::function<double(double)> listener;
    double ring(double x) const;
};
// The same; the garbage collector is told what it stores.
struct TracedBell : Bell {};
// [/bell]
