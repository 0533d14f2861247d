"""Arrays in and out through ctypes: `ndpointer` checks what comes in, `interface` takes the address as the object says
it."""

import ctypes
import sys
from pathlib import Path

NAME = "libarrays.dylib" if sys.platform == "darwin" else "libarrays.so"


def load():
    """The library with functions of its own, as each caller declares their arguments: `numpy.ctypeslib.load_library`
    hands the same ones to all."""
    library = ctypes.CDLL(str(Path(__file__).with_name(NAME)))
    library.ends.restype = library.weigh.restype = ctypes.c_double
    library.where.restype = ctypes.c_size_t
    library.make.argtypes = [ctypes.c_size_t]
    library.give_back.argtypes = [ctypes.c_void_p]
    library.held.restype = ctypes.c_long
    return library
