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


class Visit(ctypes.Structure):
    """What a thread notes of its work: see Visit in library/races.h."""

    _fields_ = [
        *((name, ctypes.c_int64) for name in ("begin_ns", "end_ns", "preempted")),
        *((name, ctypes.c_int32) for name in ("first_core", "last_core", "met")),
    ]


def increment(folder, way):
    """A function of (variant, iterations, parties, patience_ns) that returns its Visit, with reset and value."""
    if way in LOADERS:
        native = library(folder, way)
        native.counter_value.restype = ctypes.c_long
        functions = {variant: getattr(native, f"{variant}_together") for variant in VARIANTS}
        for function in functions.values():
            function.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.POINTER(Visit)]

        def call(variant, *numbers, visit):
            functions[variant](*numbers, visit)

        reset, value = native.counter_reset, native.counter_value
    else:
        module = load(folder)
        function = module.increment_releasing if way == "C API, releasing" else module.increment_keeping

        def call(variant, *numbers, visit):
            function(variant, *numbers, visit)

        reset, value = module.reset, module.value

    def add(variant, iterations, parties=1, patience_ns=0):
        visit = Visit()
        call(variant, iterations, parties, patience_ns, visit=visit)
        return visit

    return add, reset, value


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
