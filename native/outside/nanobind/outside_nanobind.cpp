// How nanobind attaches: gil_scoped_acquire.
#include <nanobind/nanobind.h>
#include <nanobind/stl/vector.h>

#include <system_error>

#include "outside.h"

namespace nb = nanobind;

// [enter]
static void enter(void *callback) {
    nb::gil_scoped_acquire attached;
    nb::handle(static_cast<PyObject *>(callback))();
}
// [/enter]

// [keep]
static void keep(run_type run, void *what) {
    nb::gil_scoped_acquire attached;
    nb::gil_scoped_release detached;
    run(what);
}
// [/keep]

static std::vector<std::int64_t> call_from_thread(nb::callable callback, int threads, long calls, bool kept) {
    std::vector<std::int64_t> ns(threads * calls);
    nb::gil_scoped_release detached;
    if (int error = call_from_threads(enter, callback.ptr(), threads, calls, ns.data(), kept ? keep : nullptr)) {
        throw std::system_error(error, std::generic_category());
    }
    return ns;
}

// [caught]
static void enter_and_catch(void *callback) {
    nb::gil_scoped_acquire attached;
    try {
        nb::handle(static_cast<PyObject *>(callback))();
    } catch (nb::python_error &error) {
        error.discard_as_unraisable("a callback");
    }
}
// [/caught]

static void call_caught(nb::callable callback) {
    std::int64_t ns;
    nb::gil_scoped_release detached;
    if (int error = call_from_threads(enter_and_catch, callback.ptr(), 1, 1, &ns, nullptr)) {
        throw std::system_error(error, std::generic_category());
    }
}

NB_MODULE(outside_nanobind, m) {
    m.def("call_from_thread", &call_from_thread);
    m.def("call_caught", &call_caught);
}
