from pathlib import Path

from cffi import FFI

ffi = FFI()
ffi.cdef(Path("bound.h").read_text())
ffi.set_source("bound", Path("bound.c").read_text())
