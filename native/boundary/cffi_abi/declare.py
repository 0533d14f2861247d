"""Run by CMake: writes the Python module that holds the declarations, read and packed (cffi's out-of-line ABI mode).

usage: declare.py TARGET
"""

import runpy
import sys

from cffi import FFI

# By its path: the package itself needs the library, which is not built yet.
declarations = runpy.run_path("src/boundary_cffi_abi/declarations.py")["DECLARATIONS"]
ffi = FFI()
ffi.set_source("boundary_cffi_abi._declared", None)
ffi.cdef(declarations)
ffi.emit_python_code(sys.argv[1])
