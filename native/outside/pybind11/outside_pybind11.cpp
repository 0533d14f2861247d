// How pybind11 attaches: gil_scoped_acquire.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <system_error>

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

PYBIND11_MODULE(outside_pybind11, m, py::mod_gil_not_used()) { m.def("call_from_thread", &call_from_thread); }
