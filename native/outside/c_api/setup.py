from setuptools import Extension, setup

extension = Extension(
    "outside_c_api",
    ["outside_c_api.c", "../library/outside.c"],
    include_dirs=["../library"],
    extra_compile_args=["-O3", "-fvisibility=hidden"],
)
setup(ext_modules=[extension], py_modules=[])
