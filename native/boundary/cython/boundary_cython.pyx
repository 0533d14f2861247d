# cython: freethreading_compatible=True
"""The boundary library through Cython."""

cimport cython
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from libc.stdint cimport int64_t, uint8_t, uint32_t, uintptr_t
from libc.stdlib cimport free, malloc


# [declare]
cdef extern from "boundary.h" nogil:
    void c_noop "noop"()
    int c_answer "answer"()
    int c_add_one "add_one"(int x)
    int64_t c_add_five "add_five"(int a, int b, int c, int d, int e)
    double c_halve "halve"(double x)
    # [/declare]
    size_t c_code_points "code_points"(const char *utf8, size_t bytes)
    const char *c_motto "motto"(size_t *bytes)
    uint32_t c_checksum "checksum"(const uint8_t *data, size_t bytes)
    void c_fill "fill"(uint8_t *data, size_t bytes, uint8_t value)
    double c_ends "ends"(const double *values, size_t n)
    int64_t c_sum_ints "sum_ints"(const int *values, size_t n)
    ctypedef struct point:
        double x, y
    double c_dot "dot"(point p)
    void c_scale "scale"(point *p, double by)
    ctypedef int (*detached_callback "callback")(int x, void *context) noexcept
    int c_apply_detached "apply"(detached_callback function, void *context, int x)
    int c_root "root"(double x, double *result)
    int c_work "work"(int iterations)
    void c_sleep_ms "sleep_ms"(int milliseconds)

# The same function for callers that keep the thread state attached.
cdef extern from "boundary.h":
    ctypedef int (*attached_callback "callback")(int x, void *context) noexcept
    int c_apply "apply"(attached_callback function, void *context, int x)

cdef extern from "Python.h":
    const char *PyUnicode_AsUTF8AndSize(object text, Py_ssize_t *size) except NULL


# [call]
def noop():
    c_noop()


def noop_detached():
    with nogil:
        c_noop()


def answer():
    return c_answer()


def add_one(int x, /):
    return c_add_one(x)


# [/call]


def add_five(int a, int b, int c, int d, int e, /):
    return c_add_five(a, b, c, d, e)


def halve(double x, /):
    return c_halve(x)


# [text]
def code_points(str text not None, /):
    cdef Py_ssize_t size
    cdef const char *utf8 = PyUnicode_AsUTF8AndSize(text, &size)
    return c_code_points(utf8, size)


# [/text]


def motto():
    cdef size_t size
    cdef const char *text = c_motto(&size)
    return text[:size].decode()


def checksum(bytes data not None, /):
    return c_checksum(<const uint8_t *>PyBytes_AS_STRING(data), len(data))


def make_bytes(Py_ssize_t size, uint8_t value=0):  # takes keywords
    if size < 0:
        raise ValueError("negative size")
    result = PyBytes_FromStringAndSize(NULL, size)
    c_fill(<uint8_t *>PyBytes_AS_STRING(result), size, value)
    return result


# [buffer]
def ends(const double[::1] values not None, /):
    if not values.shape[0]:
        return 0.0
    if <uintptr_t>&values[0] % sizeof(double):
        raise BufferError("the doubles are not aligned")
    return c_ends(&values[0], values.shape[0])


# [/buffer]


# [list]
def sum_list(list values not None, /):
    cdef Py_ssize_t n = 0
    cdef int *items
    # One lock for the whole list, instead of one access after the other. It is let go of while Python code runs.
    with cython.critical_section(values):
        items = <int *>malloc(max(len(values), 1) * sizeof(int))
        if items == NULL:
            raise MemoryError
        size = len(values)
        try:
            for value in values:
                if n == size:
                    raise RuntimeError("the list changed its size")
                items[n] = value
                n += 1
            result = c_sum_ints(items, n)
        finally:
            free(items)
    return result


# [/list]


def sum_sequence(values not None, /):
    cdef Py_ssize_t n = 0
    cdef tuple own = tuple(values)  # ours alone
    cdef int *items = <int *>malloc(max(len(own), 1) * sizeof(int))
    if items == NULL:
        raise MemoryError
    try:
        for value in own:
            items[n] = value
            n += 1
        return c_sum_ints(items, n)
    finally:
        free(items)


# [point]
cdef class Point:
    cdef point value

    def __cinit__(self, double x, double y, /):
        self.value = point(x, y)

    @property
    def x(self):
        cdef double x
        with cython.critical_section(self):
            x = self.value.x
        return x

    @property
    def y(self):
        cdef double y
        with cython.critical_section(self):
            y = self.value.y
        return y


def dot(Point p not None, /):
    cdef point value
    with cython.critical_section(p):  # both numbers of one moment
        value = p.value
    return c_dot(value)


def scale(Point p not None, double by, /):
    with cython.critical_section(p):
        c_scale(&p.value, by)


# [/point]


# [callback]
cdef class Call:
    cdef object function
    cdef object error


cdef int call_back(int x, void *context) noexcept:
    cdef Call call = <Call>context
    try:
        return call.function(x)
    except BaseException as error:
        call.error = error
        return 0


def callback(function, /):
    return function


def apply(function, int x, /):
    cdef Call call = Call.__new__(Call)
    call.function = function
    cdef int result = c_apply(call_back, <void *>call, x)
    if call.error is not None:
        raise call.error
    return result


# The same for a caller that has detached the thread state: each call attaches it, and detaches it again.
cdef int call_back_attaching(int x, void *context) noexcept with gil:
    return call_back(x, context)


def apply_detached(function, int x, /):
    cdef Call call = Call.__new__(Call)
    call.function = function
    cdef void *context = <void *>call
    cdef int result
    with nogil:
        result = c_apply_detached(call_back_attaching, context, x)
    if call.error is not None:
        raise call.error
    return result


# [/callback]


# [root]
def root(double x, /):
    cdef double result
    if c_root(x, &result):
        raise ValueError("no real root")
    return result


# [/root]


def work(int iterations, /):
    return c_work(iterations)


def sleep_ms(int milliseconds, /):
    with nogil:
        c_sleep_ms(milliseconds)


# [counter]
cdef extern from "counter.hpp":
    cdef cppclass CppCounter "Counter":
        CppCounter(int64_t start) except +
        int64_t add(int64_t n)
        int64_t value()
        int64_t fail(int depth) except +


cdef class Counter:
    cdef CppCounter *counter

    def __cinit__(self, int64_t start, /):
        self.counter = new CppCounter(start)

    def __dealloc__(self):
        del self.counter

    # One object may be used by many threads: the critical section of the object is its lock. With the GIL it is nothing.
    def add(self, int64_t n, /):
        cdef int64_t value
        with cython.critical_section(self):
            value = self.counter.add(n)
        return value

    def add_unlocked(self, int64_t n, /):  # loses additions on a free-threaded build
        return self.counter.add(n)

    def value(self):
        cdef int64_t value
        with cython.critical_section(self):
            value = self.counter.value()
        return value

    def fail(self, int depth, /):
        return self.counter.fail(depth)


# [/counter]
