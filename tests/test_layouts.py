"""Layouts: what a restart draws anew, what of it is on record, and what a page says that it rests on."""

import ctypes
import itertools
import json
import random
import subprocess
from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from made_up import FACTS, timed

from ffilab import chapter, layout_pool
from ffilab.bench import layouts, runner
from ffilab.bench import session as sessions
from ffilab.bench.layouts import AS_INSTALLED, Layout
from ffilab.bench.noise import discard, noisy
from ffilab.bench.plan import COPIED, EMPTY, Arm, control_pair, plan
from ffilab.bench.record import SESSION, Record, Unit, merged
from ffilab.bench.worker import PARTS
from ffilab.bench.workers import PAGE_BYTES
from ffilab.budget import BUDGETS
from ffilab.errors import UserError
from ffilab.judge import basis, ledger, statistics
from ffilab.judge.claims import Claim
from ffilab.judge.estimates import Counted, Location, Measurement
from ffilab.judge.rules import HOLDS, Side
from ffilab.provision import relink
from ffilab.provision.catalogue import BY_LABEL, FREE_THREADED, GIL
from ffilab.provision.installed import load

PAIR = (GIL, FREE_THREADED)
HOSTILE = str(Path(__file__).with_name("hostile_arms.py"))


def pool_of(**counts):
    return {
        label: [Layout(label, n, f"id{n}", n, 1, "python", "native") for n in range(count)]
        for label, count in zip(PAIR, counts.values())
    }


# ---- which layout a restart gets ----


@pytest.mark.parametrize(("count", "restarts"), [(16, 20), (3, 20), (16, 5), (16, 32), (2, 7)])
def test_each_layout_comes_as_often_as_the_others(count, restarts):
    for seed in range(20):
        given = runner.turns(pool_of(gil=count, free=1), restarts, random.Random(seed))
        often = Counter(given)
        assert len(given) == restarts
        assert set(given) <= set(range(count))
        assert len(often) == min(count, restarts)
        assert max(often.values()) - min(often[number] for number in range(count)) <= 1


def test_every_layout_has_its_turn_before_the_next_one():
    given = runner.turns(pool_of(gil=4, free=2), 12, random.Random(1))
    turns = list(itertools.batched(given, 4)) if hasattr(itertools, "batched") else [given[:4], given[4:8], given[8:]]
    assert all(sorted(turn) == list(range(4)) for turn in turns)
    assert len({tuple(turn) for turn in turns}) > 1


def test_layouts_that_come_again_do_not_do_so_at_the_end_only():
    """Else what they tell of restarts would be about the last minutes of a run."""
    first = []
    for seed in range(40):
        given = runner.turns(pool_of(gil=16, free=16), 20, random.Random(seed))
        first.append(next(number for number in range(20) if given[number] in given[:number]))
    assert min(first) < 8
    assert np.mean(first) < 14


def test_the_draw_follows_the_seed_and_one_layout_is_none():
    pool = pool_of(gil=16, free=16)
    assert runner.turns(pool, 20, random.Random(1)) == runner.turns(pool, 20, random.Random(1))
    assert runner.turns(pool, 20, random.Random(1)) != runner.turns(pool, 20, random.Random(2))
    assert runner.turns(pool_of(gil=1, free=1), 5, random.Random(1)) == [None] * 5


def test_what_is_compared_lies_side_by_side_in_a_complete_block():
    arms = [Arm(f"arm {n}", "f", "g", beside="together" if n < 3 else "") for n in range(6)]
    cells = [(label, arm) for label in PAIR for arm in arms]
    seen, order = set(), random.Random(1)
    for _ in range(30):
        block = runner.side_by_side(cells, order)
        assert sorted(block, key=lambda cell: (cell[0], cell[1].name)) == cells
        for which in ({"arm 0", "arm 1", "arm 2"}, {"arm 3"}, {"arm 4"}, {"arm 5"}):
            places = [place for place, (_, arm) in enumerate(block) if arm.name in which]
            assert max(places) - min(places) == len(which) * len(PAIR) - 1
        seen.add(tuple((label, arm.name) for label, arm in block))
    # Their order is random, within a group and between groups.
    assert len(seen) == 30
    assert len({block[0] for block in seen}) > 3


def test_the_controls_lie_side_by_side(smoke):
    made = plan("p", [Arm("mine", "f", "g")], PAIR, smoke)
    block = [arm.name for _, arm in runner.side_by_side(made.cells(), random.Random(2))]
    places = [place for place, name in enumerate(block) if name in (*control_pair(1), *control_pair(2), COPIED)]
    assert max(places) - min(places) < sum(name.startswith("control") for name in block)


# ---- records of several layouts and sessions ----


def a_record(drawn, restarts=None, blocks=3, loops=1000, seed=0, **further):
    """Arm "a" takes 1 µs, arm "b" 1.1 µs; each layout n makes "b" longer by n %."""
    rng = np.random.default_rng(seed)
    restarts = restarts or len(drawn)
    noise = rng.normal(0, 1e-4, (restarts, blocks))
    off = np.zeros(restarts) if drawn is None else np.log1p(np.array(drawn) / 100)
    logs = {"a": noise, "b": noise + np.log(1.1) + off[:, None], EMPTY: noise - 4}
    return timed(logs, drawn, loops, **further)


def test_a_row_of_times_is_a_layout_and_without_layouts_a_restart():
    record = a_record([2, 0, 2, 1])
    assert record.kept == [Unit(0, 1, 2), Unit(0, 1, 0), Unit(0, 1, 1)]
    times = record.times(GIL, "b")
    assert times.shape == (3, 6)
    assert np.isnan(times).sum(axis=1).tolist() == [0, 3, 3]
    assert np.nanmedian(times, axis=1) == pytest.approx([1100 * 1.02, 1100, 1100 * 1.01], rel=1e-3)
    assert record.by_restart(GIL, "b").shape == (4, 3)
    assert statistics.log_ratios_by_restart(record, (GIL, "b"), (GIL, "a")) == pytest.approx(
        np.log(1.1 * np.array([1.02, 1, 1.02, 1.01])), abs=1e-6
    )
    alone = a_record(None, restarts=4)
    assert alone.times(GIL, "b").shape == (4, 3)
    assert [unit.restart for unit in alone.kept] == [0, 1, 2, 3]


def test_a_unit_knows_the_build_that_its_layout_was_linked_from():
    assert [unit.build for unit in a_record([0, 1, 2, 3], builds=3).kept] == [1, 2, 3, 1]


def test_a_restart_that_is_lost_takes_its_layout_along():
    record = a_record([0, 1, 2, 1])
    record.blocks.pop(0)
    assert record.noise.restarts == [1, 2, 3]
    assert record.kept == [Unit(0, 1, 1), Unit(0, 1, 2)]
    assert record.times(GIL, "a").shape == (2, 6)


def test_records_of_several_sessions_are_put_on_one_scale():
    first, second = a_record([0, 1, 1], loops=1000), a_record([0, 1], loops=7000, seed=1)
    both = merged([first, second])
    assert both.kept == [Unit(0, 1, 0), Unit(0, 1, 1), Unit(1, 1, 0), Unit(1, 1, 1)]
    assert np.nanmedian(both.times(GIL, "a"), axis=1) == pytest.approx([1000] * 4, rel=1e-3)
    assert both.by_restart(GIL, "a")[3:] == pytest.approx(second.by_restart(GIL, "a"))
    assert [line["restart"] for line in both.restarts] == [0, 1, 2, SESSION, SESSION + 1]
    # What it was made of is as it was.
    assert [line["restart"] for line in second.restarts] == [0, 1]
    assert second.blocks[0]["ns"][f"{GIL}/a"] == pytest.approx(7e6, rel=1e-3)


def test_sessions_without_layouts_know_their_restarts_apart():
    both = merged([a_record(None, restarts=3), a_record(None, restarts=4)])
    assert [unit.session for unit in both.kept] == [0] * 3 + [1] * 4
    assert len(both.times(GIL, "a")) == 7
    # Made-up records have no lines of restarts.
    bare = [Record(None, one.run, loops=one.loops, blocks=one.blocks) for one in both.sessions]
    assert [unit.session for unit in merged(bare).kept] == [0] * 3 + [1] * 4


def test_the_noise_rule_decides_in_each_session_for_itself():
    quiet, busy = a_record([0, 1, 2, 3], blocks=4), a_record([0, 1, 2, 3], blocks=4, steal_s=1.0)
    for block in quiet.blocks[:4]:
        block["steal_s"] = 1.0
    one = quiet.blocks[5]
    one["steal_s"] = 1.0
    both = merged([quiet, busy])
    # The first loses its first restart, and a block; where noise is normal nothing is lost.
    assert both.noise.restarts == [1, 2, 3, *(SESSION + n for n in range(4))]
    assert both.noise.blocks == {0, 1, 2, 3, 5}
    assert "1 of 4 restarts" in both.noise.report
    assert "normal state" in both.noise.report
    assert merged([busy, quiet]).noise.blocks == {16, 17, 18, 19, 21}
    assert np.isnan(both.times(GIL, "a")).sum() == 1


def test_a_cell_that_one_session_lacks_is_not_measured_in_both():
    """It may have had fewer interpreters, or a tool less."""
    first, second = a_record([0, 1]), a_record([0, 1], blocks=5)
    for block in first.blocks:
        del block["ns"][f"{GIL}/b"]
    del first.loops[f"{GIL}/b"]
    for both in (merged([first, second]), merged([second, first])):
        assert both.measured(GIL, "a")
        assert not both.measured(GIL, "b")
        assert both.times(GIL, "a").shape == both.by_restart(GIL, "a").shape == (4, 5)


def test_the_noise_rule_scales_with_what_a_block_should_last():
    """A block that took ten times as long, as others were on its core, may not have ten times as many interruptions."""
    slow = {"restart": 0, "ns": {"k/a": 1e9}, "involuntary": 60, "steal_s": 0.0}
    assert not noisy(slow)
    assert noisy(slow, block_ns=1e8)
    stolen = {**slow, "involuntary": 0, "steal_s": 0.005}
    assert not noisy(stolen)
    assert noisy(stolen, block_ns=1e8)
    blocks = [{**slow, "restart": n // 4, "involuntary": 60 * (n == 5)} for n in range(16)]
    assert discard(blocks, 4, block_ns=1e8).blocks == {5}
    assert discard(blocks, 4).blocks == set()
    record = a_record([0, 1, 2], blocks=4)
    record.blocks[1]["involuntary"] = 50
    assert record.noise.blocks == {1}


# ---- what a page says that it rests on ----


def rests_on(sessions=1, builds=1, gil=16, free=16):
    return {"sessions": sessions, "builds": dict.fromkeys(PAIR, builds), "layouts": {GIL: gil, FREE_THREADED: free}}


def test_what_numbers_rest_on_in_words():
    drawn = basis.in_words(rests_on())
    assert drawn.startswith("1 session; 3.14: 16 layouts of 1 build; 3.14t: 16 layouts of 1 build. Not varied")
    assert drawn.endswith("unknown: what another session adds, another build, another machine")
    most = basis.in_words(rests_on(sessions=3, builds=3))
    assert most.startswith("3 sessions; 3.14: 16 layouts of 3 builds;")
    assert most.endswith("unknown: another machine")
    assert "another layout" in basis.in_words(rests_on(gil=1))
    assert "1 layout of 1 build" in basis.in_words(rests_on(gil=1))
    # Two sessions know nothing yet of what a session adds.
    assert "another session" in basis.in_words(rests_on(sessions=2))


def test_verdicts_of_one_binary_are_qualified():
    assert basis.one_binary(rests_on()) == []
    assert basis.one_binary(rests_on(free=1)) == [FREE_THREADED]
    assert basis.qualifier(rests_on()) == ""
    assert basis.qualifier(rests_on(gil=1, free=1)) == "of this binary alone"
    # Another interpreter decides no claim.
    other = rests_on()
    other["layouts"]["3.13"] = 1
    assert basis.qualifier(other) == ""


SIDE = Side("x", direction="above", null=1.0, interest=0.05)


def row(estimate, rested):
    claim = Claim("A12", "c", "", "", "", (SIDE,))
    measurements = {"x": Measurement(estimate, "ratio").as_json()}
    provenance = {"is_result": True, "rests_on": rested}
    handed_in = {"measurements": measurements, "missing": {}, "withheld": [], "provenance": provenance}
    return ledger.judge(claim, json.loads(json.dumps(handed_in)))


def an_estimate(drawn):
    record = a_record(drawn, restarts=20)
    return statistics.ratio_over_units(record, (GIL, "b"), (GIL, "a"))


def test_a_row_of_the_ledger_says_what_the_next_build_may_show():
    estimate = an_estimate([*range(16), *range(4)])
    found = row(estimate, rests_on())
    assert found["verdict"] == HOLDS
    assert ledger.verdict_of(found) == HOLDS
    assert list(found["beside"]) == ["x"]
    beside, own = found["beside"]["x"], found["interval"]["x"]
    assert list(beside) == ["the next build", "these binaries alone"]
    assert beside["the next build"][0] < own[0] < own[1] < beside["the next build"][1]
    assert own[0] < beside["these binaries alone"][0] < beside["these binaries alone"][1] < own[1]


def test_a_row_of_one_binary_says_so_and_nothing_of_the_next_build():
    found = row(an_estimate(None), rests_on(gil=1))
    assert ledger.verdict_of(found) == f"{HOLDS} (of this binary alone)"
    assert found["beside"] == {}
    # What was counted, and not timed, has nothing beside it either.
    assert row(Counted(1.2), rests_on())["beside"] == {}
    assert ledger.verdict_of(row(Counted(1.2), rests_on())) == HOLDS


def test_the_three_intervals_have_their_names():
    three = basis.three(an_estimate([*range(16), *range(4)]))
    assert list(three) == ["over layouts", "the next build", "these binaries alone"]
    never_twice = statistics.ratio_over_units(a_record(list(range(8))), (GIL, "b"), (GIL, "a"))
    assert list(basis.three(never_twice)) == ["over layouts", "the next build"]
    assert basis.three(Location.of(np.arange(5.0))) == basis.three(Counted(1.0)) == {}


def test_what_is_drawn_survives_the_hand_in():
    estimate = an_estimate([*range(16), *range(4)])
    again = Measurement.from_json(json.loads(json.dumps(Measurement(estimate, "ratio").as_json()))).estimate
    assert again == estimate
    assert again.next_build == estimate.next_build


# ---- pools ----


def test_without_a_linker_each_interpreter_has_its_own_layout(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(relink, "linker", lambda: None)
    pool = layout_pool.make(tmp_path / "pool", list(PAIR), 4, seed=1)
    assert {label: [one.id for one in known] for label, known in pool.items()} == {
        label: [AS_INSTALLED] for label in PAIR
    }
    assert pool[GIL][0].python == str(load(BY_LABEL[GIL]).python)
    monkeypatch.setenv(layouts.ENVIRONMENT, str(tmp_path / "pool"))
    assert layouts.current(list(PAIR)) == pool
    layout_pool.remove(tmp_path / "pool")
    with pytest.raises(UserError, match="start it again"):
        layouts.current(list(PAIR))
    monkeypatch.delenv(layouts.ENVIRONMENT)
    assert layouts.current([GIL]) == {GIL: [layouts.as_installed(GIL)]}


def test_an_interpreter_that_the_pool_does_not_know_is_taken_as_installed(tmp_path, monkeypatch):
    (tmp_path / layouts.DESCRIPTION).write_text("{}")
    monkeypatch.setenv(layouts.ENVIRONMENT, str(tmp_path))
    assert layouts.current([GIL])[GIL] == [layouts.as_installed(GIL)]


def hostile(function, name=None):
    return Arm(name or function, HOSTILE, function)


@pytest.mark.slow
@pytest.mark.usefixtures("quiet_progress")
def test_without_a_linker_a_run_works_and_its_rows_are_qualified(tmp_path, monkeypatch):
    monkeypatch.setattr(relink, "linker", lambda: None)
    monkeypatch.setattr(sessions, "RECORDS", tmp_path / "records")
    monkeypatch.setenv(layouts.ENVIRONMENT, str(tmp_path / "pool"))
    layout_pool.make(tmp_path / "pool", list(PAIR), 4, seed=1)
    session = sessions.Measuring("corner", list(PAIR))
    record = session.time("fine", [hostile("fine")])
    assert [line["layout"] for line in record.restarts] == [None] * session.budget.restarts
    assert {line["layouts"][GIL]["id"] for line in record.restarts} == {AS_INSTALLED}
    assert record.times(GIL, "fine").shape == record.by_restart(GIL, "fine").shape
    assert session.rests_on == rests_on(gil=1, free=1)
    found = row(
        statistics.ratio_over_units(record, (FREE_THREADED, "fine"), (GIL, "fine")), session.provenance["rests_on"]
    )
    assert found["qualifier"].endswith(basis.ONE_BINARY)
    assert found["beside"] == {}


@pytest.mark.slow
@pytest.mark.usefixtures("quiet_progress")
def test_the_environment_is_longer_by_another_number_in_each_restart(smoke, tmp_path):
    def seen(seed, folder):
        made = plan("p", [hostile("padding")], [GIL], smoke, seed, with_controls=False)
        record = runner.run(made, tmp_path / folder)
        by_restart = [{block["ns"][f"{GIL}/padding"] // PARTS - 1 for block in record.blocks if block["restart"] == n}
                      for n in range(smoke.restarts)]  # fmt: skip
        assert all(len(each) == 1 for each in by_restart)
        return [number for (number,) in by_restart]

    first = seen(1, "first")
    assert len(set(first)) > 1
    assert all(0 <= number < PAGE_BYTES for number in first)
    assert first == seen(1, "again") != seen(2, "other")


# ---- layouts that are linked ----

LACKING = [lacking for label in PAIR if (lacking := relink.missing(label))]
LINKED = pytest.mark.skipif(bool(LACKING), reason="; ".join(LACKING))


@pytest.fixture(scope="module")
def pool(tmp_path_factory):
    return layout_pool.make(tmp_path_factory.mktemp("layouts") / "pool", list(PAIR), 2, seed=5)


def said(layout, code):
    """What a program prints that runs on a layout, as JSON."""
    done = subprocess.run([layout.python, "-I", "-c", f"import json\n{code}"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.slow
@LINKED
def test_layouts_differ_and_follow_their_seed(pool, tmp_path):
    assert {label: [one.number for one in known] for label, known in pool.items()} == {label: [0, 1] for label in PAIR}
    every = [one for known in pool.values() for one in known]
    assert len({one.id for one in every}) == len({one.seed for one in every}) == 4
    again = layout_pool.make(tmp_path / "again", [GIL], 1, seed=5)[GIL][0]
    assert again.described == pool[GIL][0].described
    assert layouts.read(Path(pool[GIL][0].python).parents[4]) == pool


@pytest.mark.slow
@LINKED
@pytest.mark.parametrize("label", PAIR)
def test_a_layout_finds_its_own_parts_and_the_packages_of_its_interpreter(pool, label):
    code = (
        "import _ctypes, os, sys, sysconfig, numpy, math\n"
        "maps = [line.split()[-1] for line in open('/proc/self/maps') if 'libffi' in line]\n"
        "print(json.dumps([_ctypes.__file__, os.__file__, numpy.__file__, maps[0], sys.version, sys.prefix, sys.path]))"
    )
    layout, home = pool[label][0], Path(pool[label][0].python).parents[2]
    ctypes_file, library, numpy_file, libffi, version, prefix, path = said(layout, code)
    assert Path(ctypes_file).is_relative_to(home)
    assert not Path(ctypes_file).is_symlink()
    assert Path(library).is_relative_to(home)
    assert Path(libffi).is_relative_to(home)
    assert Path(prefix) == home / "environment"
    assert Path(numpy_file).resolve().is_relative_to(load(BY_LABEL[label]).python.parents[1].resolve())
    assert ("free-threading" in version) == (label == FREE_THREADED)
    assert all(Path(entry).is_relative_to(home) for entry in path)
    installed = layouts.as_installed(label)
    assert version == said(installed, "import sys\nprint(json.dumps(sys.version))")


@pytest.mark.slow
@LINKED
@pytest.mark.parametrize("label", PAIR)
def test_the_hot_part_of_a_layout_stays_in_front_of_the_normal_one(pool, label):
    known = relink.functions(label)
    parts = {".text.unlikely.", ".text.hot.", relink.NORMAL}
    names = Counter(function.symbol for function in known)
    of = {function.symbol: function.part for function in known if names[function.symbol] == 1}
    middles = []
    for layout in pool[label]:
        order = relink.order_of(Path(layout.python).resolve())
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


@pytest.mark.slow
@LINKED
@pytest.mark.parametrize("label", PAIR)
def test_extensions_of_a_layout_answer_as_those_of_the_interpreter(pool, label):
    expected = [2.5, 3, [1, 2, 3, 4, 5], 8 + ctypes.alignment(ctypes.c_double), 3]
    assert said(layouts.as_installed(label), LAY) == expected
    assert all(said(layout, LAY) == expected for layout in pool[label])


@pytest.mark.slow
@LINKED
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


@pytest.mark.slow
@LINKED
@pytest.mark.usefixtures("quiet_progress")
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


@pytest.mark.parametrize(("gil", "said"), [(1, True), (16, False)])
def test_a_page_says_at_its_top_that_it_knows_one_binary(gil, said, monkeypatch):
    shown = []
    session = SimpleNamespace(
        budget=BUDGETS["quick"],
        machine=FACTS,
        record=SimpleNamespace(run={"interpreters": {}}),
        interpreters=[GIL],
        rests_on=rests_on(gil=gil),
    )
    monkeypatch.setattr(chapter, "assert_gil", lambda enabled: None)
    monkeypatch.setattr(chapter, "open_session", lambda corner, labels: session)
    monkeypatch.setattr(chapter, "display", lambda page: shown.append(page.data))
    monkeypatch.setattr(chapter.draw, "start_page", lambda *_: None)
    assert chapter.begin("loaders", gil_enabled=True) is session
    assert ("*this binary*" in shown[0]) == said
