"""Builds the module under its project's name: as it is, or with the sanitizer that pyproject.toml asks for."""

import glob
import tomllib

from setuptools import Extension, setup

with open("pyproject.toml", "rb") as file:
    about = tomllib.load(file)
name = about["project"]["name"].replace("-", "_")
sanitizer = about.get("tool", {}).get("balm", {}).get("sanitizer")
flags = ["-O1", "-g", f"-fsanitize={sanitizer}"] if sanitizer else ["-O3"]
link_flags = [f"-fsanitize={sanitizer}"] if sanitizer else []

setup(
    ext_modules=[
        Extension(
            name,
            sorted(glob.glob("*.c")),
            define_macros=[("MODULE", name)],
            extra_compile_args=[*flags, "-pthread"],
            extra_link_args=link_flags,
        )
    ],
    py_modules=[],
)
