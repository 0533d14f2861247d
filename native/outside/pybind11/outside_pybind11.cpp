// How pybind11 attaches: gil_scoped_acquire.
#include <pybind11/critical_section.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <atomic>
#include <chrono>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>

#include "outside.h"

namespace py = pybind11;

// [enter]
static void enter(void *callback) {
    py::gil_scoped_acquire attached;
    py::handle(static_cast<PyObject *>(callback))();
}
// [/enter]

// [keep]
static void keep(run_type run, void *what) {
    py::gil_scoped_acquire attached;
    py::gil_scoped_release detached;
    run(what);
}
// [/keep]

static std::vector<std::int64_t> call_from_thread(py::function callback, int threads, long calls, bool kept) {
    std::vector<std::int64_t> ns(threads * calls);
    py::gil_scoped_release detached;
    if (int error = call_from_threads(enter, callback.ptr(), threads, calls, ns.data(), kept ? keep : nullptr)) {
        throw std::system_error(error, std::generic_category());
    }
    return ns;
}

// [caught]
static void enter_and_catch(void *callback) {
    py::gil_scoped_acquire attached;
    try {
        py::handle(static_cast<PyObject *>(callback))();
    } catch (py::error_already_set &error) {
        error.discard_as_unraisable("a callback");
    }
}
// [/caught]

static void call_caught(py::function callback) {
    std::int64_t ns;
    py::gil_scoped_release detached;
    if (int error = call_from_threads(enter_and_catch, callback.ptr(), 1, 1, &ns, nullptr)) {
        throw std::system_error(error, std::generic_category());
    }
}

static std::mutex mutex;
static std::atomic<bool> held, within;

static void wait_for(std::atomic<bool> &flag) {
    py::gil_scoped_release detached;
    while (!flag) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
}

// [mutex_first]
static void mutex_first(py::object one) {
    std::lock_guard<std::mutex> lock(mutex);
    held = true;
    wait_for(within);
    py::scoped_critical_section section(one);
}
// [/mutex_first]

// [section_first]
static void section_first(py::object one, bool detach) {
    wait_for(held);
    py::scoped_critical_section section(one);
    within = true;
    std::this_thread::sleep_for(std::chrono::milliseconds(30)); // until the other one waits for the section
    if (detach) {
        py::gil_scoped_release detached;
        std::lock_guard<std::mutex> lock(mutex);
    } else {
        std::lock_guard<std::mutex> lock(mutex);
    }
}
// [/section_first]

// [count]
static void count(py::dict one, long times, bool exclusive) {
    for (; times > 0; times--) {
        std::optional<py::scoped_critical_section> section;
        if (exclusive) {
            section.emplace(one);
        }
        long seen = one["n"].cast<long>();
        std::this_thread::yield(); // the other thread may come in between, if it can
        one["n"] = seen + 1;
    }
}
// [/count]

PYBIND11_MODULE(outside_pybind11, m, py::mod_gil_not_used()) {
    m.def("call_from_thread", &call_from_thread);
    m.def("call_caught", &call_caught);
    m.def("mutex_first", &mutex_first);
    m.def("section_first", &section_first);
    m.def("count", &count);
}
