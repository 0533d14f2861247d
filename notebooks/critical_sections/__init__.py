"""What the notebook "Critical sections" is written with."""

from ffilab.measure import instructions
from ffilab.measure.case import Case
from ffilab.measure.plan import Arm, empty_loop
from ffilab.measure.source import source_of
from ffilab.page import chapter, draw
from ffilab.run.errors import UserError
from ffilab.run.paths import without_paths
from ffilab.setup.catalogue import BY_LABEL, FREE_THREADED, GIL
from native.threads import ROUNDS, rate
from notebooks.boundary import experiment as boundary
from notebooks.boundary import looks
