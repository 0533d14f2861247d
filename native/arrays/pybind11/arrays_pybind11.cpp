// Arrays in and out through pybind11: py::array_t is an array of NumPy, whatever was passed.
#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>

#include <memory>
#include <new>

#include "arrays.h"

namespace py = pybind11;

// [in]
using Doubles = py::array_t<double, py::array::c_style | py::array::forcecast>;

static double call_ends(const Doubles &x) {
    return ends(x.data(), static_cast<size_t>(x.size()));
}
// [/in]

static py::tuple look(const Doubles &x) {
    return py::make_tuple(where(x.data()), weigh(x.data(), static_cast<size_t>(x.size())));
}

// [out]
static py::array_t<double> make_array(py::ssize_t n) {
    std::unique_ptr<double, decltype(&give_back)> values(make(static_cast<size_t>(n)), &give_back);
    if (!values)
        throw std::bad_alloc();
    py::capsule owner(values.get(), give_back);
    return py::array_t<double>(n, values.release(), owner);
}
// [/out]

template <typename... Extra> void bind(py::module_ m, const Extra &...extra) {
    m.def("ends", &call_ends, extra...);
    m.def("look", &look, extra...);
    m.def("held", &held);
}

PYBIND11_MODULE(arrays_pybind11, m, py::mod_gil_not_used()) {
    bind(m);
    m.def("make", &make_array);
    bind(m.def_submodule("noconvert"), py::arg().noconvert());
}
