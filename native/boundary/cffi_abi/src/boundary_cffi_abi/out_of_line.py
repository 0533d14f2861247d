"""Declarations read when the package was built: an import needs neither cffi's parser nor the text (see declare.py)."""

from boundary_cffi_abi._declared import ffi
from boundary_cffi_abi.binding import bind

functions = bind(ffi)
