"""Builds the module."""

import glob

from setuptools import Extension, setup

setup(
    ext_modules=[Extension("balm", sorted(glob.glob("*.c")), extra_compile_args=["-O3", "-pthread"])],
    py_modules=[],
)
