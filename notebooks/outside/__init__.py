"""What the notebook "Calls from outside" is written with."""

from ffilab.measure.case import Case
from ffilab.measure.source import source_of
from ffilab.page import chapter, draw
from ffilab.setup.catalogue import BY_LABEL, FREE_THREADED, GIL
from native.outside.ways import callback_of, library, module, way_in, ways_in

__all__ = [
    "BY_LABEL",
    "FREE_THREADED",
    "GIL",
    "Case",
    "callback_of",
    "chapter",
    "draw",
    "library",
    "module",
    "source_of",
    "way_in",
    "ways_in",
]
