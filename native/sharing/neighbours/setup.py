from setuptools import Extension, setup

setup(
    ext_modules=[Extension("neighbours", ["neighbours.c"], extra_compile_args=["-O3"])],
    py_modules=[],
)
