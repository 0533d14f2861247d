"""What the notebook "Sharing" is written with."""

from ffilab.measure.case import Case
from ffilab.page import chapter, draw
from ffilab.setup.catalogue import BY_LABEL, FREE_THREADED, GIL
from native.threads import rate
from notebooks.boundary import experiment as boundary
from notebooks.boundary import looks
from notebooks.critical_sections import experiment as locks
from notebooks.critical_sections.experiment import bound

__all__ = ["BY_LABEL", "FREE_THREADED", "GIL", "Case", "bound", "boundary", "chapter", "draw", "locks", "looks", "rate"]
