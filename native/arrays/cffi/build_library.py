"""Run by setuptools: generates C from the declarations and compiles it with the library's own source."""

from cffi import FFI

ffi = FFI()
ffi.cdef("""
    double ends(const void *values, size_t n);
    double weigh(const void *values, size_t n);
    uintptr_t where(const void *values);
    double *make(size_t n);
    void give_back(void *values);
    long held(void);
""")
ffi.set_source(
    "arrays_cffi._library",
    '#include "arrays.h"',
    sources=["../library/arrays.c"],
    include_dirs=["../library"],
    extra_compile_args=["-O3", "-fvisibility=hidden"],
)
