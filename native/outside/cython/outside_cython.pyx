# cython: freethreading_compatible=True
"""The way in that Cython has: a function `with gil`."""

from libc.stdint cimport int64_t
from libc.stdlib cimport calloc, free


cdef extern from "outside.h" nogil:
    ctypedef void (*callback_type)(void *data) noexcept
    ctypedef void (*run_type)(void *what) noexcept
    ctypedef void (*keep_type)(run_type run, void *what) noexcept
    int call_from_threads(
        callback_type callback, void *data, int threads, long calls, int64_t *ns, keep_type keep
    )


# [enter]
cdef void enter(void *callback) noexcept with gil:
    (<object>callback)()
# [/enter]


# [keep]
cdef void keep(run_type run, void *what) noexcept with gil:
    with nogil:
        run(what)
# [/keep]


def call_from_thread(callback, int threads, long calls, bint kept):
    cdef int error
    cdef keep_type around = NULL
    cdef int64_t *ns = <int64_t *>calloc(threads * calls, sizeof(int64_t))
    if ns is NULL:
        raise MemoryError
    if kept:
        around = keep
    try:
        with nogil:
            error = call_from_threads(enter, <void *>callback, threads, calls, ns, around)
        if error:
            raise OSError(error, "no thread")
        return [ns[i] for i in range(threads * calls)]
    finally:
        free(ns)
