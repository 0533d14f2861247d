// The boundary library through pybind11.
#include <pybind11/critical_section.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <cstdint>
#include <exception>
#include <functional>
#include <stdexcept>
#include <string_view>
#include <utility>
#include <vector>

#include "boundary.h"
#include "counter.hpp"

namespace py = pybind11;

// [buffer]
static double buffer_ends(const py::buffer &buffer) {
    const py::buffer_info view = buffer.request();
    if (view.ndim != 1 || !view.item_type_is_equivalent_to<double>() || view.strides[0] != sizeof(double)) {
        throw py::type_error("a contiguous array of doubles is needed");
    }
    if (view.size && reinterpret_cast<std::uintptr_t>(view.ptr) % alignof(double)) {
        throw py::buffer_error("the doubles are not aligned");
    }
    return ends(static_cast<const double *>(view.ptr), static_cast<std::size_t>(view.size));
}
// [/buffer]

// [root]
static double checked_root(double x) {
    double result;
    if (root(x, &result)) {
        throw std::domain_error("no real root"); // pybind11 makes it a ValueError
    }
    return result;
}
// [/root]

// [callback]
// An exception must not travel through the C frame of `apply`: it waits here.
struct Call {
    py::function function;
    std::exception_ptr error;
};

static int call_back(int x, void *context) {
    auto *call = static_cast<Call *>(context);
    try {
        return py::cast<int>(call->function(x));
    } catch (...) {
        call->error = std::current_exception();
        return 0;
    }
}

static int apply_function(py::function function, int x) {
    Call call{std::move(function), nullptr};
    const int result = apply(call_back, &call, x);
    if (call.error) {
        std::rethrow_exception(call.error);
    }
    return result;
}

// The same for a caller that has detached the thread state: each call attaches it, and detaches it again.
static int call_back_attaching(int x, void *context) {
    py::gil_scoped_acquire attached;
    return call_back(x, context);
}

static int apply_detached(py::function function, int x) {
    Call call{std::move(function), nullptr};
    int result;
    {
        py::gil_scoped_release detached;
        result = apply(call_back_attaching, &call, x);
    }
    if (call.error) {
        std::rethrow_exception(call.error);
    }
    return result;
}
// [/callback]

// [locked]
// What is bound for a function of a C++ object that threads may share: without the GIL, it runs in the critical section of the
// Python object. With the GIL there is nothing to lock.
template <typename T, typename... Args, typename Function> static auto locked(Function function) {
#ifdef Py_GIL_DISABLED
    return [function](const py::object &object, Args... args) {
        T *found;
        try {
            found = &object.cast<T &>();
        } catch (const py::cast_error &) {
            throw py::type_error("an object of another type is needed");
        }
        py::scoped_critical_section section(object);
        return std::invoke(function, *found, args...);
    };
#else
    return [function](T &object, Args... args) { return std::invoke(function, object, args...); };
#endif
}
// [/locked]

// [list]
// Without the GIL, pybind11 takes a lock for each item.
static std::int64_t sum_list(const py::list &values) {
    std::vector<int> items;
    try {
        items = values.cast<std::vector<int>>();
    } catch (const py::cast_error &) {
        throw py::type_error("a list of ints is needed");
    }
    return sum_ints(items.data(), items.size());
}
// [/list]

static py::bytes make_bytes(py::ssize_t size, std::uint8_t value) {
    if (size < 0) {
        throw py::value_error("negative size");
    }
    py::bytes result(nullptr, static_cast<std::size_t>(size));
    fill(reinterpret_cast<std::uint8_t *>(PyBytes_AS_STRING(result.ptr())), static_cast<std::size_t>(size), value);
    return result;
}

// [module]
PYBIND11_MODULE(boundary_pybind11, m, py::mod_gil_not_used(), py::multiple_interpreters::per_interpreter_gil()) {
    m.def("noop", &noop);
    m.def("noop_detached", &noop, py::call_guard<py::gil_scoped_release>());
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
    m.def("checksum", [](const py::bytes &data) {
        const std::string_view view(data);
        return checksum(reinterpret_cast<const std::uint8_t *>(view.data()), view.size());
    });
    m.def("make_bytes", &make_bytes, py::arg("size"), py::arg("value") = 0); // takes keywords
    m.def("ends", &buffer_ends);
    m.def("sum_list", &sum_list);
    m.def("sum_sequence", [](const std::vector<int> &values) { return sum_ints(values.data(), values.size()); });
    py::class_<point>(m, "Point")
        .def(py::init([](double x, double y) { return point{x, y}; }))
        .def_property_readonly("x", locked<point>(&point::x))
        .def_property_readonly("y", locked<point>(&point::y));
    m.def("dot", locked<point>(&dot));
    m.def("scale", locked<point, double>([](point &p, double by) { scale(&p, by); }));
    // [none]
    // A pointer accepts None, as a null pointer, unless it says that it does not.
    m.def("scale_pointer", &scale);
    m.def("scale_not_none", &scale, py::arg("p").none(false), py::arg("by"));
    // [/none]
    m.def("callback", [](py::function function) { return function; });
    m.def("apply", &apply_function);
    m.def("apply_detached", &apply_detached);
    m.def("root", &checked_root);
    m.def("work", &work);
    m.def("sleep_ms", &sleep_ms, py::call_guard<py::gil_scoped_release>());
    // [counter]
    py::class_<Counter>(m, "Counter")
        .def(py::init<std::int64_t>())
        // One object may be used by many threads: the critical section of the object is its lock.
        .def("add", locked<Counter, std::int64_t>(&Counter::add))
        .def("add_unlocked", &Counter::add) // loses additions on a free-threaded build
        .def("value", locked<Counter>(&Counter::value))
        .def("fail", &Counter::fail);
    // [/counter]
}
