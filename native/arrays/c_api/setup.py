from setuptools import Extension, setup

extension = Extension(
    "arrays_c_api",
    ["arrays_c_api.c", "../library/arrays.c"],
    include_dirs=["../library"],
    extra_compile_args=["-O3", "-fvisibility=hidden"],
)
setup(ext_modules=[extension], py_modules=[])
