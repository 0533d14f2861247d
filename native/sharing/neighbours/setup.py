from setuptools import Extension, setup

setup(
    ext_modules=[
        Extension("neighbours", ["neighbours.c"], extra_compile_args=["-O3"]),
        Extension("undeclared", ["undeclared.c"]),
    ],
    py_modules=[],
)
