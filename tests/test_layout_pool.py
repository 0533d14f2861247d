"""Pools of layouts: links of an interpreter and of what it loads, from which it runs."""

import ctypes
import json
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from ffilab.measure import runner
from ffilab.measure.plan import plan
from ffilab.measure.worker import PARTS
from ffilab.measure.workers import PAGE_BYTES
from ffilab.run.errors import UserError
from ffilab.setup import layout_pool, layouts, relink
from ffilab.setup.catalogue import FREE_THREADED, GIL
from ffilab.setup.layouts import AS_INSTALLED
from tests.helpers.environment import order_of, python_of, ran
from tests.helpers.of_chapter import hostile

pytestmark = pytest.mark.usefixtures("quiet_progress", "quiet_machine")
PAIR = (GIL, FREE_THREADED)


def test_without_a_linker_each_interpreter_has_its_own_layout(tell, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(relink.linker, "find", lambda: None)
    pool = layout_pool.make(tmp_path / "pool", list(PAIR), 4, seed=1)
    ids = {label: [one.id for one in known] for label, known in pool.items()}
    assert ids == {label: [AS_INSTALLED] for label in PAIR}
    assert pool[GIL][0].python == str(python_of(GIL))
    tell(layouts=str(tmp_path / "pool"))
    assert layouts.current(list(PAIR)) == pool
    layout_pool.remove(tmp_path / "pool")
    with pytest.raises(UserError, match="start it again"):
        layouts.current(list(PAIR))
    tell(layouts=None)
    assert layouts.current([GIL]) == {GIL: [layouts.as_installed(GIL)]}


def test_an_interpreter_that_the_pool_does_not_know_is_taken_as_installed(tell, tmp_path, monkeypatch):
    (tmp_path / layouts.DESCRIPTION).write_text("{}")
    tell(layouts=str(tmp_path))
    assert layouts.current([GIL])[GIL] == [layouts.as_installed(GIL)]


@pytest.mark.full
def test_the_environment_is_longer_by_another_number_in_each_restart(smoke, tmp_path):
    def seen(seed, folder):
        made = plan("p", [hostile("padding")], [GIL], smoke, seed, with_controls=False)
        record = runner.run(made, tmp_path / folder)
        by_restart = [
            {block["ns"][f"{GIL}/padding"] // PARTS - 1 for block in record.blocks if block["restart"] == n}
            for n in range(smoke.restarts)
        ]
        assert all(len(each) == 1 for each in by_restart)
        return [number for (number,) in by_restart]

    first = seen(1, "first")
    assert len(set(first)) > 1
    assert all(0 <= number < PAGE_BYTES for number in first)
    assert first == seen(1, "again") != seen(2, "other")


# ---- layouts that are linked ----

LACKING = [lacking for label in PAIR if (lacking := relink.missing(label))]


def of_linked(test):
    """Mark a test of layouts that were linked."""
    return pytest.mark.full(pytest.mark.skipif(bool(LACKING), reason="; ".join(LACKING))(test))


@pytest.fixture(scope="module")
def pool(tmp_path_factory):
    return layout_pool.make(tmp_path_factory.mktemp("layouts") / "pool", list(PAIR), 2, seed=5)


def said(layout, code):
    """What a program prints that runs on a layout, as JSON."""
    done = ran(layout.python, "-I", "-c", f"import json\n{code}")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@of_linked
def test_layouts_differ_and_follow_their_seed(pool, tmp_path):
    assert {label: [one.number for one in known] for label, known in pool.items()} == {label: [0, 1] for label in PAIR}
    every = [one for known in pool.values() for one in known]
    assert len({one.id for one in every}) == len({one.seed for one in every}) == 4
    again = layout_pool.make(tmp_path / "again", [GIL], 1, seed=5)[GIL][0]
    assert again.described == pool[GIL][0].described
    assert layouts.read_pool(Path(pool[GIL][0].python).parents[4]) == pool


@of_linked
def test_a_layout_finds_its_own_parts_and_the_packages_of_its_interpreter(pool, build):
    code = (
        "import _ctypes, os, sys, sysconfig, numpy, math\n"
        "maps = [line.split()[-1] for line in open('/proc/self/maps') if 'libffi' in line]\n"
        "print(json.dumps([_ctypes.__file__, os.__file__, numpy.__file__, maps[0], sys.version, sys.prefix, sys.path]))"
    )
    layout, home = pool[build][0], Path(pool[build][0].python).parents[2]
    ctypes_file, library, numpy_file, libffi, version, prefix, path = said(layout, code)
    assert Path(ctypes_file).is_relative_to(home)
    assert not Path(ctypes_file).is_symlink()
    assert Path(library).is_relative_to(home)
    assert Path(libffi).is_relative_to(home)
    assert Path(prefix) == home / "environment"
    assert Path(numpy_file).resolve().is_relative_to(python_of(build).parents[1].resolve())
    assert ("free-threading" in version) == (build == FREE_THREADED)
    assert all(Path(entry).is_relative_to(home) for entry in path)
    installed = layouts.as_installed(build)
    assert version == said(installed, "import sys\nprint(json.dumps(sys.version))")


@of_linked
def test_the_hot_part_of_a_layout_stays_in_front_of_the_normal_one(pool, build):
    known = relink.functions(build)
    parts = {".text.unlikely.", ".text.hot.", relink.NORMAL}
    names = Counter(function.symbol for function in known)
    of = {function.symbol: function.part for function in known if names[function.symbol] == 1}
    middles = []
    for layout in pool[build]:
        order = order_of(Path(layout.python).resolve())
        places = {part: [place for place, name in enumerate(order) if of.get(name) == part] for part in parts}
        assert len(places[".text.hot."]) > 100
        # Some of them the linker may place as it has to.
        assert np.quantile(places[".text.hot."], 0.98) < np.quantile(places[relink.NORMAL], 0.02)
        assert np.quantile(places[".text.unlikely."], 0.98) < np.quantile(places[".text.hot."], 0.02)
        middles.append([name for name in order if of.get(name) == ".text.hot."])
    assert set(middles[0]) == set(middles[1])
    assert middles[0] != middles[1]


LAY = """
import ctypes
libc = ctypes.CDLL(None)
class Pair(ctypes.Structure):
    _fields_ = [("a", ctypes.c_double), ("b", ctypes.c_int)]
libc.strtod.restype, libc.div.restype = ctypes.c_double, ctypes.c_longlong
compare = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_int), ctypes.POINTER(ctypes.c_int))
numbers = (ctypes.c_int * 5)(5, 3, 1, 4, 2)
libc.qsort(numbers, 5, ctypes.sizeof(ctypes.c_int), compare(lambda one, other: one[0] - other[0]))
print(json.dumps([libc.strtod(b"2.5", None), libc.abs(-3), list(numbers), ctypes.sizeof(Pair), libc.strlen(b"abc")]))
"""


@of_linked
def test_extensions_of_a_layout_answer_as_those_of_the_interpreter(pool, build):
    expected = [2.5, 3, [1, 2, 3, 4, 5], 8 + ctypes.alignment(ctypes.c_double), 3]
    assert said(layouts.as_installed(build), LAY) == expected
    assert all(said(layout, LAY) == expected for layout in pool[build])


@of_linked
def test_what_is_copied_lies_in_pages_of_its_own(pool):
    """Other inodes, the same bytes, without what debuggers read."""
    for label, known in pool.items():
        installed = relink.prefix(label) / "lib" / f"python{label}" / "lib-dynload"
        copies = [Path(one.python).resolve().parents[1] / "lib" / f"python{label}" / "lib-dynload" for one in known]
        modules = sorted(path.name for path in installed.glob("*.so"))
        assert len(modules) > 20
        for name in modules:
            files = [installed / name, *(folder / name for folder in copies)]
            assert not any(path.is_symlink() for path in files)
            assert len({path.stat().st_ino for path in files}) == 3
            # Linked again, and not copied.
            contents = {path.read_bytes() for path in files[1:]}
            assert len(contents) == (2 if name.startswith(relink.CTYPES + ".") else 1)
            assert files[1].stat().st_size < files[0].stat().st_size
    assert not any(Path(one.python).resolve().is_symlink() for known in pool.values() for one in known)


@of_linked
def test_a_run_on_a_pool_says_which_layout_each_restart_had(pool, smoke, tmp_path):
    made = plan("p", [hostile("fine"), hostile("program")], PAIR, smoke, seed=3, with_controls=False)
    record = runner.run(made, tmp_path, pool=pool)
    assert Counter(line["layout"] for line in record.restarts) == dict.fromkeys((0, 1), smoke.restarts // 2)
    for line in record.restarts:
        assert line["layouts"] == {label: pool[label][line["layout"]].described for label in PAIR}
    units = {line["layout"] for line in record.restarts if line["restart"] in record.noise.restarts}
    for label in PAIR:
        assert len(record.times(label, "fine")) == len(units)
        assert len(record.by_restart(label, "fine")) == len(record.noise.restarts)
    # All workers ran what was drawn.
    inode = {label: [1 + Path(one.python).stat().st_ino % 99_991 for one in known] for label, known in pool.items()}
    layout = {line["restart"]: line["layout"] for line in record.restarts}
    for block in record.blocks:
        for label in PAIR:
            parts = len(block["probes"][f"{label}/program"]) - 1
            assert block["ns"][f"{label}/program"] == parts * inode[label][layout[block["restart"]]]


@of_linked
def test_the_default_link_is_measured_once_beside_the_pool(pool, smoke, tmp_path, tell):
    tell(progress=str(tmp_path / "progress"), layouts=str(Path(pool[GIL][0].python).parents[4]))
    record = runner.run(plan("p", [hostile("program")], PAIR, smoke, with_controls=False), tmp_path)
    assert len(record.restarts) == smoke.restarts
    assert {line["layout"] for line in record.restarts} == {0, 1}
    assert len(record.default.restarts) == 1
    for label in PAIR:
        inode = 1 + Path(layouts.as_installed(label).python).stat().st_ino % 99_991
        for block in record.default.blocks:
            parts = len(block["probes"][f"{label}/program"]) - 1
            assert block["ns"][f"{label}/program"] == parts * inode
        assert record.default_link(label, "program").shape == (smoke.blocks,)


def test_what_was_built_since_is_linked_for_the_layouts_of_the_last_time(tmp_path, monkeypatch):
    """So that a second chapter opens in JupyterLab in seconds: no interpreter is linked again for it."""
    made, linked = [], []
    built = tmp_path / "native"
    monkeypatch.setattr(layout_pool, "NATIVE_OUT", built)
    monkeypatch.setattr(layout_pool, "link_again", lambda pool, chapter: linked.append(chapter.name) or pool)

    def make(folder, labels, count, seed):
        folder.mkdir(exist_ok=True)
        made.append(count)
        layout_pool.describe(folder, {})
        return {}

    monkeypatch.setattr(layout_pool, "make", make)

    def ready(count, *chapters):
        for chapter in chapters:
            (built / chapter).mkdir(parents=True)
            (built / chapter / "libtiny.so").touch()
        layout_pool.ready(tmp_path / "pool", [GIL], count, seed=1)
        return made, linked

    assert ready(4, "loaders") == ([4], [])
    assert ready(4, "races", "my-races") == ([4], ["races"])
    # There are enough.
    assert ready(2) == ([4], ["races"])
    assert ready(6) == ([4, 6], ["races"])
