"""One file of the limited API serves many interpreters: abi3 those with a GIL, abi3t those from 3.15 on with a GIL or
without."""

import re
import shutil

import pytest

from ffilab.run.paths import NATIVE_OUT
from ffilab.setup.catalogue import BY_LABEL
from ffilab.setup.installed import load, soabi
from tests.helpers.environment import python_of, ran

CALLS = """
import sys
sys.path.insert(0, sys.argv[1])
m = __import__(sys.argv[2])
counter, point = m.Counter(5), m.Point(3.0, 4.0)
assert (m.add_one(1), m.code_points("mind thé gap"), m.sum_list([1, 2]), counter.add(2)) == (2, 12, 3, 7)
m.scale(point, 2.0)
assert (point.x, m.dot(point), m.apply(m.callback(abs), -3), m.apply_detached(abs, -3)) == (6.0, 100.0, 3, 3)
print(m.__file__.rpartition("/")[2], sys._is_gil_enabled())
"""


def built_on(label, name="boundary_c_api_limited"):
    """The file that was built on an interpreter."""
    [file] = (NATIVE_OUT / "boundary" / soabi(load(BY_LABEL[label]))).glob(f"{name}.*.so")
    return file


def imported_on(label, folder, module="boundary_c_api_limited"):
    """What the calls above print with the file that lies alone in a folder."""
    return ran(python_of(label), "-c", CALLS, folder, module, timeout=60)


def alone(file, folder):
    folder.mkdir()
    shutil.copy(file, folder)
    return folder


@pytest.mark.parametrize("file", ["boundary_c_api_limited", "STABLE_ABI/boundary_nanobind"])
def test_one_abi3_file_serves_its_interpreter_and_all_later_ones_with_a_gil(labels, tmp_path, file):
    with_gil = sorted(label for label in labels if not BY_LABEL[label].free_threaded)
    module = file.rpartition("/")[2]
    for number, label in enumerate(with_gil):
        folder = alone(built_on(label, file), tmp_path / label)
        # From 3.15 on the file's name holds the platform too, and no earlier version looks for such a name.
        for other in with_gil[number:]:
            done = imported_on(other, folder, module)
            assert re.fullmatch(rf"{module}\.abi3(-.*)?\.so True\n", done.stdout), (label, other, done.stderr)


def test_one_abi3t_file_serves_with_a_gil_and_without(labels, tmp_path):
    if "3.15t" not in labels:
        pytest.skip("abi3t begins with 3.15t, which is not set up here")
    folder = alone(built_on("3.15t"), tmp_path / "abi3t")
    for label in labels:
        done = imported_on(label, folder)
        if BY_LABEL[label].version < "3.15":
            assert "ModuleNotFoundError" in done.stderr, label
        else:
            gil = not BY_LABEL[label].free_threaded
            name = r"boundary_c_api_limited\.abi3t(-.*)?\.so"
            assert re.fullmatch(rf"{name} {gil}\n", done.stdout), (label, done.stdout, done.stderr)
