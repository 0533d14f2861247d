"""What the notebook "CDLL and PyDLL" is written with."""

from ffilab.judge.estimates import LEVEL
from ffilab.measure.case import Case
from ffilab.measure.plan import Arm
from ffilab.page import chapter, draw
from ffilab.setup import mine
from ffilab.setup.catalogue import FREE_THREADED, GIL

__all__ = ["FREE_THREADED", "GIL", "LEVEL", "Arm", "Case", "chapter", "draw", "mine"]
