"""What the notebook "Calls from outside" is written with."""

from ffilab.measure.case import Case
from ffilab.measure.source import source_of
from ffilab.page import chapter, draw
from ffilab.setup.catalogue import FREE_THREADED, GIL

__all__ = ["FREE_THREADED", "GIL", "Case", "chapter", "draw", "source_of"]
