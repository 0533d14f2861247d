#include <pybind11/pybind11.h>

#include <mutex>

#include "../inside.hpp"

namespace py = pybind11;

// [lock]
std::mutex m;

void report(const py::function &write) {
    std::unique_lock guard(m, std::defer_lock);
    {
        py::gil_scoped_release detached;  // whoever waits for m has nothing that its holder needs
        guard.lock();
    }
    Inside inside;
    write();
}
// [/lock]

PYBIND11_MODULE(locked, module, py::mod_gil_not_used()) {
    module.def("report", report);
    module.def("most_inside", [] { return most_inside.load(); });
}
