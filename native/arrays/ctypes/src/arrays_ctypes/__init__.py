"""Arrays in and out through ctypes: `ndpointer` checks what comes in, `interface` takes the address as the object says it."""

import ctypes
import os

import numpy


def load():
    """The library: a copy of its functions for each caller, who declares their arguments."""
    library = numpy.ctypeslib.load_library("libarrays", os.path.dirname(__file__))
    library.ends.restype = library.weigh.restype = ctypes.c_double
    library.where.restype = ctypes.c_size_t
    library.make.argtypes = [ctypes.c_size_t]
    library.give_back.argtypes = [ctypes.c_void_p]
    library.held.restype = ctypes.c_long
    return library
