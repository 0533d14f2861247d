"""What the study of calibration measures: ratios of calls and of two operations, on every build of the chapter pair."""

from dataclasses import replace
from pathlib import Path

from ffilab.measure import runner
from ffilab.measure.plan import Arm, plan
from ffilab.measure.record import Record
from ffilab.run.budget import Budget
from ffilab.run.errors import UserError
from ffilab.setup import build, relink
from ffilab.setup.catalogue import BY_LABEL, FREE_THREADED, GIL
from ffilab.setup.layouts import Pool
from notebooks.boundary import experiment as boundary
from notebooks.critical_sections.experiment import operation
from notebooks.loaders.experiment import call

PAIR = (GIL, FREE_THREADED)
BUILDS = 3

AGAIN = "CDLL noop again"
BINDINGS = ("C API", "pybind11", "nanobind", "PyO3", "Cython")
NUMBER, TEXT = "int → int", "str in, ASCII"


def called(binding: str, signature: str = NUMBER) -> str:
    """The name of a call through a binding."""
    return f"{binding}: {signature}"


def arms() -> list[Arm]:
    """Both loaders, five bindings, a text that goes in, and two operations of the interpreter."""
    loaders = {"CDLL noop": "CDLL", "PyDLL noop": "PyDLL", AGAIN: "CDLL"}
    calls = [(binding, NUMBER) for binding in BINDINGS] + [(binding, TEXT) for binding in ("C API", "PyO3")]
    return [
        *(replace(call(loader, "noop"), name=name) for name, loader in loaders.items()),
        *(boundary.call(binding, kind) for binding, kind in calls),
        *(operation(name) for name in ("dict, write", "list, append and pop")),
    ]


def ratios(labels: tuple[str, ...]) -> dict[str, tuple[tuple[str, str], tuple[str, str]]]:
    """The ratios that the studies look at: by name, the cells above and below the line."""

    pairs = {
        "CDLL / PyDLL": ("CDLL noop", "PyDLL noop"),
        "the same call twice": (AGAIN, "CDLL noop"),
        "pybind11 / nanobind": (called("pybind11"), called("nanobind")),
        "PyO3 / C API": (called("PyO3"), called("C API")),
        "Cython / C API": (called("Cython"), called("C API")),
        "PyO3 / C API, str in": (called("PyO3", TEXT), called("C API", TEXT)),
    }
    found = {
        f"{name}, {label}": ((label, slow), (label, fast)) for name, (slow, fast) in pairs.items() for label in labels
    }
    if set(PAIR) <= set(labels):
        for arm in ("CDLL noop", called("C API"), called("C API", TEXT), "dict, write", "list, append and pop"):
            found[f"{arm}: {FREE_THREADED} / {GIL}"] = (FREE_THREADED, arm), (GIL, arm)
    return found


def timed(folder: Path, name: str, labels: tuple[str, ...], pool: Pool, restarts: int, blocks: int = 6) -> Record:
    """One run of all arms on these layouts."""
    budget = Budget("study", restarts=restarts, blocks=blocks, seconds=1e9, batch_ms=5, scale=1, repeats=1)
    return runner.run(plan(name, arms(), labels, budget, with_controls=False), folder, pool=pool)


def compiled(builds: int) -> None:
    """Compile so many builds of the pair, if they are not there. Raises UserError if one cannot be linked again."""
    for label in PAIR:
        for number in range(1, builds + 1):
            build.build(BY_LABEL[label], number)
        if lacking := relink.missing(label):
            raise UserError(f"The study needs layouts: {lacking}.")
