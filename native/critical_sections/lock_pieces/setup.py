from setuptools import Extension, setup

setup(
    ext_modules=[Extension("lock_pieces", ["lock_pieces.c", "inlined.c"], extra_compile_args=["-O3", "-pthread"])],
    py_modules=[],
)
