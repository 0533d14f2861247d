// The boundary library through nanobind.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <exception>
#include <stdexcept>
#include <string_view>
#include <utility>
#include <vector>

#include "boundary.h"
#include "counter.hpp"

namespace nb = nanobind;

// [buffer]
using Doubles = nb::ndarray<const double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

static double buffer_ends(const Doubles &values) { return ends(values.data(), values.size()); }
// [/buffer]

// [root]
static double checked_root(double x) {
    double result;
    if (root(x, &result)) {
        throw std::domain_error("no real root"); // nanobind makes it a ValueError
    }
    return result;
}
// [/root]

// [callback]
// An exception must not travel through the C frame of `apply`: it waits here.
struct Call {
    nb::callable function;
    std::exception_ptr error;
};

static int call_back(int x, void *context) {
    auto *call = static_cast<Call *>(context);
    try {
        return nb::cast<int>(call->function(x));
    } catch (...) {
        call->error = std::current_exception();
        return 0;
    }
}

static int apply_function(nb::callable function, int x) {
    Call call{std::move(function), nullptr};
    const int result = apply(call_back, &call, x);
    if (call.error) {
        std::rethrow_exception(call.error);
    }
    return result;
}
// [/callback]

static nb::bytes make_bytes(Py_ssize_t size, std::uint8_t value) {
    if (size < 0) {
        throw nb::value_error("negative size");
    }
    nb::object result = nb::steal(PyBytes_FromStringAndSize(nullptr, size));
    if (!result.is_valid()) {
        throw nb::python_error();
    }
    fill(reinterpret_cast<std::uint8_t *>(PyBytes_AS_STRING(result.ptr())), static_cast<std::size_t>(size), value);
    return nb::borrow<nb::bytes>(result);
}

// [module]
NB_MODULE(boundary_nanobind, m) {
    m.def("noop", &noop);
    m.def("noop_detached", &noop, nb::call_guard<nb::gil_scoped_release>());
    m.def("answer", &answer);
    m.def("add_one", &add_one);
    m.def("add_five", &add_five);
    m.def("halve", &halve);
    // [/module]
    m.def("code_points", [](std::string_view text) { return code_points(text.data(), text.size()); });
    m.def("motto", [] {
        std::size_t size;
        const char *text = motto(&size);
        return std::string_view(text, size);
    });
    m.def("checksum", [](nb::bytes data) { return checksum(static_cast<const std::uint8_t *>(data.data()), data.size()); });
    m.def("make_bytes", &make_bytes);
    m.def("ends", &buffer_ends);
    m.def("sum_list", [](const std::vector<int> &values) { return sum_ints(values.data(), values.size()); });
    nb::class_<point>(m, "Point")
        .def("__init__", [](point *self, double x, double y) { new (self) point{x, y}; })
        .def_rw("x", &point::x)
        .def_rw("y", &point::y);
    m.def("dot", &dot);
    m.def("scale", &scale);
    m.def("callback", [](nb::callable function) { return function; });
    m.def("apply", &apply_function);
    m.def("root", &checked_root);
    m.def("work", &work);
    m.def("sleep_ms", &sleep_ms, nb::call_guard<nb::gil_scoped_release>());
    // [counter]
    nb::class_<Counter>(m, "Counter")
        .def(nb::init<std::int64_t>())
        .def("add", &Counter::add)
        .def("value", &Counter::value);
    // [/counter]
}
