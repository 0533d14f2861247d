// The objects through nanobind.
#include <nanobind/nanobind.h>
#include <nanobind/stl/bind_vector.h>
#include <nanobind/stl/function.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>
#include <nanobind/trampoline.h>

#include "objects.hpp"

namespace nb = nanobind;
using namespace nb::literals;

// [virtual]
struct PyShape : Shape {
    NB_TRAMPOLINE(Shape);
    double area() const override { NB_OVERRIDE(area); }
};
// [/virtual]

// [cycle]
static int bell_traverse(PyObject *self, visitproc visit, void *arg) {
    Py_VISIT(Py_TYPE(self));
    if (nb::inst_ready(self)) {
        nb::handle listener = nb::find(nb::inst_ptr<TracedBell>(self)->listener);
        Py_VISIT(listener.ptr());
    }
    return 0;
}

static int bell_clear(PyObject *self) {
    nb::inst_ptr<TracedBell>(self)->listener = nullptr;
    return 0;
}

static PyType_Slot bell_slots[] = {
    {Py_tp_traverse, reinterpret_cast<void *>(bell_traverse)},
    {Py_tp_clear, reinterpret_cast<void *>(bell_clear)},
    {0, nullptr},
};
// [/cycle]

NB_MODULE(objects_nanobind, m) {
    m.def("scaled", &scaled, "x"_a, "by"_a = 2.0, "plus"_a = 0.0);
    m.def("kind", nb::overload_cast<std::int64_t>(&kind));
    m.def("kind", nb::overload_cast<double>(&kind));
    nb::enum_<Color>(m, "Color")
        .value("red", Color::red)
        .value("green", Color::green)
        .value("blue", Color::blue);
    m.def("next_color", &next_color);
    m.def("total", &total);
    m.def("total_by_name", &total_by_name);
    m.def("grow_copy", [](std::vector<double> values) { grow(values); });
    // [opaque]
    nb::bind_vector<Doubles>(m, "Doubles");
    m.def("total_of", [](const Doubles &values) { return total(values); });
    m.def("grow", [](Doubles &values) { grow(values); });
    // [/opaque]
    // [shape]
    nb::class_<Shape, PyShape>(m, "Shape")
        .def(nb::init<double>())
        .def("area", &Shape::area)
        .def_rw("side", &Shape::side)
        .def_rw("inner", &Shape::inner);
    m.def("area_of", &area_of);
    // [/shape]
    m.def("make_shape", &make_shape);
    m.def("take_shape", &take_shape);
    nb::class_<Bell>(m, "Bell")
        .def(nb::init<>())
        .def_rw("listener", &Bell::listener)
        .def("ring", &Bell::ring);
    nb::class_<TracedBell>(m, "TracedBell", nb::type_slots(bell_slots))
        .def(nb::init<>())
        .def_rw("listener", &TracedBell::listener)
        .def("ring", &TracedBell::ring);
}
