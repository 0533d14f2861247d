"""OLDEST: the first version that the wheel for the stable ABI is to serve, such as cp313; abi3t, where the build has no
GIL."""

import os
import sysconfig

from setuptools import Extension, setup

ABI3T = bool(sysconfig.get_config_var("Py_GIL_DISABLED"))
limited = {}
if oldest := os.environ.get("OLDEST"):
    name = "Py_TARGET_ABI3T" if ABI3T else "Py_LIMITED_API"
    limited = {"py_limited_api": True, "define_macros": [(name, f"0x03{int(oldest[3:]):02x}0000")]}
setup(
    ext_modules=[Extension("bound", ["bound.c"], **limited)],
    options={"bdist_wheel": {"py_limited_api": oldest}} if limited else {},
)
