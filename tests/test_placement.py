"""The chapter on code placement: the simulation shows the geometry that was put in; chance is not taken for an effect."""

import itertools
import shutil
import subprocess
from collections import Counter
from contextlib import nullcontext
from types import SimpleNamespace

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

from ffilab import doctor
from ffilab.bench import case, profile
from ffilab.bench.session import Measuring, Reading
from ffilab.errors import UserError
from ffilab.judge import verdicts
from ffilab.judge.characteristics import rows
from ffilab.judge.claims import declared
from ffilab.judge.estimates import LEVEL, Counted, Location, Measurement, Share, Spread
from ffilab.judge.processes import exact, extremes, range_without_noise, ratio_of_groups
from ffilab.judge.rules import DOES_NOT_HOLD, HOLDS, UNDECIDED
from ffilab.provision import relink
from ffilab.provision.catalogue import FREE_THREADED, GIL
from notebooks.placement import claims, exercise, experiment, figures, lottery, results, story, words
from notebooks.placement.experiment import APART, DENSE, MANY, PACKED, SPREAD, USUAL, WESTMERE, Cache

VALGRIND = pytest.mark.skipif(not shutil.which("valgrind"), reason="there is no valgrind")


def lacking() -> str | None:
    """Why the lottery's interpreters cannot be linked again here; None if they can."""
    try:
        return next(filter(None, map(relink.missing, lottery.BUILDS)), None)
    except UserError as error:
        return str(error)


CAN_RELINK = pytest.mark.skipif(lacking() is not None, reason=str(lacking()))


# ---- the mechanism ----


@pytest.mark.slow
@VALGRIND
@pytest.mark.parametrize("cache", [USUAL, WESTMERE], ids=lambda cache: cache.name)
def test_the_simulated_cache_has_the_ways_that_were_put_in(cache):
    """At the distance of one way, as many functions as there are ways run without a miss, and one more never does."""
    fit = results.computed_fit(cache, APART)
    assert experiment.misses_per_call(APART, fit, cache) == 0
    assert experiment.misses_per_call(APART, fit + 2, cache) > 0.9
    assert experiment.misses_per_call(64, 64, cache) == 0


@pytest.mark.slow
@VALGRIND
def test_as_many_pages_in_all_sets_miss_nothing():
    """The control that tells pages from sets: a simulator without a TLB must see no difference between it and few pages."""
    assert experiment.misses_per_call(SPREAD, MANY, USUAL) == experiment.misses_per_call(DENSE, MANY, USUAL) == 0
    assert experiment.misses_per_call(APART, MANY, USUAL) > 0.9


def test_the_picture_shows_which_sets_and_pages_are_met():
    assert [results.sets_met(USUAL, distance) for distance in (DENSE, SPREAD, APART)] == [64, 64, 1]
    assert [results.pages_met(distance, MANY) for distance in (DENSE, SPREAD, APART)] == [4, 256, 256]
    assert results.sets_met(WESTMERE, APART) == 2
    assert set(results.lines_by_set(USUAL, SPREAD, MANY)) == {4}
    assert results.lines_by_set(USUAL, APART, MANY).max() == MANY
    bits = figures.address_bits(WESTMERE).set_index("what")
    assert tuple(bits.loc["set of the cache"]) == (6, 12)
    assert "at 4160 bytes, sets 64 and pages 256" in figures.addresses_alt(USUAL)
    figure = plt.figure(layout="constrained")
    figures.plot_addresses(figure, USUAL)
    assert len(figure.axes) == 4
    plt.close(figure)


# Addresses this far apart meet in the same set.
WAY_BYTES = USUAL.size // USUAL.ways


def test_what_a_cache_can_hold():
    assert results.computed_fit(USUAL, 64) == USUAL.size // USUAL.line
    assert results.computed_fit(USUAL, WAY_BYTES) == USUAL.ways
    assert results.computed_fit(USUAL, 2 * WAY_BYTES) == USUAL.ways
    assert results.computed_fit(USUAL, WAY_BYTES // 2) == 2 * USUAL.ways
    assert results.computed_fit(WESTMERE, APART) == 8
    assert results.computed_fit(USUAL, SPREAD) == results.computed_fit(USUAL, DENSE)


def test_the_system_says_what_its_cache_is(tmp_path):
    folder = tmp_path / "index1"
    folder.mkdir()
    for name, value in (
        ("type", "Instruction"),
        ("size", "48K"),
        ("ways_of_associativity", "12"),
        ("coherency_line_size", "64"),
    ):
        (folder / name).write_text(value + "\n")
    assert Cache(**experiment.reported_cache(tmp_path)) == Cache("this machine", 49152, 12, 64)
    assert Cache(**experiment.reported_cache(tmp_path / "nothing")) == USUAL


@pytest.fixture
def session(quiet_progress):
    return Measuring("placement", [])


@pytest.mark.slow
def test_the_programs_measure_every_case(session):
    runs = experiment.distances(session)
    assert set(runs.distance) == {16, 64, 128, 256, 512, 1024, 2048, 4096, 4160, 8192}
    assert (runs.groupby(["process", "distance", "n"]).size() == 1).all()
    assert runs[runs.distance == APART].n.max() == 256
    assert (runs.ns > 0).all()
    loops = experiment.loops(session)
    assert sorted(loops[loops.process == 0].offset) == list(range(64))


@pytest.mark.slow
def test_the_environment_has_the_size_that_was_asked_for(session, monkeypatch):
    monkeypatch.setattr(experiment, "ENVIRONMENT_BYTES", (0, 2048))
    runs = experiment.environments(session)
    assert set(runs.bytes) == {0, 2048}
    assert True in set(runs.random)
    assert (runs.ns > 0).all()
    assert set(results.environments_apart(runs)) <= set(figures.ADDRESSES)
    fixed = runs[~runs.random]
    assert len(fixed.drop_duplicates(["bytes", "stack"])) == fixed.bytes.nunique()


def made_up_distances(ways, of_pages=1.0):
    """Packed calls take 1 ns; at 4096 bytes 4 ns from the first function on that has no way left; 2048 bytes has twice the ways.
    of_pages: what a page for each function costs."""
    rng = np.random.default_rng(2)
    room = {APART: ways, 2048: 2 * ways}
    return pd.DataFrame(
        [
            {
                "process": process,
                "distance": distance,
                "n": n,
                "ns": (4.0 if n > room.get(distance, 1e9) else 1.0)
                * (of_pages if distance in (SPREAD, APART) else 1)
                * np.exp(rng.normal(0, 0.02)),
            }
            for process in range(10)
            for distance in (PACKED, DENSE, 2048, SPREAD, APART)
            for n in (1, 2, 4, 6, 8, 10, 12, 16, 20, 24, 32, 64, 128, 256)
        ]
    )


def test_the_ways_are_read_off_the_clock():
    runs = made_up_distances(12)
    assert results.fits(runs, APART) == (12.0, 16.0)
    assert results.fits(runs, 64) == (256.0, float("inf"))
    assert np.isnan(results.fits(runs[runs.process < 2], APART)).all()
    assert not results.too_slow_before(runs, APART)
    bump = runs.assign(ns=runs.ns.where((runs.n != 4) | (runs.distance != APART), 1.3 * runs.ns))
    assert results.fits(bump, APART) == (12.0, 16.0)
    assert list(results.too_slow_before(bump, APART)) == [4]

    def said(ways):
        return words.stay_fast(*results.fits(made_up_distances(ways), APART), {}, USUAL)

    assert "up to 12 functions do not take 1.1 times as long" in said(12)
    assert "An explanation, not tested" in said(12)
    assert "agree" in said(8)
    assert "Something smaller" in said(4)
    assert "no number of functions" in said(1000)
    over = results.fits_over(runs, 2048, APART)
    assert (over.low, over.value, over.high) == (24 / 16, 2, 32 / 12)
    assert "leaves open" in words.two_sets(over)
    assert not results.fits_over(made_up_distances(1000), 2048, APART).is_known
    assert list(figures.fits_table(runs, USUAL)["n (processes)"]) == [10] * 5
    ratio = figures.apart_table(runs).set_index("functions")["sets: 4096 / 4160"][256]
    assert ratio.startswith(("3.9", "4.0"))


@pytest.mark.parametrize(
    ("ways", "of_pages", "expected"),
    [
        (12, 1.0, "the instruction TLB does not explain it"),
        (12, 2.0, "the sets more than the pages"),
        (1000, 2.0, "think of the instruction TLB first"),
        (1000, 1.0, "cannot be told"),
    ],
)
def test_pages_are_told_from_sets(ways, of_pages, expected):
    runs = made_up_distances(ways, of_pages)
    assert expected in words.pages_or_sets(results.price_of_pages(runs), results.price_of_sets(runs))


def test_simulation_and_clock_are_compared(monkeypatch):
    found = results.table(
        [
            {"cache": USUAL.name, "distance": distance, "n": n, "misses": float(n > fit)}
            for distance, fit in ((DENSE, 448), (SPREAD, 448), (APART, 8))
            for n in experiment.SIMULATED[distance]
        ]
    )
    glued = {}
    monkeypatch.setattr(figures.draw, "glue", glued.__setitem__)
    figures.glue_simulated(made_up_distances(8), found, "no counters", USUAL)
    assert "They agree in direction" in glued["agreement"]
    assert "8 functions at 4096 bytes run without a miss" in glued["simulated-geometry"]
    assert ": 8 ways." in glued["simulated-geometry"]
    assert "30 KiB" in glued["simulated-geometry"]  # 448 lines, and 448 calls
    assert "no counters" in glued["counted"]
    figures.glue_simulated(made_up_distances(1000), results.table("no valgrind"), "no counters", USUAL)
    assert "no valgrind" in glued["agreement"]


# ---- choosing the extremes ----


@pytest.mark.slow
def test_extremes_of_noise_are_one():
    """Thirty cases that do not differ: the interval covers 1 about as often as it says, and its middle is 1."""
    rng = np.random.default_rng(5)
    found = [extremes(rng.normal(0, 0.03, (30, 10))) for _ in range(300)]
    assert np.mean([interval.low <= 1 <= interval.high for interval in found]) >= 0.9
    assert np.median([interval.value for interval in found]) == pytest.approx(1, abs=0.005)
    assert np.isnan(extremes(np.zeros((30, 1))).value)


def test_extremes_that_differ_are_found():
    rng = np.random.default_rng(6)
    truth = np.linspace(0, 0.1, 30)[:, None]
    found = [extremes(truth + rng.normal(0, 0.02, (30, 10))) for _ in range(100)]
    assert np.mean([interval.low > 1 for interval in found]) > 0.95
    assert np.median([interval.value for interval in found]) == pytest.approx(np.exp(0.083), abs=0.01)


@pytest.mark.parametrize("sd", [0.0, 0.01, 0.03])
@pytest.mark.parametrize("noise", ["normal", "heavy tails", "far out"])
def test_the_range_without_noise_covers_the_truth(sd, noise):
    """Thirty orders whose true effects scatter by `sd`; ten rounds with a noise of 3 %."""
    rng = np.random.default_rng(7)
    truth = np.exp(sd * np.ptp(rng.normal(size=(20_000, 30)), axis=1).mean())

    def draw():
        errors = 0.02 * rng.standard_t(4, (30, 10)) if noise == "heavy tails" else rng.normal(0, 0.03, (30, 10))
        if noise == "far out":
            # One round in twenty-five runs a fifth faster, as was seen.
            errors = np.where(rng.random((30, 10)) < 0.04, -0.2, errors / 2)
        return range_without_noise(rng.normal(0, sd, (30, 1)) + errors)

    found = [draw().at() for _ in range(400)]
    covered = np.mean([interval.low <= truth + 1e-9 and truth <= interval.high + 1e-9 for interval in found])
    assert covered >= 0.92
    if sd == 0:
        # An interval without 1 although nothing differs.
        assert np.mean([interval.low > 1 for interval in found]) <= 0.05
    assert np.isnan(range_without_noise(np.zeros((30, 2))).at().value)


def test_a_round_that_is_far_off_does_not_hide_what_differs():
    """Fifteen orders that differ, six rounds of 150 far out, each in another order."""
    rng = np.random.default_rng(10)
    found = []
    for _ in range(100):
        logs = rng.normal(0, 0.02, (15, 1)) + rng.normal(0, 0.015, (15, 10))
        logs[np.arange(6), rng.integers(0, 10, 6)] -= 0.2
        found.append(range_without_noise(logs, 30).at())
    assert np.mean([interval.low > 1.02 for interval in found]) > 0.9
    assert np.median([interval.value for interval in found]) == pytest.approx(np.exp(0.02 * 4.09), abs=0.01)


def test_the_range_of_orders_gives_its_interval_at_any_level():
    rng = np.random.default_rng(8)
    found = range_without_noise(rng.normal(0, 0.02, (90, 1)) + rng.normal(0, 0.03, (90, 10)), 30)
    narrow, wide = found.at(0.8), found.at(LEVEL)
    assert wide.low < narrow.low < wide.value == narrow.value < narrow.high < wide.high
    assert found.n == 90
    assert found.mde == pytest.approx(0.03, abs=0.015)
    assert found.factor(2 * wide.half_width) == pytest.approx(0.25)
    kept = Measurement(found, "ratio")
    assert Measurement.from_json(kept.as_json()) == kept
    # A range of thirty, however many were drawn; and noise that is no noise leaves the scatter of the cases alone.
    assert range_without_noise(np.repeat(rng.normal(0, 0.02, (90, 1)), 3, axis=1), 30).at().value == pytest.approx(
        np.exp(0.02 * 4.09), abs=0.02
    )
    assert range_without_noise(np.zeros((30, 10))).at().high == 1


def test_two_groups_are_compared_with_the_noise_of_both():
    rng = np.random.default_rng(9)
    covered = []
    for _ in range(400):
        interval = ratio_of_groups(rng.normal(0.1, 0.06, 50), rng.normal(0.0, 0.02, 30)).interval
        covered.append(interval.low <= np.exp(0.1) <= interval.high)
    assert np.mean(covered) >= 0.95
    assert ratio_of_groups(np.zeros(5), np.zeros(0)) is None
    assert ratio_of_groups(np.zeros(5), np.zeros(5)).interval.low == 1


# ---- the lottery ----


def in_order(placed: list[str], wanted: list[str]) -> float:
    """Share of neighbours in one list of functions that stand in the same order in another; those of one name are left out."""
    once = set.intersection(*({name for name, n in Counter(names).items() if n == 1} for names in (placed, wanted)))
    known = [name for name in wanted if name in once]
    assert len(known) > 0.9 * len(wanted)
    position = {name: number for number, name in enumerate(placed)}
    return float(np.mean([position[a] < position[b] for a, b in itertools.pairwise(known)]))


# mold takes a seed, and no order.
TAKES_ORDERS = [name for name, (_, line) in relink.LINKERS.items() if line and shutil.which(f"ld.{name}")]


@pytest.mark.slow
@CAN_RELINK
@pytest.mark.parametrize("label", lottery.BUILDS)
@pytest.mark.parametrize("name", TAKES_ORDERS)
def test_the_orders_are_what_the_page_says_of_them(name, label, tmp_path, monkeypatch):
    monkeypatch.setattr(relink, "linker", lambda: name)
    monkeypatch.setattr(lottery, "LINKED", tmp_path)
    known = relink.functions(label)
    # Static functions of one name, in several files, come together.
    named = Counter(function.symbol for function in known)
    hot = [function for function in known if function.part == ".text.hot." and named[function.symbol] == 1]
    wanted = hot[::-7]
    hottest = {function.symbol: 1000 - rank for rank, function in enumerate(wanted)}
    monkeypatch.setattr(lottery, "hottest", lambda *_: ("samples", Counter(hottest)))
    monkeypatch.setattr(lottery, "Reporter", lambda *_: nullcontext(SimpleNamespace(advance=lambda _: None)))
    made = lottery.link_all(label, seed=1, orders=1, copies=1, hot=1, rounds=1)
    (order,) = (one["file"] for one in made["programs"] if one["kind"] == "order")
    installed, default, profile, shuffled = map(
        relink.order_of,
        (
            relink.prefix(label) / "bin" / f"python{label}",
            *(lottery.where(label, file) for file in ("default", "profile", order)),
        ),
    )
    # The linker's own order is that of the interpreter as it is installed.
    assert in_order(default, installed) > 0.99
    # What is hot stands side by side, and nothing else has moved.
    symbols = [function.symbol for function in wanted]
    assert in_order(profile, symbols) == 1
    places = [profile.index(symbol) for symbol in symbols]
    assert max(places) - min(places) < 1.1 * len(symbols)
    assert in_order(profile, [symbol for symbol in installed if symbol not in symbols]) > 0.99
    # By lot within the parts, and the parts as they were: what is hot stays with what is hot.
    assert in_order(shuffled, installed) < 0.6
    names = {function.symbol for function in hot}
    places = [number for number, symbol in enumerate(shuffled) if symbol in names]
    assert np.ptp(np.quantile(places, (0.01, 0.99))) < 1.2 * sum(function.part == ".text.hot." for function in known)


@pytest.mark.slow
@CAN_RELINK
@pytest.mark.parametrize("label", lottery.BUILDS)
def test_linked_programs_answer(label, tmp_path, monkeypatch):
    monkeypatch.setattr(lottery, "LINKED", tmp_path)
    lottery.prepare(label)
    program = relink.link(label, lottery.where(label, lottery.DEFAULT))
    asked = "import os, sys; print(sys.version, os.__file__, sys.flags.hash_randomization)"
    said = subprocess.run(
        [program, "-S", "-s", "-P", "-c", asked], capture_output=True, text=True, env=lottery.server_environment()
    )
    assert said.stderr == ""
    assert ("free-threading" in said.stdout) == (label == FREE_THREADED)
    assert said.stdout.split()[-2:] == [str(tmp_path / label / "lib" / f"python{label}" / "os.py"), "0"]
    outcome = lottery.duel(program, program, turns=3, seed=1)
    assert outcome.ended == "ok"
    assert [row["benchmark"] for row in outcome.result] == list(lottery.BENCHMARKS)
    assert all(abs(row["log"]) < 1 for row in outcome.result)
    broken = lottery.where(label, "broken")
    broken.write_text("#!/bin/sh\nexit 3\n")
    broken.chmod(0o755)
    with pytest.raises(UserError, match="did not answer"):
        lottery.duel(broken, program, turns=3, seed=1)


@pytest.mark.slow
@CAN_RELINK
def test_the_whole_lottery_can_be_read_again_without_a_program(session, tmp_path, monkeypatch):
    monkeypatch.setattr(lottery, "LINKED", tmp_path / "linked")
    monkeypatch.setitem(
        lottery.SIZES, "smoke", lottery.Size(orders=2, copies=1, hot=2, duels=2, turns=1, profiles=2, rounds=5)
    )
    linked = lottery.linking(session)
    assert list(linked) == list(lottery.BUILDS)
    for of_it in linked.values():
        kinds = Counter(one["kind"] for one in of_it["programs"])
        assert kinds == {"order": 2, "copy": 1, lottery.BY_PROFILE: 2 * (lottery.BY_PROFILE not in of_it["absent"])}
    # Each build draws its own orders.
    assert len({one["name"] for of_it in linked.values() for one in of_it["programs"] if one["kind"] == "order"}) == 4
    runs = lottery.duels(session, linked)
    for label, of_it in linked.items():
        duels = results.of_build(runs, label)
        assert set(duels.name) == {one["name"] for one in of_it["programs"]}
        assert len(duels) == 2 * len(of_it["programs"]) * len(lottery.BENCHMARKS)
    assert list(lottery.LINKED.glob("*/bin/order-*"))
    missed = lottery.misses(session, linked, USUAL)
    assert not list(lottery.LINKED.glob("*/bin/order-*"))
    profile = lottery.hot_functions(session)
    session.close()
    monkeypatch.setattr(lottery, "link_all", None)
    monkeypatch.setattr(lottery, "duel", None)
    monkeypatch.setattr(lottery, "count_misses", None)
    monkeypatch.setattr(lottery, "remove_orders", None)
    monkeypatch.setattr(lottery, "take_profiles", None)
    again = Reading("placement", session.folder)
    assert lottery.linking(again) == linked
    pd.testing.assert_frame_equal(lottery.duels(again, linked), runs)
    assert lottery.misses(again, linked, USUAL) == missed
    assert lottery.hot_functions(again) == profile


def test_where_nothing_can_be_linked_there_is_no_lottery(session, tmp_path, monkeypatch):
    monkeypatch.setattr(lottery, "LINKED", tmp_path / "linked")
    monkeypatch.setattr(relink, "missing", lambda label: f"no objects of {label}")
    linked = lottery.linking(session)
    assert linked[GIL]["lacking"] == "no objects of 3.14"
    duels = lottery.duels(session, linked)
    assert duels.empty
    assert lottery.misses(session, linked, USUAL)[GIL] == "no order of CPython 3.14 was linked"
    assert lottery.hot_functions(session) == "no objects of 3.14"
    glued = {}
    monkeypatch.setattr(figures.draw, "glue", glued.__setitem__)
    figures.glue_lottery(linked, duels)
    assert glued["luck-gil"] == "With the GIL, there was no lottery here: no objects of 3.14."
    assert glued["luck-free-threaded"] == "Without the GIL, there was no lottery here: no objects of 3.14t."
    assert "Nothing was linked" in glued["linking"]


def test_where_one_build_can_be_linked_the_page_says_which(monkeypatch):
    linked = {GIL: {**LINKED, "seconds": 2.0}, FREE_THREADED: {**LINKED, "lacking": "no objects", "seconds": 0.0}}
    runs = made_up_lottery(0.03).query("interpreter == @GIL")
    glued = {}
    monkeypatch.setattr(figures.draw, "glue", glued.__setitem__)
    figures.glue_lottery(linked, runs)
    assert glued["luck-gil"].startswith(
        "With the GIL, more orders look like a regression than noise alone makes one expect in "
    )
    assert glued["luck-free-threaded"] == "Without the GIL, there was no lottery here: no objects."
    assert "2.0 seconds" in glued["linking"]
    assert set(figures.lottery_table(runs).CPython) == set(figures.reasoned_table(runs, linked).CPython) == {GIL}
    assert FREE_THREADED not in figures.lottery_alt(runs)


def test_a_linker_without_orders_has_none_with_a_reason(tmp_path, monkeypatch):
    monkeypatch.setattr(relink, "linker", lambda: "mold")
    with pytest.raises(UserError, match="lld and gold do"):
        lottery.by_profile(GIL, tmp_path, 1)


def test_another_session_draws_other_orders():
    """Of `make more`: its orders have names of their own, and its rounds go on from those of the first."""
    first = results.of_build(made_up_lottery(0.03), GIL)
    second = first.assign(round=first["round"] + 10, name="another " + first.name)
    both = results.by_round(pd.concat([first, second]), "containers", "order")
    assert both.shape == (60, 10)
    assert not np.isnan(both).any()


@pytest.mark.slow
@VALGRIND
@CAN_RELINK
def test_a_profile_without_perf_has_no_start_of_the_process_in_it(tmp_path, monkeypatch):
    monkeypatch.setattr(lottery, "LINKED", tmp_path)
    monkeypatch.setattr(lottery.profile, "perf_available", lambda: "perf is not installed")
    lottery.prepare(GIL)
    relink.link(GIL, lottery.where(GIL, lottery.DEFAULT))
    found = lottery.take_profiles(10, 20)
    assert results.five_hottest(found).unit == "share of instructions"
    (counted,) = found["processes"]  # the same in each
    assert next(iter(counted["hottest"])) == "_PyEval_EvalFrameDefault"
    assert not [name for name in counted["hottest"] if "Pegen" in name or "siphash" in name]
    assert len(figures.profile_table(found)) == 10


def test_what_is_lacking_is_said(monkeypatch, tmp_path):
    monkeypatch.setattr(relink, "prefix", lambda label: tmp_path)
    assert "was not compiled here" in relink.missing(GIL)
    (tmp_path / relink.OBJECTS).mkdir()
    (tmp_path / relink.OBJECTS / relink.ARCHIVE).touch()
    monkeypatch.setattr(relink.shutil, "which", lambda name: None)
    assert "lld, gold or mold" in relink.missing(GIL)
    assert "lld, gold or mold" in doctor.TOOLS
    monkeypatch.setattr(relink.shutil, "which", lambda name: name if name == "ld.mold" else None)
    assert relink.missing(GIL) is None
    assert doctor.present("lld, gold or mold")


def made_up_lottery(order_sd):
    """Ten rounds on each build; orders 3 % slower than the default in the middle and apart by `order_sd`; noise of 2 %."""
    rng = np.random.default_rng(4)
    rows = []
    for label, benchmark in itertools.product(lottery.BUILDS, lottery.BENCHMARKS):
        for kind, count, middle, sd in (
            ("order", 30, 0.03, order_sd),
            ("copy", 10, 0.0, 0.0),
            (lottery.BY_PROFILE, 1, -0.02, 0.0),
        ):
            for number, truth in enumerate(rng.normal(middle, sd, count)):
                what = {"interpreter": label, "name": f"{kind} {number}", "kind": kind, "benchmark": benchmark}
                rows += [{**what, "round": n, "log": truth + rng.normal(0, 0.02)} for n in range(10)]
    return pd.DataFrame(rows)


def test_the_lottery_is_told_from_noise():
    both = made_up_lottery(0.03)
    same, different = (results.of_build(made_up_lottery(sd), GIL) for sd in (0.0, 0.03))
    for benchmark in lottery.BENCHMARKS:
        raw, alone = results.spread(same, benchmark)
        assert alone.low * 0.98 <= raw <= alone.high * 1.02
        raw, alone = results.spread(different, benchmark)
        assert raw > alone.high
        assert results.true_spread(different, benchmark).at().low > 1
    found = results.passing(same, "containers", "order", 1.02)
    assert found.trials == 30
    assert found.events > 20
    assert results.passing(same, "containers", "order", 1.05).events <= 2
    assert results.passing(same, "containers", "copy", 1.02).events <= 1
    # Hot functions together take exp(-0.02), the orders exp(0.03), the linker's own order 1.
    assert results.over_orders(same, "containers", lottery.BY_PROFILE).interval.value == pytest.approx(0.95, abs=0.02)
    assert results.over_orders(same, "containers", "copy").interval.value == pytest.approx(0.97, abs=0.02)
    assert results.faster_orders(same, "containers", lottery.BY_PROFILE).events == 0
    table = figures.lottery_table(both)
    assert list(table.CPython) == [GIL] * 2 + [FREE_THREADED] * 2
    assert list(table["n (orders)"]) == [30] * 4
    absent = {label: {"absent": {lottery.BY_PROFILE: "no profile"} if label == GIL else {}} for label in lottery.BUILDS}
    table = figures.reasoned_table(both, absent)
    assert len(table) == 8
    assert (table["time over the middle shuffled order"] == "no profile").sum() == 2
    # The linker's own against itself: 1 but for noise.
    assert table["time over the linker's order"].str.match(r"(1\.0|0\.99)").sum() == 4
    assert results.passing_by_noise(both[both.interpreter == GIL], "containers", 1.02) < 0.5
    assert "3.14t, containers: orders from" in figures.lottery_alt(both)


def made_up_misses(runs, benchmark, more):
    """By its true time, an order of the slower half misses `more` times more of a thousand instructions; the fast ones 5."""
    logs = runs[(runs.kind == "order") & (runs.benchmark == benchmark)].groupby("name").log.mean().sort_values()
    rng = np.random.default_rng(6)
    rates = 5 + more * (np.arange(len(logs)) >= len(logs) // 2) + rng.normal(0, 0.3, len(logs))
    rows = [{"name": name, "instructions": 1_000_000, "misses": 1_000 * rate} for name, rate in zip(logs.index, rates)]
    return [{"benchmark": benchmark, **row} for row in [*rows, {**rows[0], "name": lottery.DEFAULT}]]


@pytest.mark.parametrize("more", [0.0, 3.0])
def test_misses_are_compared_between_slow_and_fast_orders(more):
    runs = results.of_build(made_up_lottery(0.03), GIL)
    counted = made_up_misses(runs, "containers", more)
    found = results.more_misses(runs, counted, "containers").interval
    assert found.low <= more <= found.high
    assert found.half_width < 0.5
    assert len(results.times_and_misses(runs, results.missed(counted, "containers"), "containers")) == 30
    assert results.more_misses(runs, "no valgrind", "containers") == "no valgrind"
    own = results.missed(counted, "containers")
    assert results.missing_more(own).trials == 30
    assert results.missing_more(own).events == (own.drop(lottery.DEFAULT) > own[lottery.DEFAULT]).sum()
    assert results.missing_more("no valgrind") == "no valgrind"
    assert results.more_misses(runs[:0], counted, "containers") is None


def test_the_picture_of_misses_has_a_point_for_each_order():
    runs = made_up_lottery(0.03)
    counted = {
        GIL: [
            row
            for benchmark in lottery.BENCHMARKS
            for row in made_up_misses(results.of_build(runs, GIL), benchmark, 2.0)
        ],
        FREE_THREADED: "no valgrind",
    }
    rows = figures.times_and_misses(runs, counted)
    assert len(rows) == 60
    figure = plt.figure(layout="constrained")
    figures.plot_misses(figure, rows)
    plt.close(figure)
    table = figures.misses_table(runs, counted)
    assert list(table["slower less faster half"][2:]) == ["no valgrind"] * 2
    assert set(table["n (orders)"][:2]) == {30}
    assert figures.times_and_misses(runs, dict.fromkeys(lottery.BUILDS, "no valgrind")).empty


@pytest.mark.slow
@VALGRIND
@CAN_RELINK
def test_misses_of_an_order_are_the_same_again(tmp_path, monkeypatch):
    """And only those of the benchmark: of call_method, whose code fits, next to none."""
    monkeypatch.setattr(lottery, "LINKED", tmp_path)
    lottery.prepare(FREE_THREADED)
    relink.link(FREE_THREADED, lottery.where(FREE_THREADED, lottery.DEFAULT))
    once, again = (lottery.missed(lottery.where(FREE_THREADED, lottery.DEFAULT), USUAL) for _ in range(2))
    assert [row["benchmark"] for row in once] == list(lottery.BENCHMARKS)
    for row, other in zip(once, again, strict=True):
        assert row["instructions"] == pytest.approx(other["instructions"], rel=1e-3)
        assert row["misses"] == pytest.approx(other["misses"], rel=0.1)
        assert row["instructions"] > 1_000_000
    rates = {row["benchmark"]: 1000 * row["misses"] / row["instructions"] for row in once}
    assert rates["call_method"] < 0.5 < rates["containers"]
    monkeypatch.setattr(lottery, "CLOCK", "no_such_function")
    with pytest.raises(UserError, match="did not see the calls"):
        lottery.missed(lottery.where(FREE_THREADED, lottery.DEFAULT), USUAL)


@pytest.mark.parametrize("builds", [lottery.BUILDS, (GIL,)])
def test_the_figure_has_a_panel_for_each_build(builds):
    runs = made_up_lottery(0.03)
    figure = plt.figure(layout="constrained")
    figures.plot_lottery(figure, runs[runs.interpreter.isin(builds)])
    assert [axes.get_title() for axes in figure.axes] == [f"CPython {label}" for label in builds]
    (legend,) = figure.legends
    assert {text.get_text() for text in legend.get_texts()} == set(figures.KINDS.values())
    plt.close(figure)


# ---- the story ----


@pytest.fixture(scope="module")
def histories():
    """The repository, in the folder that tests build in."""
    return story.make_repository()


@pytest.fixture(scope="module")
def revisions(histories):
    return histories[results.TRAP]


@pytest.mark.slow
def test_the_histories_are_what_they_say(histories):
    trap, quiet = histories[results.TRAP], histories[results.NO_TRAP]
    assert len(trap) == len(quiet) == 1 + len(story.HISTORY)
    assert trap[: story.AT] == quiet[: story.AT]
    for revisions, file, message in (
        (trap, "report.h", story.CULPRIT),
        (quiet, "operations.h", story.HARMLESS["message"]),
    ):
        changed = story.git("diff", "--name-only", revisions[story.AT - 1], revisions[story.AT]).split()
        assert changed == [file]
        assert message in story.git("log", "--format=%s", revisions[story.AT], "-1")
    assert story.make_repository() == histories  # the same hashes again


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("objcopy"), reason="there is no objcopy here")
def test_the_commits_that_change_machine_code_are_named(histories):
    """By the bytes of .text of neighbours."""
    changed = set()
    for revisions in histories.values():
        codes = []
        for revision in revisions:
            story.build("neighbour", revision, [])
            out = story.machine("neighbour").with_name("text")
            subprocess.run(
                ["objcopy", "-O", "binary", "--only-section=.text", story.machine("neighbour"), out], check=True
            )
            codes.append(out.read_bytes())
        for revision, before, after in zip(revisions[1:], codes, codes[1:]):
            if before != after:
                changed.add(story.git("show", "--no-patch", "--format=%s", revision).strip())
    assert changed == set(story.CHANGE_CODE)


@pytest.mark.parametrize(("off", "passed"), [(0.0, True), (0.05, False)])
def test_a_program_that_differs_from_itself_withholds_the_lottery(off, passed):
    runs = made_up_lottery(0.03)
    runs.loc[(runs.kind == "copy") & (runs.interpreter == GIL), "log"] += off
    session = SimpleNamespace(frame={"relink lottery": runs}.get)
    checks = claims.controls(session)
    assert [check.passed for check in checks] == [passed] * 2 + [True] * 2
    session = SimpleNamespace(frame={"relink lottery": runs[runs.kind != "copy"]}.get)
    assert claims.controls(session) == []


@pytest.mark.slow
@VALGRIND
def test_without_a_trap_neither_work_nor_misses_change(histories):
    versions = {"first": {"commit": 0, "changes": []}, "last": {"commit": len(story.HISTORY), "changes": []}}
    counts = results.table(story.count(story.compile_all(histories[results.NO_TRAP], versions))).set_index("program")
    assert counts.instructions["last"] / counts.instructions["first"] == pytest.approx(1, abs=0.001)
    assert counts.misses["last"] < 2 * counts.misses["first"]


@pytest.mark.slow
@VALGRIND
def test_the_commit_changes_misses_and_not_instructions(revisions):
    counts = results.table(story.count(story.compile_all(revisions, story.PROGRAMS))).set_index("program")
    assert counts.instructions["slow"] / counts.instructions["fast"] == pytest.approx(1, abs=0.001)
    assert counts.misses["slow"] > 20 * counts.misses["fast"]
    assert counts.misses["hot"] < 2 * counts.misses["fast"]
    assert counts.instructions["hot, aligned"] / counts.instructions["hot"] == pytest.approx(1, abs=0.001)
    suspects = results.table(story.count(story.compile_all(revisions, exercise.SUSPECTS))).set_index("program")
    more = suspects.instructions / suspects.instructions["before"]
    assert {name: "real" if more[name] > 1.2 else "placement" for name in exercise.TRUTH} == exercise.TRUTH


@pytest.mark.slow
def test_the_small_machine_says_its_time(session, revisions):
    names = story.compiled(session, revisions, exercise.SUSPECTS)
    times = story.times(session, "the suspects", names, 2)
    assert sorted(times.program) == sorted(2 * names)
    assert (times.ns > 0).all()


@pytest.mark.slow
def test_bisection_finds_what_its_check_finds(session, histories, monkeypatch):
    """With a check that looks at the header and not at the clock: no speed is asserted here."""
    check = story.REPOSITORY / "check.sh"
    original = check.read_text()
    assert "./machine" in original
    fake = story.REPOSITORY.parent / "look.sh"
    fake.write_text("#!/bin/sh\n! grep -q 'aligned(4096)' report.h\n")
    fake.chmod(0o755)
    real = story.git

    def git(*words, **options):
        return real(*(str(fake) if word == "./check.sh" else word for word in words), **options)

    monkeypatch.setattr(story, "git", git)
    found = story.bisections(session, histories).set_index("history")
    assert found.found[results.TRAP] == 1.0
    # Everything is good: told that the last commit is bad, git names it.
    assert found.message[results.NO_TRAP] == story.HISTORY[-1]["message"]
    assert found.found[results.NO_TRAP] == 0.0
    assert all("is the first bad commit" in log for log in found.log)
    assert (found[["before", "blamed", "limit"]] > 0).all(axis=None)
    assert real("status", "--short") == ""
    assert real("rev-parse", "--abbrev-ref", "HEAD").strip() == "main"


def test_a_blame_stands_if_the_limit_lies_between_again(monkeypatch):
    """The limit is the middle of the two ends, and what is blamed is measured again, with its parent."""
    asked = []

    def took(revision):
        asked.append(revision)
        return {"a": 1.0, "b": 1.1, "c": 2.9, "d": 3.0}[revision]

    def git(*words, **_):
        return {"rev-parse": "c\n", "show": f"{story.CULPRIT}\n"}.get(words[0], "log")

    monkeypatch.setattr(story, "took", took)
    monkeypatch.setattr(story, "git", git)
    found = story.bisect(["a", "b", "c", "d"], results.TRAP)
    assert asked == ["a", "d", "b", "c"]
    assert (found["limit"], found["before"], found["blamed"]) == (2.0, 1.1, 2.9)
    assert found["found"] == found["stands"] == 1.0


@pytest.mark.slow
def test_the_check_script_decides_by_the_limit(revisions):
    for limit, expected in (("1000000", "ok"), ("0.000001", "exit code 1")):
        ended, out, err = case.program(["sh", "-c", f"cd '{story.REPOSITORY}' && ./check.sh {limit}"])
        assert ended == expected, out + err
    # Compiled once, as the sources are the same; other sources are another program.
    compiled = list(story.REPOSITORY.glob(".git/machine-*"))
    assert story.git("status", "--short") == ""
    operations = story.REPOSITORY / "operations.h"
    original = operations.read_text()
    operations.write_text(original + "\n/* more */\n")
    case.program(["sh", "-c", f"cd '{story.REPOSITORY}' && ./check.sh 5"])
    operations.write_text(original)
    assert len(list(story.REPOSITORY.glob(".git/machine-*"))) == len(compiled) + 1


def test_tools_that_are_not_there_are_named(session, monkeypatch, tmp_path):
    """Without perf, valgrind and counters the chapter goes on, and says what it lacks."""
    monkeypatch.setattr(lottery, "LINKED", tmp_path)
    default = lottery.where(GIL, lottery.DEFAULT)
    default.parent.mkdir(parents=True)
    default.touch()
    monkeypatch.setenv("PATH", str(tmp_path))
    # It remembers what it found: not here, and not beyond this test.
    monkeypatch.setattr(profile, "perf_available", profile.perf_available.__wrapped__)
    assert "perf is not installed" in experiment.counted(session)
    assert "perf is not installed" in words.counters(experiment.counted(session))
    assert "perf is not installed" in story.hardware(session, ["fast"])
    assert "no valgrind" in experiment.simulated(session, USUAL)
    assert "no valgrind" in story.counts(session, [])
    with pytest.raises(UserError, match="make doctor"):
        experiment.cachegrind(["true"], USUAL)
    reason = lottery.hot_functions(session)
    assert "Neither perf nor valgrind" in reason
    assert "Neither perf nor valgrind" in words.five_hottest(results.five_hottest(reason), "", "")
    assert "no valgrind" in lottery.count_misses(GIL, {"default": "default"}, {})


def test_self_check():
    assert all("still open" in line for line in exercise.check_verdicts({"suspect 1": "", "suspect 2": ""}))
    assert exercise.check_verdicts(exercise.TRUTH) == ["suspect 1: right.", "suspect 2: right."]
    wrong = exercise.check_verdicts({"suspect 1": "placement", "suspect 2": "real"})
    assert "more instructions" in wrong[0]
    assert "the same instructions as before" in wrong[1]


MEND = {"file": "operations.h", "find": "#define HOT\n", "replace": "#define HOT\n"}


def mended_counts(instructions, misses):
    return results.table(
        [
            {"program": "slow", "instructions": 2_000_000, "misses": 165_000},
            {"program": "fast", "instructions": 2_000_000, "misses": 1_500},
            {"program": "mended", "instructions": instructions, "misses": misses},
        ]
    )


@pytest.mark.parametrize(
    ("changed", "counts", "expected"),
    [
        ({}, mended_counts(2_000_000, 165_000), "Still open"),
        ({"replace": "#define HOT cold\n"}, mended_counts(2_000_000, 165_000), "Not yet"),
        ({"replace": "#define HOT cold\n"}, mended_counts(1_500_000, 1_500), "25% fewer instructions"),
        ({"replace": "#define HOT cold\n"}, mended_counts(2_000_100, 1_400), "Mended"),
        ({"replace": "#define HOT __attribute__((hot))\n"}, mended_counts(2_000_000, 1_400), "the page's own way"),
        ({"file": "report.h", "find": "a", "replace": "b"}, mended_counts(2_000_000, 1_400), "pages of their own"),
        ({"replace": "#define HOT cold\n"}, "no valgrind", "cannot: no valgrind"),
    ],
)
def test_the_check_of_the_mending(changed, counts, expected):
    (line,) = exercise.check_mending({**MEND, **changed}, counts)
    assert expected in line


@pytest.mark.slow
@VALGRIND
@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (MEND, "Still open"),
        ({**MEND, "replace": '#define HOT __attribute__((section(".text.operations")))\n'}, "Mended"),
        ({"file": "Makefile", "find": "-O2", "replace": "-O2 -falign-functions=64"}, "Not yet"),
    ],
    ids=["as shipped", "as solved", "aligned"],
)
def test_the_slow_commit_can_be_mended(change, expected, revisions):
    names = story.compile_all(revisions, exercise.mending(change))
    (line,) = exercise.check_mending(change, results.table(story.count(names)))
    assert expected in line


# ---- the claims ----

TIMES = pd.DataFrame(
    [
        {"program": name, "ns": ns * (1 + 0.01 * n), "round": n}
        for n in range(10)
        for name, ns in (("fast", 2.0), ("slow", 6.0), ("hot", 3.0))
    ]
)
COUNTS = [
    {"program": name, "instructions": 1_000_000, "misses": misses}
    for name, misses in (("fast", 100), ("slow", 8_000), ("hot", 100))
]
STALLS = {
    name: [{"instructions": 1.0, "stalled-cycles-frontend": stalled * (1 + 0.01 * n)} for n in range(10)]
    for name, stalled in (("fast", 10.0), ("slow", 40.0), ("hot", 9.0))
}
PROFILE = {
    "what": "samples",
    "processes": [
        {"total": 1000, "hottest": {f"function {n}": 100 + process % 2 for n in range(10)}} for process in range(10)
    ],
}
LINKED = {"lacking": None, "absent": {}, "programs": []}
BISECTIONS = pd.DataFrame(
    {
        "history": [results.TRAP] * 3 + [results.NO_TRAP] * 4,
        "found": [1.0, 1.0, 0.0, 0.0, 0.0, 0.0, 1.0],
        "stands": [1.0, 1.0, 0.0, 0.0, 1.0, 0.0, 0.0],
        "message": ["a", "a", "b", "c", "d", "c", "e"],
    }
)


def made_up_session(counts, stalls, profile, linked=LINKED):
    """A session that has been measured, as far as claims look at it."""
    seen = {
        "instructions and misses of the small machine": counts,
        "hardware counters of the small machine": stalls,
        "profiles of call_method": profile,
        "linking": linked,
        "instruction cache": vars(USUAL),
    }
    runs = made_up_lottery(0.03)
    missed = {label: made_up_misses(results.of_build(runs, label), claims.BENCHMARK, 3.0) for label in lottery.BUILDS}

    def observed(title, *arguments):
        return missed[arguments[0]] if title == "simulated misses of the orders" else seen[title]

    frames = {
        "the small machine": TIMES,
        "git bisect": BISECTIONS,
        "relink lottery": runs[: 0 if linked["lacking"] else None],
    }
    budget = SimpleNamespace(is_result=True, name="quick", repeats=10)
    return SimpleNamespace(corner="placement", budget=budget, seed=1, frame=frames.get, observed=observed)


def test_every_claim_gets_what_its_rule_asks_for():
    handed = claims.measurements(made_up_session(COUNTS, STALLS, PROFILE)).complete()
    assert not any(handed.missing.values())
    values = {name: m.interval.value for found in handed.measurements.values() for name, m in found.items()}
    assert values["slow / fast, a change that never runs"] == pytest.approx(3)
    assert values["slow / hot, the same commit with hot functions together"] == pytest.approx(2)
    assert values["instructions, slow / fast (simulated)"] == 1
    assert values["misses of the instruction cache, slow / fast (simulated)"] == 80
    assert values["stalled front-end cycles, slow / fast (counted)"] == 4
    assert values["share of bisections that blame the unrelated commit"] == pytest.approx(2 / 3)
    assert values["share of the five hottest functions, call_method"] == pytest.approx(0.5, abs=0.01)
    assert values["share of blamed commits that stand, without a trap"] == pytest.approx(1 / 4)
    for label in lottery.BUILDS:
        assert values[f"slowest / fastest random order, call_method on {label}"] == pytest.approx(
            np.exp(0.03 * 4.09), abs=0.06
        )
        together = values[f"hot functions together / the middle random order, call_method on {label}"]
        assert together == pytest.approx(0.95, abs=0.02)
        more = values[f"misses of a thousand instructions, slower less faster orders, call_method on {label}"]
        assert more == pytest.approx(3, abs=0.4)
    without = claims.measurements(made_up_session("no valgrind", "no counters", "no profile")).complete()
    assert without.measurements["D2"] == without.measurements["D4"] == {}
    assert len(without.measurements["D3"]) == 2
    assert "no counters" in without.missing["D2"].values()
    assert list(without.missing["D4"].values()) == ["no profile"]
    unlinked = {**LINKED, "lacking": "no objects"}
    without = claims.measurements(made_up_session(COUNTS, STALLS, PROFILE, unlinked)).complete()
    for claim in ("D1", "D3", "D6"):
        assert len(without.measurements[claim]) == 1
        assert list(without.missing[claim].values()) == ["no objects"] * 2
    unordered = {**LINKED, "absent": {lottery.BY_PROFILE: "no profile"}}
    without = claims.measurements(made_up_session(COUNTS, STALLS, PROFILE, unordered)).complete()
    assert list(without.missing["D6"].values()) == ["no profile"] * 2
    assert not without.missing["D1"]
    unknown = {name: [{"instructions": 1.0}] for name in STALLS}
    assert "does not count" in results.stalls_ratio(unknown)
    assert len(figures.story_table(TIMES, "no valgrind", "no counters").columns) == 3
    assert len(figures.story_table(TIMES, results.table(COUNTS), STALLS).columns) == 7


def test_a_profile_of_instructions_is_exact():
    found = results.five_hottest({"what": "instructions", "processes": PROFILE["processes"][:1]})
    assert found == Measurement(Counted(0.5), "share of instructions")
    assert "50.0 % of call_method (share of instructions)" in words.five_hottest(found.interval, found.unit, UNDECIDED)


def test_the_hottest_functions_of_a_process_are_chosen_by_the_others():
    """In each process, other functions come out hottest by chance: none of them keeps the lead that it has there."""
    rng = np.random.default_rng(3)
    taken = [
        {
            "total": 1000,
            "hottest": {f"function {n}": int(k) for n, k in enumerate(rng.multinomial(1000, [1 / 40] * 40))},
        }
        for _ in range(60)
    ]
    own = np.mean([results.share_of(one, results.hottest([one])) for one in taken])
    interval = results.five_hottest({"what": "samples", "processes": taken}).interval
    assert interval.low <= 5 / 40 <= interval.high < own


def test_shares_of_bisections_have_exact_intervals():
    """[1, 1] of three bisections would be wrong: these are binomial."""
    found = results.blaming(BISECTIONS)
    assert (found.events, found.trials) == (2, 3)
    assert found.at().high < 1 or found.at().low < 0.5
    assert Share(3, 3).at(0.95).low == pytest.approx(0.29, abs=0.005)
    table = figures.bisections_table(BISECTIONS)
    assert list(table["blamed by"]) == ["2 of 3", "1 of 3", "2 of 4", "1 of 4", "1 of 4"]
    assert results.standing_without_code(BISECTIONS) == 1


def around(centre, error, n=20):
    """An estimate that a rule can answer."""
    return Location(np.log(centre), error, n - 1, n, log=True)


def orders_apart(range_of_30):
    """As many orders and duels as `full` has, of which thirty orders have this range."""
    how = lottery.SIZES["full"]
    return Spread((np.log(range_of_30) / 4.09) ** 2 + 1e-5, 1e-5, how.orders, how.duels, 4.09)


ANSWERS = {
    ("D1", "slow / fast, a change that never runs"): (around(2, 0.05), around(1.05, 0.02), around(1.3, 0.1)),
    **{
        ("D1", f"slowest / fastest random order, call_method on {label}"): (
            orders_apart(1.1),
            orders_apart(1.0),
            orders_apart(1.02),
        )
        for label in lottery.BUILDS
    },
    ("D2", "instructions, slow / fast (simulated)"): (Counted(1.001), Counted(1.1), None),
    ("D2", "stalled front-end cycles, slow / fast (counted)"): (around(2, 0.05), around(1.0, 0.02), around(1.3, 0.1)),
    ("D3", "misses of the instruction cache, slow / fast (simulated)"): (Counted(70.0), Counted(1.5), None),
    **{
        ("D3", f"misses of a thousand instructions, slower less faster orders, call_method on {label}"): (
            Location(20.0, 1.0, 28, 30),
            Location(0.01, 0.01, 28, 30),
            Location(1.0, 1.0, 28, 30),
        )
        for label in lottery.BUILDS
    },
    ("D4", "share of the five hottest functions, call_method"): (
        Location(0.75, 0.02, 9, 10),
        Location(0.55, 0.02, 9, 10),
        Location(0.65, 0.02, 9, 10),
    ),
    ("D5", "share of bisections that blame the unrelated commit"): (Share(20, 20), Share(5, 20), Share(16, 20)),
    ("D5", "share of blamed commits that stand, without a trap"): (Share(2, 20), Share(20, 20), Share(10, 20)),
    ("D6", "slow / hot, the same commit with hot functions together"): (
        around(2, 0.05),
        around(0.9, 0.02),
        around(1.3, 0.1),
    ),
    **{
        ("D6", f"hot functions together / the middle random order, call_method on {label}"): (
            around(0.9, 0.01),
            around(1.05, 0.01),
            around(0.97, 0.02),
        )
        for label in lottery.BUILDS
    },
}


def test_every_rule_gives_its_three_answers():
    rules = {
        (claim.id, rule.measured): rule
        for claim in reversed(declared("placement").claims)
        for rule in claim.tests[::-1]
    }
    assert set(rules) == set(ANSWERS)
    for key, estimates in ANSWERS.items():
        for estimate, expected in zip(estimates, (HOLDS, DOES_NOT_HOLD, UNDECIDED), strict=True):
            if estimate is not None:  # what is counted once is never undecided
                assert rules[key].answer(Measurement(estimate, "")).verdict == expected, (key, estimate)


@pytest.mark.parametrize(("apart", "expected"), [(1.72, HOLDS), (1.1, DOES_NOT_HOLD), (1.45, UNDECIDED)])
def test_the_published_size_is_asked_of_the_lottery(apart, expected):
    size = declared("placement").claims[0].tests[-1]
    assert size.answer(Measurement(orders_apart(apart), "ratio")).verdict == expected


def test_a_planted_trap_alone_proves_no_more_than_a_part():
    """Nothing that chance did: D1, D3 and D6 hold in part at most, whatever the trap does."""
    d1, _, d3, *_, d6 = declared("placement").claims
    for claim, nothing in ((d1, 1.0), (d3, 0.0), (d6, 1.0)):
        planted, *by_lot = dict.fromkeys(rule.measured for rule in claim.tests)
        found = {planted: exact(5.0, "ratio"), **{name: exact(nothing, "") for name in by_lot}}
        assert verdicts.of_claim(claim, found, {}).verdict == verdicts.IN_PART


@pytest.mark.parametrize(
    ("truth", "expected"),
    [
        ("as published", {HOLDS, verdicts.IN_PART}),
        ("half the size", {HOLDS, verdicts.IN_DIRECTION, verdicts.IN_PART}),
        ("no effect", {verdicts.REFUTED}),
        ("the wrong sign", {verdicts.REFUTED}),
    ],
)
def test_without_noise_the_rules_say_what_is_true(truth, expected):
    found = rows("placement", truth, "full", 0, noise=0)
    assert {row["verdict"] for row in found.values()} <= expected
    assert len(found) == 6
    # In part only because something is not tested.
    assert all(row["untested"] for row in found.values() if row["verdict"] == verdicts.IN_PART)
