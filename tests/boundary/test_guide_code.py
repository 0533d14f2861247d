"""The C++ that the decision guide shows: the six lines hang, and the fix does not, with the GIL and without it."""

import re
import subprocess

import pytest

from ffilab.run.paths import ROOT
from tests.helpers.environment import python_of, ran

pytestmark = pytest.mark.full
SHOWN = re.findall(r"^```cpp\n(.*?)^```", (ROOT / "book" / "decision_guide.md").read_text(), re.M | re.S)
MODULE = """#include <pybind11/pybind11.h>
#include <mutex>
namespace py = pybind11;
{hangs}
void mended(py::function write, py::str line) {{
{mended}
}}
PYBIND11_MODULE(six, module, py::mod_gil_not_used()) {{ module.def("hangs", report).def("mended", mended); }}
"""
# Two threads, each of which runs Python under the lock; `collect` stops the world in it.
CALLS = """import faulthandler, gc, sys, threading, time
faulthandler.dump_traceback_later(int(sys.argv[2]), exit=True)
import six
def write(line):
    end = time.perf_counter() + 0.02
    while time.perf_counter() < end:
        pass
    gc.collect()
threads = [threading.Thread(target=lambda: [getattr(six, sys.argv[1])(write, "x") for _ in range(10)]) for _ in "ab"]
[thread.start() for thread in threads], [thread.join() for thread in threads]
"""


def test_the_six_lines_hang_and_the_fix_does_not(build, tmp_path):
    python = python_of(build)
    hangs, mended = SHOWN
    (tmp_path / "six.cpp").write_text(MODULE.format(hangs=hangs, mended=mended))
    includes = ran(python, "-m", "pybind11", "--includes", check=True)
    flags = ["-std=c++17", "-O1", "-shared", "-fPIC", *includes.stdout.split()]
    subprocess.run(["g++", *flags, "six.cpp", "-o", "six.so"], cwd=tmp_path, check=True)
    for function, code, limit_s in (("hangs", 1, "5"), ("mended", 0, "60")):
        ended = ran(python, "-c", CALLS, function, limit_s, cwd=tmp_path)
        assert ended.returncode == code, (function, ended.stderr)
        assert ("Timeout" in ended.stderr) == bool(code)
