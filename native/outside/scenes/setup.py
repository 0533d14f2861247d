from setuptools import Extension, setup

setup(
    ext_modules=[Extension("outside_scenes", ["outside_scenes.c"], extra_compile_args=["-O2", "-pthread"])],
    py_modules=[],
)
