"""A program of its own in which the module of GIL Balm and its texts are there."""

import subprocess

from ffilab.measure.source import source_of
from ffilab.run.paths import NATIVE_OUT
from ffilab.setup import installed
from ffilab.setup.catalogue import BY_LABEL
from native.balm.corpus import mixed_text
from notebooks.balm import experiment


def python_of(label):
    return installed.load(BY_LABEL[label]).python


def printed(label, code, *arguments):
    """What a program prints in which `balm` and its texts are there, line by line."""
    start = source_of(load=experiment.load, written=experiment.written, mixed_text=mixed_text)
    start += "\nimport sys\nbalm = load(sys.argv[1])"
    command = [python_of(label), "-I", "-c", start + code, NATIVE_OUT / "balm", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
