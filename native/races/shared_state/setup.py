from setuptools import Extension, setup

extension = Extension(
    "shared_state",
    ["shared_state.c", "remedies.c", "../library/races.c"],
    extra_compile_args=["-O2", "-pthread"],
)
setup(ext_modules=[extension], py_modules=[])
