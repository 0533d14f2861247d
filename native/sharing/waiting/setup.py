from setuptools import Extension, setup

setup(
    ext_modules=[
        Extension(
            "sharing_waiting",
            ["sharing_waiting.c", "guarded.c", "standard.cpp"],
            extra_compile_args=["-O2", "-pthread"],
        )
    ],
    py_modules=[],
)
