"""Run by setuptools: generates C from the declarations and compiles it with the library's own source."""

from cffi import FFI

ffi = FFI()
ffi.cdef("""
    extern "Python" void enter(void *data);
    extern "Python" void keep(void (*run)(void *), void *what);
    int call_from_threads(void (*callback)(void *), void *data, int threads, long calls, int64_t *ns,
                          void (*keep)(void (*)(void *), void *));
""")
ffi.set_source(
    "outside_cffi._library",
    '#include "outside.h"',
    sources=["../library/outside.c"],
    include_dirs=["../library"],
    extra_compile_args=["-O3", "-fvisibility=hidden"],
)
