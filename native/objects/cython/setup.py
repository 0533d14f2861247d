from Cython.Build import cythonize
from setuptools import Extension, setup

extension = Extension(
    "objects_cython",
    ["objects_cython.pyx", "../library/objects.cpp"],
    include_dirs=["../library"],
    language="c++",
    extra_compile_args=["-O3", "-std=c++17", "-fvisibility=hidden"],
)
setup(ext_modules=cythonize([extension], language_level=3), py_modules=[])
