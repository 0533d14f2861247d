"""What the notebook "Arrays in and out" is written with."""

from dataclasses import replace

from ffilab.measure.case import Case
from ffilab.measure.plan import Arm
from ffilab.measure.source import source_of
from ffilab.page import chapter, draw
from ffilab.setup.catalogue import FREE_THREADED, GIL
from native.threads import rate
