"""The boundary library through cffi's ABI mode: no C compiler for the binding.

`in_line` reads the declarations at every import, `out_of_line` has them read when the package is built.
"""
