from setuptools import setup

setup(cffi_modules=["build_library.py:ffi"])
