"""What the notebook "Code placement" is written with."""

from ffilab.measure import instructions
from ffilab.measure.case import Program
from ffilab.page import chapter, draw
