"""Run by setuptools: generates C from the declarations and compiles it with the library's own sources."""

import sys

from cffi import FFI

ffi = FFI()
# [declare]
ffi.cdef("""
    void noop(void);
    int answer(void);
    int add_one(int x);
    int64_t add_five(int a, int b, int c, int d, int e);
    double halve(double x);
    size_t code_points(const char *utf8, size_t bytes);
    const char *motto(size_t *bytes);
    uint32_t checksum(const uint8_t *data, size_t bytes);
    void fill(uint8_t *data, size_t bytes, uint8_t value);
    double ends(const double *values, size_t n);
    int64_t sum_ints(const int *values, size_t n);
    typedef struct { double x, y; } point;
    double dot(point p);
    void scale(point *p, double by);
    typedef int (*callback)(int x, void *context);
    int apply(callback function, void *context, int x);
    extern "Python" int call_back(int x, void *context);
    int root(double x, double *result);
    int work(int iterations);
    void sleep_ms(int milliseconds);
    typedef struct counter_handle counter_handle;
    counter_handle *counter_new(int64_t start);
    int64_t counter_add(counter_handle *counter, int64_t n);
    void counter_delete(counter_handle *counter);
    int aligned(const double *values);
""")
ffi.set_source(
    "boundary_cffi_api._library",
    """
    #include "boundary.h"
    static int aligned(const double *values) { return (uintptr_t)values % _Alignof(double) == 0; }
    """,
    sources=["../library/boundary.c", "../library/counter.cpp"],
    include_dirs=["../library"],
    libraries=["m", "c++" if sys.platform == "darwin" else "stdc++"],
    extra_compile_args=["-O3", "-fvisibility=hidden"],
)
# [/declare]
