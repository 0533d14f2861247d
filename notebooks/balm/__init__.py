"""What the notebook "GIL Balm" is written with."""

from ffilab.measure import instructions
from ffilab.measure.case import Case, Step
from ffilab.measure.plan import Arm
from ffilab.measure.source import source_of
from ffilab.page import chapter, draw
from ffilab.setup.catalogue import FREE_THREADED, GIL
