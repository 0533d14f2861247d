from setuptools import Extension, setup

extension = Extension(
    "outside_scenes", ["outside_scenes.c"], include_dirs=["../library"], extra_compile_args=["-O2", "-pthread"]
)
setup(ext_modules=[extension], py_modules=[])
