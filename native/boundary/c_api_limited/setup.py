from setuptools import Extension, setup

library = ["../library/boundary.c", "../library/counter.cpp"]
extension = Extension(
    "boundary_c_api_limited",
    ["boundary_c_api_limited.cpp", *library],
    include_dirs=["../library"],
    language="c++",
    extra_compile_args=["-O3"],
    # One file for every CPython with a GIL from 3.13 on: its name ends in .abi3.so.
    define_macros=[("Py_LIMITED_API", "0x030D0000")],
    py_limited_api=True,
)
setup(ext_modules=[extension], py_modules=[], options={"bdist_wheel": {"py_limited_api": "cp313"}})
