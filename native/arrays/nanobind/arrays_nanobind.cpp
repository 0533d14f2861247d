// Arrays in and out through nanobind: it asks an object for DLPack first, and for a buffer if it has none.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <memory>
#include <new>

#include "arrays.h"

namespace nb = nanobind;

// [in]
using Doubles = nb::ndarray<const double, nb::c_contig, nb::device::cpu>;

static double call_ends(const Doubles &x) {
    return ends(x.data(), x.size());
}
// [/in]

static nb::tuple look(const Doubles &x) {
    return nb::make_tuple(where(x.data()), weigh(x.data(), x.size()));
}

// [out]
template <typename Framework> auto make_array(size_t n) {
    std::unique_ptr<double, decltype(&give_back)> values(make(n), &give_back);
    if (!values)
        throw std::bad_alloc();
    nb::capsule owner(values.get(), [](void *p) noexcept { give_back(p); });
    return nb::ndarray<Framework, double, nb::ndim<1>>(values.release(), {n}, owner);
}
// [/out]

template <typename... Extra> void bind(nb::module_ m, const Extra &...extra) {
    m.def("ends", &call_ends, extra...);
    m.def("look", &look, extra...);
    m.def("held", &held);
}

NB_MODULE(arrays_nanobind, m) {
    bind(m);
    m.def("make", &make_array<nb::numpy>);
    m.def("make_dlpack", &make_array<nb::array_api>);
    bind(m.def_submodule("noconvert"), nb::arg().noconvert());
}
