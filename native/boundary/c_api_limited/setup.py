import sysconfig

from setuptools import Extension, setup

# Built with the GIL, the file is abi3 and serves every CPython with a GIL from 3.13 on. Built without it, the file is
# abi3t and serves every CPython from 3.15 on, with a GIL too. setuptools takes the name of the file and the tag of the
# wheel from the build.
ABI3T = bool(sysconfig.get_config_var("Py_GIL_DISABLED"))

library = ["../library/boundary.c", "../library/counter.cpp"]
extension = Extension(
    "boundary_c_api_limited",
    ["boundary_c_api_limited.cpp", *library],
    include_dirs=["../library"],
    language="c++",
    extra_compile_args=["-O3", "-fvisibility=hidden"],
    define_macros=[("Py_TARGET_ABI3T", "0x030F0000") if ABI3T else ("Py_LIMITED_API", "0x030D0000")],
    py_limited_api=True,
)
oldest = "cp315" if ABI3T else "cp313"
setup(ext_modules=[extension], py_modules=[], options={"bdist_wheel": {"py_limited_api": oldest}})
