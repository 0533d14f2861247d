"""OLDEST: the first version that the wheel for the stable ABI is to serve, such as cp313; abi3t, where the build has no
GIL."""

import os
import sysconfig

from Cython.Build import cythonize
from setuptools import Extension, setup

ABI3T = bool(sysconfig.get_config_var("Py_GIL_DISABLED"))
limited = {}
if oldest := os.environ.get("OLDEST"):
    name = "Py_TARGET_ABI3T" if ABI3T else "Py_LIMITED_API"
    limited = {"py_limited_api": True, "define_macros": [(name, f"0x03{int(oldest[3:]):02x}0000")]}
extension = Extension("bound", ["bound.pyx"], **limited)
setup(
    ext_modules=cythonize([extension], language_level=3, compiler_directives={"freethreading_compatible": True}),
    options={"bdist_wheel": {"py_limited_api": oldest}} if limited else {},
)
