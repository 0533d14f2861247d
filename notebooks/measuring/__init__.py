"""What the notebook "Measuring on a noisy machine" is written with."""

from ffilab.measure import instructions, profile
from ffilab.measure.case import Case
from ffilab.measure.plan import Arm, empty_loop
from ffilab.page import chapter, draw
from ffilab.run.errors import UserError
from ffilab.run.paths import without_paths
from ffilab.setup.catalogue import FREE_THREADED, GIL
