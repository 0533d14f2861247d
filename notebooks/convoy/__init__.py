"""What the notebook "The GIL convoy" is written with."""

from ffilab.measure.case import Case
from ffilab.page import chapter, draw
from ffilab.run.machine import cores_to_pin
from ffilab.setup.catalogue import FREE_THREADED, GIL
