"""The boundary library through cffi's API mode: a C compiler has checked the declarations and built the calls."""

import errno
import threading

from boundary_cffi_api._library import ffi, lib

# Parsed once: with a text, each call would look its type up again.
SIZE = ffi.typeof("size_t *")
BYTES = ffi.typeof("uint8_t[]")
DOUBLES = ffi.typeof("double[]")
POINT = ffi.typeof("point *")
DOUBLE = ffi.typeof("double *")

noop = noop_detached = lib.noop  # cffi detaches the thread state around every call
answer = lib.answer
add_one = lib.add_one
add_five = lib.add_five
halve = lib.halve
work = lib.work
sleep_ms = lib.sleep_ms


def code_points(text, /):
    data = text.encode()
    return lib.code_points(data, len(data))


def motto():
    size = ffi.new(SIZE)
    data = lib.motto(size)
    return ffi.unpack(data, size[0]).decode()


def checksum(data, /):
    return lib.checksum(data, len(data))


def make_bytes(size, value=0):
    data = ffi.new(BYTES, size)
    lib.fill(data, size, value)
    return bytes(ffi.buffer(data, size))


def ends(values, /):
    data = ffi.from_buffer(DOUBLES, values)
    if not lib.aligned(data) and len(data):
        raise BufferError("the doubles are not aligned")
    return lib.ends(data, len(data))


def sum_list(values, /):
    return lib.sum_ints(values, len(values))


sum_sequence = sum_list  # whatever has a length and items


def Point(x, y, /):
    return ffi.new(POINT, (x, y))


def dot(p, /):
    return lib.dot(p[0])


scale = lib.scale


# [callback]
@ffi.def_extern()
def call_back(x, context):
    return ffi.from_handle(context)(x)


def callback(function, /):
    """Prepare a function for `apply`. Keep what this returns for as long as C may call it."""
    return ffi.new_handle(function)


def apply(prepared, x, /):
    return lib.apply(lib.call_back, prepared, x)


apply_detached = apply  # cffi detaches the thread state around every call, and attaches it in every callback


# [/callback]


def root(x, /):
    result = ffi.new(DOUBLE)
    if lib.root(x, result) == errno.EDOM:
        raise ValueError("no real root")
    return result[0]


class Counter:
    """The C++ class through its C handle. cffi detaches the thread state, so that the GIL protects nothing here."""

    __slots__ = ("_handle", "_lock")

    def __init__(self, start, /):
        handle = lib.counter_new(start)
        if not handle:
            raise MemoryError
        self._handle, self._lock = ffi.gc(handle, lib.counter_delete), threading.Lock()

    def add(self, n, /):
        with self._lock:
            return lib.counter_add(self._handle, n)

    def add_unlocked(self, n, /):
        """Loses additions where two threads are in it, on every build."""
        return lib.counter_add(self._handle, n)
