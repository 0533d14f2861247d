from Cython.Build import cythonize
from setuptools import Extension, setup

library = ["../library/boundary.c", "../library/counter.cpp"]
extension = Extension(
    "boundary_cython_tuned",
    ["boundary_cython_tuned.pyx", *library],
    include_dirs=["../library"],
    language="c++",
    extra_compile_args=["-O3", "-fvisibility=hidden", "-std=c++17"],
)
setup(ext_modules=cythonize([extension], language_level=3), py_modules=[])
