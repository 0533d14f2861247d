"""The laboratory behind "Hidden Corners of the Python FFI".

Data flows one way: kernels (who runs), native (what runs), ffilab.measure (how
it is measured), records on disk, notebook (what it means), ledger, book.

For code of your own there are six names: `compare` times `Arm`s, on any CPython, and returns a `Result`; `scale` says
what holds threads back, and returns a `Scaling`; what you can mend is a `UserError`.
"""

from importlib import import_module

API = {
    "Arm": "ffilab.measure.plan",
    "Result": "ffilab.yours.result",
    "Scaling": "ffilab.yours.scale.result",
    "UserError": "ffilab.run.errors",
    "compare": "ffilab.yours.comparing",
    "scale": "ffilab.yours.scale.diagnosing",
}
__all__ = list(API)


def load_ipython_extension(shell) -> None:
    """Give IPython and Jupyter the magic `%%ffilab`: `%load_ext ffilab`."""
    import_module("ffilab.yours.magic").register(shell)


def __getattr__(name: str):
    # Not before they are asked for: a worker's side and a chapter import this package too.
    if name in API:
        return getattr(import_module(API[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
