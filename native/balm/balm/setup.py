from setuptools import Extension, setup

SOURCES = ["module.c", "layout.c", "buffer.c", "legitimate.c", "pools.c", "blocks.c", "pages.c", "tuples.c"]
setup(ext_modules=[Extension("balm", SOURCES, extra_compile_args=["-O3", "-pthread"])], py_modules=[])
