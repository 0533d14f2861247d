"""Ways into the native code of the chapter on races. Standard library only: workers import this file."""

import ctypes
import os
import sys
import sysconfig

# [ways]
# Way of calling: does it let go of the GIL (detach the thread state) meanwhile?
WAYS = {"ctypes CDLL": True, "C API, releasing": True, "ctypes PyDLL": False, "C API, keeping": False}
# [/ways]

# [entries]
VARIANTS = ("unsafe", "mutex", "atomic")
LOADERS = {"ctypes CDLL": ctypes.CDLL, "ctypes PyDLL": ctypes.PyDLL}


def load(folder):
    """The extension. Raises ImportError if it was not built."""
    place = os.path.join(folder, sysconfig.get_config_var("SOABI"))
    if place not in sys.path:
        sys.path.insert(0, place)
    import shared_state

    return shared_state


def library(folder, loader="ctypes CDLL", **options):
    """libraces.so through CDLL, which releases the GIL, or PyDLL, which keeps it."""
    return LOADERS[loader](os.path.join(folder, "libraces.so"), **options)


def increment(folder, way):
    """A function of (variant, iterations), with reset and value."""
    if way in LOADERS:
        native = library(folder, way)
        native.counter_value.restype = ctypes.c_long
        functions = {variant: getattr(native, f"{variant}_increment") for variant in VARIANTS}
        return (lambda variant, n: functions[variant](n)), native.counter_reset, native.counter_value
    module = load(folder)
    function = module.increment_releasing if way == "C API, releasing" else module.increment_keeping
    return function, module.reset, module.value


# [/entries]

# [rust]
RUST = {
    "Rust, load then store": "rust_load_then_store",
    "Rust, fetch_add": "rust_fetch_add",
    "Rust, Mutex": "rust_mutex",
}


def rust(folder, loader):
    """librust_counter through CDLL or PyDLL. Raises OSError if it was not built."""
    suffix = "dylib" if sys.platform == "darwin" else "so"
    return LOADERS[loader](os.path.join(folder, "cargo", "rust_counter", "release", f"librust_counter.{suffix}"))


# [/rust]


# [remedy]
class Remedy:
    """One remedy in a C loop, without a rival."""

    def __init__(self, folder, name):
        module = load(folder)
        self._run, self._name, self._guarded = module.run, name, module.Guarded()

    def timeit(self, loops):
        return self._run(self._name, self._guarded, loops)


def remedy(folder, name):
    return Remedy(folder, name)


# [/remedy]
