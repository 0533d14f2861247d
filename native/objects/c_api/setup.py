from setuptools import Extension, setup

extension = Extension(
    "objects_c_api",
    ["objects_c_api.cpp", "../library/objects.cpp"],
    include_dirs=["../library"],
    language="c++",
    extra_compile_args=["-O3", "-std=c++17", "-fvisibility=hidden"],
)
setup(ext_modules=[extension], py_modules=[])
