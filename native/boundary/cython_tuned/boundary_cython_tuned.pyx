# cython: freethreading_compatible=True, binding=False
"""Cython's binding as an author who counts nanoseconds writes it, where that differs from what the manual shows first.

All else is taken from the neighbour.
"""

import boundary_cython

cimport cython
from cython.operator cimport dereference
from libc.stdint cimport int64_t
from libcpp.optional cimport optional


cdef extern from "boundary.h":
    void c_noop "noop"()
    int c_add_one "add_one"(int x)
    # The library hands on what its callback returns, -1 too: so an exception may just stay set until the call is over.
    ctypedef int (*callback_t "callback")(int x, void *context) except? -1
    int c_apply "apply"(callback_t function, void *context, int x) except? -1
    int c_apply_detached "apply"(callback_t function, void *context, int x) except? -1 nogil


# Built-in functions (binding=False), without the attributes of one that is written in Python.
def noop():
    c_noop()


def add_one(int x, /):
    return c_add_one(x)


# No object is made for a call.
cdef int call_back(int x, void *context) except? -1:
    return (<object>context)(x)


def apply(function, int x, /):
    return c_apply(call_back, <void *>function, x)


cdef int call_back_attaching(int x, void *context) except? -1 with gil:
    return (<object>context)(x)


def apply_detached(function, int x, /):
    cdef void *context = <void *>function
    cdef int result
    with nogil:
        result = c_apply_detached(call_back_attaching, context, x)
    return result


cdef extern from "counter.hpp":
    cdef cppclass CppCounter "Counter":
        CppCounter(int64_t start)
        int64_t add(int64_t n)
        int64_t value()


# The C++ object lies inside the Python object, and not in a block of its own; freed objects are used again (without the GIL
# Cython switches that off).
@cython.final
@cython.freelist(8)
cdef class Counter:
    cdef optional[CppCounter] counter

    def __cinit__(self, int64_t start, /):
        self.counter.emplace(start)

    def add(self, int64_t n, /):
        cdef int64_t value
        with cython.critical_section(self):
            value = dereference(self.counter).add(n)
        return value

    def add_unlocked(self, int64_t n, /):  # loses additions on a free-threaded build
        return dereference(self.counter).add(n)

    def value(self):
        cdef int64_t value
        with cython.critical_section(self):
            value = dereference(self.counter).value()
        return value


for name, thing in vars(boundary_cython).items():
    globals().setdefault(name, thing)
