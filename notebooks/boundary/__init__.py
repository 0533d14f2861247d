"""What the notebook "The boundary" is written with."""

from ffilab.measure.case import Case
from ffilab.measure.plan import Arm
from ffilab.page import chapter, draw
from ffilab.setup.catalogue import FREE_THREADED, GIL
from native.boundary import arms
