"""What the notebook "Races" is written with."""

from ffilab.measure.case import Case, Program
from ffilab.measure.plan import Arm
from ffilab.page import chapter, draw
from ffilab.setup.catalogue import BY_LABEL, FREE_THREADED, GIL
