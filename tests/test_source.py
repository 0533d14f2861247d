"""What goes to a worker: the source of a function of a cell, with all that it names."""

import concurrent.futures
import contextlib
import ctypes
import json
import math as mathematics
import sys
import textwrap

import pytest

from ffilab.judge.estimates import LEVEL, Interval
from ffilab.measure.source import source_of
from ffilab.page.cells import exported
from ffilab.run.errors import UserError
from ffilab.run.paths import ROOT
from tests.helpers.environment import ran
from tests.helpers.of_chapter import result_of

LOADERS = {"CDLL": ctypes.CDLL, "PyDLL": ctypes.PyDLL}
FACTOR = 2.5


@contextlib.contextmanager
def factor():
    yield FACTOR


def base(value):
    with factor() as by:
        return value * by


WAYS = {"base": base, "plain": (1, [2, None])}


class Point:
    def __init__(self, value):
        self.value = base(value)


def asked(value, way="base"):
    """It names functions, a class, a module under another name, constants, and itself."""
    inner = [WAYS[way](one) for one in (value,)]
    local = mathematics.floor(Point(value).value)
    return {
        "inner": inner,
        "local": local,
        "loader": LOADERS["CDLL"].__name__,
        "again": asked(0)["inner"] if value else [],
        "pool": concurrent.futures.ThreadPoolExecutor.__name__,
    }


def of_the_book():
    return Interval(1.0, LEVEL, 2.0)


HANDLE = object()


def with_a_handle():
    return HANDLE


def test_a_function_runs_in_a_worker_with_all_that_it_names(label):
    assert result_of(label, asked, {"value": 3}) == {
        "inner": [7.5],
        "local": 7,
        "loader": "CDLL",
        "again": [0.0],
        "pool": "ThreadPoolExecutor",
    }


@pytest.mark.parametrize(
    ("function", "says"), [(of_the_book, "belongs to the book"), (with_a_handle, "HANDLE is a object")]
)
def test_what_no_worker_can_have_is_refused(function, says):
    with pytest.raises(UserError, match=says):
        source_of(function=function)


def test_another_name_and_a_cycle():
    names = {}
    exec(source_of(other=asked), names)
    assert names["other"](1)["inner"] == [2.5]


def test_the_definitions_of_cells_are_a_module(tmp_path):
    cells = [
        "import os\nfrom math import floor, sqrt\nfrom somewhere import session\n\nSIZE = 3\nkept = floor(2.5)",
        "@staticmethod\nasync def root(x):\n    return sqrt(x)  # kept as it stands\n\n\nrun = session.run('a', "
        "root)\nFIRST, SECOND = 1, 2",
    ]
    notebook = tmp_path / "one.ipynb"
    listed = [
        {"cell_type": "markdown", "source": "DOC = 1"},
        *({"cell_type": "code", "source": cell} for cell in cells),
    ]
    notebook.write_text(json.dumps({"cells": listed}))
    assert exported(notebook) == textwrap.dedent("""\
        from math import sqrt

        SIZE = 3
        @staticmethod
        async def root(x):
            return sqrt(x)  # kept as it stands
        FIRST, SECOND = 1, 2
        """)


CELLS = """
import sys
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance()
for cell in ("class Plain(str):\\n    pass\\n\\ndef made(value):\\n    return Plain(value)",
             "from ffilab.measure.source import source_of\\n_ = sys.stdout.write(source_of(made=made))"):
    shell.user_ns["sys"] = sys
    shell.run_cell(cell).raise_error()
"""


def test_a_class_of_a_cell_goes_with_the_function_that_names_it():
    """inspect finds none of a notebook's own."""
    source = ran(sys.executable, "-c", CELLS, check=True, cwd=ROOT).stdout
    names = {}
    exec(source, names)
    assert names["made"]("a") == "a"
