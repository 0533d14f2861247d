#include <pybind11/pybind11.h>

#include <mutex>

#include "../inside.hpp"

namespace py = pybind11;

// [lock]
std::mutex m;

void report(const py::function &write) {
    std::lock_guard guard(m);  // thread A has m; later B, which is attached, waits here
    Inside inside;
    write();  // A runs Python, which needs B to let go: of the GIL, or for a collection
}  // A waits for B, B for m: for ever
// [/lock]

PYBIND11_MODULE(locked, module, py::mod_gil_not_used()) {
    module.def("report", report);
    module.def("most_inside", [] { return most_inside.load(); });
}
