"""The boundary library through cffi's ABI mode: no compiler, the declarations are read at import."""

import errno
import sys
import threading
from pathlib import Path

from cffi import FFI

# [declare]
ffi = FFI()
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
    int root(double x, double *result);
    int work(int iterations);
    void sleep_ms(int milliseconds);
    typedef struct counter_handle counter_handle;
    counter_handle *counter_new(int64_t start);
    int64_t counter_add(counter_handle *counter, int64_t n);
    void counter_delete(counter_handle *counter);
""")
LIBRARY = Path(__file__).with_name("libboundary.dylib" if sys.platform == "darwin" else "libboundary.so")
lib = ffi.dlopen(str(LIBRARY))

# Parsed once: with a text, each call would look its type up again.
SIZE = ffi.typeof("size_t *")
BYTES = ffi.typeof("uint8_t[]")
DOUBLES = ffi.typeof("double[]")
POINT = ffi.typeof("point *")
DOUBLE = ffi.typeof("double *")
CALLBACK = ffi.typeof("int(*)(int, void *)")

noop = noop_detached = lib.noop  # cffi detaches the thread state around every call
answer = lib.answer
add_one = lib.add_one
add_five = lib.add_five
halve = lib.halve
# [/declare]
work = lib.work
sleep_ms = lib.sleep_ms


# [text]
def code_points(text):
    data = text.encode()
    return lib.code_points(data, len(data))


# [/text]


def motto():
    size = ffi.new(SIZE)
    data = lib.motto(size)
    return ffi.unpack(data, size[0]).decode()


def checksum(data):
    return lib.checksum(data, len(data))


def make_bytes(size, value):
    data = ffi.new(BYTES, size)
    lib.fill(data, size, value)
    return bytes(ffi.buffer(data, size))


# [buffer]
def ends(values):
    data = ffi.from_buffer(DOUBLES, values)
    return lib.ends(data, len(data))


# [/buffer]


def sum_list(values):
    return lib.sum_ints(values, len(values))


sum_sequence = sum_list  # whatever has a length and items


# [point]
def Point(x, y):
    return ffi.new(POINT, (x, y))


def dot(p):
    return lib.dot(p[0])


scale = lib.scale
# [/point]


# [callback]
def callback(function):
    """Prepare a function for `apply`. Keep what this returns for as long as C may call it."""
    return ffi.callback(CALLBACK, lambda x, context: function(x))


def apply(prepared, x):
    return lib.apply(prepared, ffi.NULL, x)


apply_detached = apply  # cffi detaches the thread state around every call, and attaches it in every callback


# [/callback]


# [root]
def root(x):
    result = ffi.new(DOUBLE)
    if lib.root(x, result) == errno.EDOM:
        raise ValueError("no real root")
    return result[0]


# [/root]


# [handle]
class Counter:
    """The C++ class through its C handle. cffi detaches the thread state, so that the GIL protects nothing here."""

    __slots__ = ("_handle", "_lock")

    def __init__(self, start):
        handle = lib.counter_new(start)
        if not handle:
            raise MemoryError
        self._handle, self._lock = ffi.gc(handle, lib.counter_delete), threading.Lock()

    def add(self, n):
        with self._lock:
            return lib.counter_add(self._handle, n)

    def add_unlocked(self, n):
        """Loses additions where two threads are in it, on every build."""
        return lib.counter_add(self._handle, n)


# [/handle]
