from setuptools import Extension, setup

library = ["../library/boundary.c", "../library/counter.cpp"]
extension = Extension(
    "boundary_c_api",
    ["boundary_c_api.c", "counter_type.cpp", *library],
    include_dirs=["../library"],
    language="c++",
    extra_compile_args=["-O3", "-fvisibility=hidden"],
)
setup(ext_modules=[extension], py_modules=[])
