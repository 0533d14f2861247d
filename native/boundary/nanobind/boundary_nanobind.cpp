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

static double buffer_ends(const Doubles &values) {
    if (values.size() && reinterpret_cast<std::uintptr_t>(values.data()) % alignof(double)) {
        throw nb::buffer_error("the doubles are not aligned");
    }
    return ends(values.data(), values.size());
}
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

// The same for a caller that has detached the thread state: each call attaches it, and detaches it again.
static int call_back_attaching(int x, void *context) {
    nb::gil_scoped_acquire attached;
    return call_back(x, context);
}

static int apply_detached(nb::callable function, int x) {
    Call call{std::move(function), nullptr};
    int result;
    {
        nb::gil_scoped_release detached;
        result = apply(call_back_attaching, &call, x);
    }
    if (call.error) {
        std::rethrow_exception(call.error);
    }
    return result;
}
// [/callback]

// [list]
// A list may change while its items are converted, a tuple may not. With the GIL nanobind 3.1 reads a list in place, and an
// __index__ method that empties it would pull the items away.
static std::int64_t sum_list(const nb::list &values) {
    std::vector<int> items;
    if (!nb::try_cast(nb::tuple(values), items)) {
        throw nb::type_error("a list of ints is needed");
    }
    return sum_ints(items.data(), items.size());
}
// [/list]

static nb::bytes make_bytes(Py_ssize_t size, std::uint8_t value) {
    if (size < 0) {
        throw nb::value_error("negative size");
    }
    nb::object result = nb::steal(PyBytes_FromStringAndSize(nullptr, size));
    if (!result.is_valid()) {
        throw nb::python_error();
    }
    fill(reinterpret_cast<std::uint8_t *>(PyBytes_AsString(result.ptr())), static_cast<std::size_t>(size), value);
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
    m.def("make_bytes", &make_bytes, nb::arg("size"), nb::arg("value") = 0); // takes keywords
    m.def("ends", &buffer_ends);
    m.def("sum_list", &sum_list);
    m.def("sum_sequence", [](const std::vector<int> &values) { return sum_ints(values.data(), values.size()); });
    nb::class_<point>(m, "Point")
        .def(nb::init<double, double>())
        .def_prop_ro("x", [](const point &p) { return p.x; }, nb::lock_self())
        .def_prop_ro("y", [](const point &p) { return p.y; }, nb::lock_self());
    // Locked without the GIL; without a name, or nanobind would take keywords, and a longer way.
    m.def("dot", &dot, nb::arg().lock());
    m.def("scale", &scale, nb::arg().lock(), nb::arg());
    m.def("callback", [](nb::callable function) { return function; });
    m.def("apply", &apply_function);
    m.def("apply_detached", &apply_detached);
    m.def("root", &checked_root);
    m.def("work", &work);
    m.def("sleep_ms", &sleep_ms, nb::call_guard<nb::gil_scoped_release>());
    // [counter]
    nb::class_<Counter>(m, "Counter")
        .def(nb::init<std::int64_t>())
        // One object may be used by many threads: lock_self is the critical section of the object. With the GIL it is nothing.
        .def("add", &Counter::add, nb::lock_self())
        .def("add_unlocked", &Counter::add) // loses additions on a free-threaded build
        .def("value", &Counter::value, nb::lock_self())
        .def("fail", &Counter::fail);
    // [/counter]
}
