"""Four ways to hand a NumPy array to a C function with ctypes: `ffilab time --file example.py`. It needs NumPy."""

# [ways]
import ctypes
from ctypes import c_int, c_size_t, c_ubyte, c_void_p

import numpy as np

text = np.frombuffer(b"mind the gap", dtype=np.uint8).copy()


def memchr(pointer):
    """The C function that finds a byte, with a handle of its own."""
    function = ctypes.CDLL(None)["memchr"]
    function.restype, function.argtypes = c_void_p, [pointer, c_int, c_size_t]
    return function


checked = memchr(np.ctypeslib.ndpointer(np.uint8, ndim=1, flags="C_CONTIGUOUS"))
typed = memchr(ctypes.POINTER(c_ubyte))
plain = memchr(c_void_p)


def bench_ndpointer():
    """NumPy checks type, dimensions and layout of each argument."""
    return checked(text, ord("g"), 12)


def bench_data_as():
    """A typed pointer, made anew for each call."""
    return typed(text.ctypes.data_as(ctypes.POINTER(c_ubyte)), ord("g"), 12)


def bench_address():
    """A number: nothing is checked."""
    return plain(text.ctypes.data, ord("g"), 12)


def bench_from_buffer():
    """A ctypes array over the same memory, through the buffer protocol."""
    return plain((c_ubyte * 12).from_buffer(text), ord("g"), 12)


# Correct first: all find the same byte.
WAYS = (bench_ndpointer, bench_data_as, bench_address, bench_from_buffer)
assert {way() for way in WAYS} == {text.ctypes.data + 9}
# [/ways]
