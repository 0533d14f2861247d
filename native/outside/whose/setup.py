from setuptools import Extension, setup

extension = Extension("outside_whose", ["whose.c"], extra_compile_args=["-O2", "-pthread"])
setup(ext_modules=[extension], py_modules=[])
