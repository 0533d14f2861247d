"""By `__array_interface__`: an address in a dictionary, and nobody who looks at it."""

import ctypes

import numpy

from arrays_ctypes import load

library = load()
held = library.held
# [in]
library.ends.argtypes = library.weigh.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
library.where.argtypes = [ctypes.c_void_p]


def ends(x):
    return library.ends(x.__array_interface__["data"][0], x.size)


# [/in]
def look(x):
    address = x.__array_interface__["data"][0]
    return library.where(address), library.weigh(address, x.size)


# [out]
library.make.restype = ctypes.c_void_p


class Doubles:
    def __init__(self, n):
        self.address = library.make(n)
        if not self.address:
            raise MemoryError
        data = {"data": (self.address, False), "shape": (n,), "typestr": "<f8"}
        self.__array_interface__ = {**data, "version": 3}

    def __del__(self):
        if self.address:
            library.give_back(self.address)


def make(n):
    return numpy.asarray(Doubles(n))


# [/out]
