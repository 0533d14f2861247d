from Cython.Build import cythonize
from setuptools import Extension, setup

extension = Extension(
    "outside_cython",
    ["outside_cython.pyx", "../library/outside.c"],
    include_dirs=["../library"],
    extra_compile_args=["-O3", "-fvisibility=hidden"],
)
setup(ext_modules=cythonize([extension], language_level=3), py_modules=[])
