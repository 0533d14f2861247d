#include <nanobind/nanobind.h>

#include "../inside.hpp"

namespace nb = nanobind;

// [lock]
nb::ft_mutex m;

void report(const nb::callable &write) {
    nb::ft_lock_guard guard(m);  // a PyMutex without the GIL; with it nothing at all
    Inside inside;
    write();
}
// [/lock]

NB_MODULE(locked, module) {
    module.def("report", report);
    module.def("most_inside", [] { return most_inside.load(); });
}
