"""Ways into the native code of the chapter on races. Standard library only: workers import this file."""

import ctypes
import os
import sys
import sysconfig

# Way of calling: does it let go of the GIL (detach the thread state) meanwhile?
WAYS = {"ctypes CDLL": True, "C API, releasing": True, "ctypes PyDLL": False, "C API, keeping": False}
VARIANTS = ("unsafe", "mutex", "atomic")
RUST = {
    "Rust, load then store": "rust_load_then_store",
    "Rust, fetch_add": "rust_fetch_add",
    "Rust, Mutex": "rust_mutex",
}


def load(folder):
    """The extension. Raises ImportError if it was not built."""
    place = os.path.join(folder, sysconfig.get_config_var("SOABI"))
    if place not in sys.path:
        sys.path.insert(0, place)
    import shared_state

    return shared_state


def library(folder, loader="ctypes CDLL", **options):
    """libraces.so through CDLL, which releases the GIL, or PyDLL, which keeps it."""
    return {"ctypes CDLL": ctypes.CDLL, "ctypes PyDLL": ctypes.PyDLL}[loader](
        os.path.join(folder, "libraces.so"), **options
    )


def rust(folder, loader):
    """librust_counter through CDLL or PyDLL; None if it was not built."""
    for name in ("librust_counter.so", "librust_counter.dylib"):
        path = os.path.join(folder, "cargo", "rust_counter", "release", name)
        if os.path.exists(path):
            return {"ctypes CDLL": ctypes.CDLL, "ctypes PyDLL": ctypes.PyDLL}[loader](path)
    return None


class Remedy:
    """One remedy in a C loop, without a rival."""

    def __init__(self, folder, name):
        module = load(folder)
        self._run, self._name, self._guarded = module.run, name, module.Guarded()

    def timeit(self, loops):
        return self._run(self._name, self._guarded, loops)


def remedy(folder, name):
    return Remedy(folder, name)
