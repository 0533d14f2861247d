"""What the notebook "Arenas" is written with."""

from ffilab.measure.case import Case
from ffilab.page import chapter, draw
from ffilab.setup.catalogue import FREE_THREADED, GIL
