from setuptools import Extension, setup

SANITIZER = "-fsanitize=address"
SOURCES = ["module.c", "layout.c", "buffer.c", "legitimate.c", "pools.c", "blocks.c", "pages.c", "tuples.c"]
setup(
    ext_modules=[
        Extension(
            "balm_asan", SOURCES, define_macros=[("MODULE", "balm_asan")],
            extra_compile_args=["-O1", "-g", SANITIZER, "-pthread"], extra_link_args=[SANITIZER],
        )
    ],
    py_modules=[],
)  # fmt: skip
