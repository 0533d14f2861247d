"""Declarations read at import: the package is Python and the library, and nothing is generated."""

from cffi import FFI

from boundary_cffi_abi.binding import bind
from boundary_cffi_abi.declarations import DECLARATIONS

ffi = FFI()
ffi.cdef(DECLARATIONS)
functions = bind(ffi)
