from setuptools import Extension, setup

SANITIZER = "-fsanitize=thread"
SOURCES = ["module.c", "layout.c", "buffer.c", "legitimate.c", "pools.c", "blocks.c", "pages.c", "tuples.c"]
setup(
    ext_modules=[
        Extension(
            "balm_tsan", SOURCES, define_macros=[("MODULE", "balm_tsan")],
            extra_compile_args=["-O1", "-g", SANITIZER, "-pthread"], extra_link_args=[SANITIZER],
        )
    ],
    py_modules=[],
)  # fmt: skip
