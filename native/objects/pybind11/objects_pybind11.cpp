// The objects through pybind11.
#include <pybind11/functional.h>
#include <pybind11/native_enum.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>
#include <pybind11/stl_bind.h>

#include "objects.hpp"

namespace py = pybind11;
using namespace py::literals;

// [virtual]
struct PyShape : Shape, py::trampoline_self_life_support {
    using Shape::Shape;
    double area() const override { PYBIND11_OVERRIDE(double, Shape, area, ); }
};
// [/virtual]

// [cycle]
// pybind11 has no way to ask a std::function for its Python object: what is traced stores the object itself.
struct ObjectBell {
    py::object listener = py::none();
    double ring(double x) const { return listener.is_none() ? x : listener(x).cast<double>(); }
};

static void trace(PyHeapTypeObject *heap_type) {
    PyTypeObject *type = &heap_type->ht_type;
    type->tp_flags |= Py_TPFLAGS_HAVE_GC;
    type->tp_traverse = [](PyObject *self, visitproc visit, void *arg) {
        Py_VISIT(Py_TYPE(self));
        if (py::detail::is_holder_constructed(self)) {
            Py_VISIT(py::cast<ObjectBell &>(py::handle(self)).listener.ptr());
        }
        return 0;
    };
    type->tp_clear = [](PyObject *self) {
        if (py::detail::is_holder_constructed(self)) {
            py::cast<ObjectBell &>(py::handle(self)).listener = py::none();
        }
        return 0;
    };
}
// [/cycle]

PYBIND11_MODULE(objects_pybind11, m, py::mod_gil_not_used()) {
    m.def("scaled", &scaled, "x"_a, "by"_a = 2.0, "plus"_a = 0.0);
    m.def("kind", py::overload_cast<std::int64_t>(&kind));
    m.def("kind", py::overload_cast<double>(&kind));
    py::native_enum<Color>(m, "Color", "enum.Enum")
        .value("red", Color::red)
        .value("green", Color::green)
        .value("blue", Color::blue)
        .finalize();
    m.def("next_color", &next_color);
    m.def("total", &total);
    m.def("total_by_name", &total_by_name);
    m.def("grow_copy", [](std::vector<double> values) { grow(values); });
    // [opaque]
    py::bind_vector<Doubles>(m, "Doubles");
    m.def("total_of", [](const Doubles &values) { return total(values); });
    m.def("grow", [](Doubles &values) { grow(values); });
    // [/opaque]
    // [shape]
    py::class_<Shape, PyShape, py::smart_holder>(m, "Shape")
        .def(py::init<double>())
        .def("area", &Shape::area)
        .def_readwrite("side", &Shape::side)
        .def_readwrite("inner", &Shape::inner);
    m.def("area_of", &area_of);
    // [/shape]
    m.def("make_shape", &make_shape);
    m.def("take_shape", &take_shape);
    py::class_<Bell>(m, "Bell")
        .def(py::init<>())
        .def_readwrite("listener", &Bell::listener)
        .def("ring", &Bell::ring);
    py::class_<ObjectBell>(m, "TracedBell", py::custom_type_setup(trace))
        .def(py::init<>())
        .def_readwrite("listener", &ObjectBell::listener)
        .def("ring", &ObjectBell::ring);
}
