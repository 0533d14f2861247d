"""A program of its own in which the module of GIL Balm and its texts are there."""

from ffilab.measure.source import source_of
from ffilab.run.paths import NATIVE_OUT
from native.balm.corpus import mixed_text
from notebooks.balm import experiment
from tests.helpers.environment import python_of, ran


def printed(label, code, *arguments):
    """What a program prints in which `balm` and its texts are there, line by line."""
    start = source_of(load=experiment.load, written=experiment.written, mixed_text=mixed_text)
    start += "\nimport sys\nbalm = load(sys.argv[1])"
    command = [python_of(label), "-I", "-c", start + code, NATIVE_OUT / "balm", *arguments]
    return ran(*command, check=True).stdout.splitlines()
