"""Arrays in and out through cffi's API mode: `from_buffer` looks at the layout, and takes the type from the caller."""

import numpy

from arrays_cffi._library import ffi, lib

held = lib.held
# [in]
# Parsed once: with a text, each call would look the type up again.
DOUBLES = ffi.typeof("double[]")


def ends(x):
    values = ffi.from_buffer(DOUBLES, x)
    return lib.ends(values, len(values))


# [/in]
def look(x):
    values = ffi.from_buffer(DOUBLES, x)
    return lib.where(values), lib.weigh(values, len(values))


# [out]
def make(n):
    values = lib.make(n)
    if not values:
        raise MemoryError
    owner = ffi.gc(values, lib.give_back)
    return numpy.frombuffer(ffi.buffer(owner, 8 * n))


# [/out]
