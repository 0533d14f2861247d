"""OLDEST: the first version that the wheel for the stable ABI is to serve. The file in it is for the stable ABI in any
case."""

import os

from setuptools import setup

oldest = os.environ.get("OLDEST")
setup(
    cffi_modules=["build_library.py:ffi"],
    py_modules=[],
    options={"bdist_wheel": {"py_limited_api": oldest}} if oldest else {},
)
