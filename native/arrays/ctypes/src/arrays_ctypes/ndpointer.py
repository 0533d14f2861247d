"""By `numpy.ctypeslib`: an argument type that looks at each array."""

import ctypes
import weakref

import numpy

from arrays_ctypes import load

library = load()
held = library.held
# [in]
DOUBLES = numpy.ctypeslib.ndpointer(numpy.float64, flags="C_CONTIGUOUS, ALIGNED")
library.ends.argtypes = library.weigh.argtypes = [DOUBLES, ctypes.c_size_t]
library.where.argtypes = [DOUBLES]


def ends(x):
    return library.ends(x, x.size)


# [/in]
def look(x):
    return library.where(x), library.weigh(x, x.size)


# [out]
library.make.restype = ctypes.POINTER(ctypes.c_double)


def make(n):
    values = library.make(n)
    if not values:
        raise MemoryError
    array = numpy.ctypeslib.as_array(values, (n,))
    # as_array owns nothing: without this the memory is never given back.
    weakref.finalize(array, library.give_back, values)
    return array


# [/out]
