# cython: freethreading_compatible=True, boundscheck=False, wraparound=False
"""Arrays in and out through Cython's typed memoryviews. The number of dimensions is part of their type."""

from cython cimport view
from libc.stdint cimport uintptr_t

import numpy


cdef extern from "arrays.h":
    double c_ends "ends"(const void *values, size_t n)
    double weigh(const void *values, size_t n)
    uintptr_t where(const void *values)
    double *c_make "make"(size_t n)
    void give_back(void *values)
    long c_held "held"()


# [in]
def ends(const double[::1] x, /):
    return c_ends(&x[0], x.shape[0]) if x.shape[0] else 0.0


def ends_2d(const double[:, ::1] x, /):
    n = x.shape[0] * x.shape[1]
    return c_ends(&x[0, 0], n) if n else 0.0
# [/in]


def look(const double[::1] x, /):
    return where(&x[0]), weigh(&x[0], x.shape[0])


def look_2d(const double[:, ::1] x, /):
    return where(&x[0, 0]), weigh(&x[0, 0], x.shape[0] * x.shape[1])


# [out]
def make(size_t n, /):
    cdef double *values = c_make(n)
    if values == NULL:
        raise MemoryError
    cdef view.array owner = <double[:n]> values
    owner.callback_free_data = give_back
    return numpy.asarray(owner)
# [/out]


def held():
    return c_held()
