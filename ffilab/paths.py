"""Where things are. Nothing here is specific to one machine."""

import os
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
KERNELS = ROOT / "kernels" / "kernels"
NATIVE = ROOT / "native"
NOTEBOOKS = ROOT / "notebooks"
# Tests measure into a folder of their own, so that they never overwrite a reader's results.
BUILD = Path(os.environ.get("FFILAB_BUILD") or ROOT / "_build")
NATIVE_OUT = ROOT / "_build" / "native"
RECORDS = BUILD / "records"
RESULTS = BUILD / "results"
EXECUTED = BUILD / "executed"
HTML = BUILD / "html"
LOGS = BUILD / "logs"


def cache() -> Path:
    """The folder that outlives a clone: downloads and built interpreters."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "ffi-hidden-corners"


# What build tools leave in a native project's folder when someone builds it by hand.
BY_PRODUCTS = {"build", "target", "Cargo.lock"}
