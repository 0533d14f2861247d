"""What a chapter brings: the modules of `notebooks/<chapter>/`, and what is read of each.

Beside them stand as data claims.toml, sentences.toml and the notebook. Of `__init__.py`, which the notebook's first
cell imports from, of figures.py and of exercise.py nothing is read here. tests/test_chapters.py checks every chapter.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Protocol, cast, runtime_checkable

from ffilab.run.paths import NOTEBOOKS

if TYPE_CHECKING:
    from ffilab.judge.controls import Check, Control
    from ffilab.judge.numbers import Declarations
    from ffilab.measure.reading import Session


class NumbersModule(Protocol):
    """numbers.py, which every chapter has. A sentence may run over a list in it (`for`)."""

    number: Declarations


@runtime_checkable
class WithControls(Protocol):
    """numbers.py of a chapter that has controls of its own, besides those of every session."""

    def controls(self, session: Session) -> Sequence[Check | Control]: ...


@runtime_checkable
class FragmentsModule(Protocol):
    """fragments.py of a chapter that says what no form of a sentence can say: functions by name."""

    def fragments(self, session: Session) -> dict[str, Callable[[], str]]: ...


def numbers_module(chapter: str) -> NumbersModule:
    return cast(NumbersModule, _module(chapter, "numbers"))


def experiment_module(chapter: str) -> ModuleType:
    """What the cells of the notebook define (ffilab/page/cells.py). A sentence may run over a list in it."""
    return _module(chapter, "experiment")


def fragments_module(chapter: str) -> FragmentsModule | None:
    """fragments.py; None if the chapter has none."""
    if not (NOTEBOOKS / chapter / "fragments.py").exists():
        return None
    return cast(FragmentsModule, _module(chapter, "fragments"))


def _module(chapter: str, name: str) -> ModuleType:
    return importlib.import_module(f"notebooks.{chapter}.{name}")
