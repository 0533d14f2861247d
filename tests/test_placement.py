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
from notebooks.placement import claims, exercise, experiment, figures, lottery, results, story
from notebooks.placement.experiment import APART, PACKED, USUAL, WESTMERE, Cache

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


def test_what_a_cache_can_hold():
    assert results.computed_fit(USUAL, 64) == USUAL.size // USUAL.line
    assert results.computed_fit(USUAL, USUAL.way_bytes) == USUAL.ways
    assert results.computed_fit(USUAL, 2 * USUAL.way_bytes) == USUAL.ways
    assert results.computed_fit(USUAL, USUAL.way_bytes // 2) == 2 * USUAL.ways
    assert results.computed_fit(WESTMERE, APART) == 8


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
    assert set(runs.distance) == {16, 64, 128, 256, 512, 1024, 2048, 4096, 8192}
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
    assert set(figures.environment_words(runs)) <= set(figures.ADDRESSES.values())
    fixed = runs[~runs.random]
    assert len(fixed.drop_duplicates(["bytes", "stack"])) == fixed.bytes.nunique()


def made_up_distances(ways):
    """Packed calls take 1 ns; at 4096 bytes 4 ns from the first function on that has no way left."""
    rng = np.random.default_rng(2)
    return pd.DataFrame(
        [
            {
                "process": process,
                "distance": distance,
                "n": n,
                "ns": (4.0 if distance == APART and n > ways else 1.0) * np.exp(rng.normal(0, 0.02)),
            }
            for process in range(10)
            for distance in (PACKED, 64, APART)
            for n in (1, 2, 4, 8, 10, 12, 16, 20, 32, 64, 128, 256)
        ]
    )


def test_the_ways_are_read_off_the_clock():
    runs = made_up_distances(12)
    assert set(results.fits(runs, APART)) == {12.0}
    assert set(results.fits(runs, 64)) == {float("inf")}
    assert "up to 12," in figures.reading(runs, USUAL)
    assert "A likely reason" in figures.reading(runs, USUAL)
    assert "agree" in figures.reading(made_up_distances(8), USUAL)
    assert "Something smaller" in figures.reading(made_up_distances(4), USUAL)
    assert "no number of functions" in figures.reading(made_up_distances(1000), USUAL)
    assert figures.fits_table(runs, USUAL).shape == (3, 4)
    ratio = figures.apart_table(runs).set_index("functions").ratio[256]
    assert ratio.startswith(("3.9", "4.0"))


def test_simulation_and_clock_are_compared():
    found = results.table(
        [
            {"cache": USUAL.name, "distance": distance, "n": n, "misses": float(n > fit)}
            for distance, fit in ((64, 448), (APART, 8))
            for n in experiment.SIMULATED[distance]
        ]
    )
    assert "They agree in direction" in figures.agreement(made_up_distances(8), found, USUAL)
    assert "do not agree" in figures.agreement(made_up_distances(1000), found, USUAL)
    said = figures.simulated_reading(found, USUAL)
    assert "8 functions run without a miss" in said
    assert ": 8 ways." in said
    assert "30 KiB" in said  # 448 lines, and 448 calls
    assert "no valgrind" in figures.agreement(made_up_distances(8), results.table("no valgrind"), USUAL)


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
@pytest.mark.parametrize("noise", ["normal", "heavy tails"])
def test_the_range_without_noise_covers_the_truth(sd, noise):
    """Thirty orders whose true effects scatter by `sd`; ten rounds with a noise of 3 %."""
    rng = np.random.default_rng(7)
    truth = np.exp(sd * np.ptp(rng.normal(size=(20_000, 30)), axis=1).mean())

    def draw():
        errors = rng.normal(0, 0.03, (30, 10)) if noise == "normal" else 0.02 * rng.standard_t(4, (30, 10))
        return range_without_noise(rng.normal(0, sd, (30, 1)) + errors)

    found = [draw().at() for _ in range(400)]
    covered = np.mean([interval.low <= truth + 1e-9 and truth <= interval.high + 1e-9 for interval in found])
    assert covered >= 0.92
    if sd == 0:
        # An interval without 1 although nothing differs.
        assert np.mean([interval.low > 1 for interval in found]) <= 0.05
    assert np.isnan(range_without_noise(np.zeros((30, 2))).at().value)


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
    assert not list(lottery.LINKED.glob("*/bin/order-*"))
    profile = lottery.hot_functions(session)
    session.close()
    monkeypatch.setattr(lottery, "link_all", None)
    monkeypatch.setattr(lottery, "duel", None)
    monkeypatch.setattr(lottery, "remove_orders", None)
    monkeypatch.setattr(lottery, "take_profiles", None)
    again = Reading("placement", session.folder)
    assert lottery.linking(again) == linked
    pd.testing.assert_frame_equal(lottery.duels(again, linked), runs)
    assert lottery.hot_functions(again) == profile


def test_where_nothing_can_be_linked_there_is_no_lottery(session, tmp_path, monkeypatch):
    monkeypatch.setattr(lottery, "LINKED", tmp_path / "linked")
    monkeypatch.setattr(relink, "missing", lambda label: f"no objects of {label}")
    linked = lottery.linking(session)
    assert linked[GIL]["lacking"] == "no objects of 3.14"
    duels = lottery.duels(session, linked)
    assert duels.empty
    assert lottery.hot_functions(session) == "no objects of 3.14"
    glued = {}
    monkeypatch.setattr(figures.draw, "glue", glued.__setitem__)
    figures.glue_lottery(linked, duels)
    assert glued["luck-gil"] == "There was no lottery of CPython 3.14 here: no objects of 3.14."
    assert glued["luck-free-threaded"] == "There was no lottery of CPython 3.14t here: no objects of 3.14t."
    assert glued["link-seconds"].startswith("no time")


def test_where_one_build_can_be_linked_the_page_says_which(monkeypatch):
    linked = {GIL: {**LINKED, "seconds": 2.0}, FREE_THREADED: {**LINKED, "lacking": "no objects", "seconds": 0.0}}
    runs = made_up_lottery(0.03).query("interpreter == @GIL")
    glued = {}
    monkeypatch.setattr(figures.draw, "glue", glued.__setitem__)
    figures.glue_lottery(linked, runs)
    assert glued["luck-gil"].startswith("CPython 3.14: by benchmark")
    assert glued["luck-free-threaded"] == "There was no lottery of CPython 3.14t here: no objects."
    assert glued["lot-hot-gil"].startswith("CPython 3.14: in call_method")
    assert glued["lot-hot-free-threaded"] == "CPython 3.14t was not linked here."
    assert glued["link-seconds"] == "2.0 seconds"
    assert set(figures.lottery_table(runs).CPython) == set(figures.reasoned_table(runs, linked).CPython) == {GIL}
    assert FREE_THREADED not in figures.lottery_words(runs)


def test_a_linker_without_orders_has_none_with_a_reason(tmp_path, monkeypatch):
    monkeypatch.setattr(relink, "linker", lambda: "mold")
    with pytest.raises(UserError, match="lld and gold do"):
        lottery.by_profile(GIL, tmp_path, 1)


def test_another_session_draws_other_orders():
    """Of `make more`: its orders have names of their own, and its rounds go on from those of the first."""
    first = results.of_build(made_up_lottery(0.03), GIL)
    second = first.assign(round=first["round"] + 10, name="another " + first.name)
    both = results.by_round(pd.concat([first, second]), "numbers", "order")
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
    found = results.passing(same, "numbers", "order", 1.02)
    assert found.trials == 30
    assert found.events > 20
    assert results.passing(same, "numbers", "order", 1.05).events <= 2
    assert results.passing(same, "numbers", "copy", 1.02).events <= 1
    # Hot functions together take exp(-0.02), the orders exp(0.03), the linker's own order 1.
    assert results.over_orders(same, "numbers", lottery.BY_PROFILE).interval.value == pytest.approx(0.95, abs=0.02)
    assert results.over_orders(same, "numbers", "copy").interval.value == pytest.approx(0.97, abs=0.02)
    assert results.faster_orders(same, "numbers", lottery.BY_PROFILE).events == 0
    assert "0 of 30 (0% to 14%) in call_method" in figures.luck(same)
    assert "0 of 30 random orders are faster" in figures.lot_of_the_hot(same, {})
    assert "no profile" in figures.lot_of_the_hot(same, {lottery.BY_PROFILE: "no profile"})
    assert "of 30 orders look like a regression of 2% or more" in figures.luck(different)
    table = figures.lottery_table(both)
    assert list(table.CPython) == [GIL] * 3 + [FREE_THREADED] * 3
    absent = {label: {"absent": {lottery.BY_PROFILE: "no profile"} if label == GIL else {}} for label in lottery.BUILDS}
    table = figures.reasoned_table(both, absent)
    assert len(table) == 12
    assert (table["time over the middle shuffled order"] == "no profile").sum() == 3
    assert (table["time over the linker's order"] == "1").sum() == 6
    assert "3.14t, numbers: shuffled orders from" in figures.lottery_words(both)


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
def revisions():
    """The repository, in the folder that tests build in."""
    return story.make_repository()


@pytest.mark.slow
def test_the_history_is_what_it_says(revisions):
    assert len(revisions) == 1 + len(story.HISTORY)
    changed = story.git("diff", "--name-only", revisions[story.AT - 1], revisions[story.AT]).split()
    assert changed == ["report.h"]
    assert story.CULPRIT in story.git("log", "--format=%s", revisions[story.AT], "-1")
    assert story.make_repository() == revisions  # the same hashes again


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
def test_bisection_finds_what_its_check_finds(session, revisions, monkeypatch):
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
    found = story.bisections(session, revisions, 5.0)
    assert list(found.found) == [1.0]
    assert "is the first bad commit" in found.log[0]
    assert real("status", "--short") == ""


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
    assert "perf is not installed" in figures.counted_words(results.table(experiment.counted(session)))
    assert "perf is not installed" in story.hardware(session, ["fast"])
    assert "no valgrind" in experiment.simulated(session, USUAL)
    assert "no valgrind" in story.counts(session, [])
    with pytest.raises(UserError, match="make doctor"):
        experiment.cachegrind(["true"], USUAL)
    reason = lottery.hot_functions(session)
    assert "Neither perf nor valgrind" in reason
    assert "Neither perf nor valgrind" in figures.share_words(results.five_hottest(reason))


def test_self_check():
    assert all("still open" in line for line in exercise.check_verdicts({"suspect 1": "", "suspect 2": ""}))
    assert exercise.check_verdicts(exercise.TRUTH) == ["suspect 1: right.", "suspect 2: right."]
    wrong = exercise.check_verdicts({"suspect 1": "placement", "suspect 2": "real"})
    assert "more instructions" in wrong[0]
    assert "the same instructions as before" in wrong[1]


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
LINKED = {"lacking": None, "absent": {}}


def made_up_session(counts, stalls, profile, linked=LINKED):
    """A session that has been measured, as far as claims look at it."""
    seen = {
        "instructions and misses of the small machine": counts,
        "hardware counters of the small machine": stalls,
        "profiles of call_method": profile,
        "linking": linked,
    }
    frames = {
        "the small machine": TIMES,
        "git bisect": pd.DataFrame({"found": [1.0, 1.0, 0.0], "message": ["a", "a", "b"]}),
        "relink lottery": made_up_lottery(0.03)[: 0 if linked["lacking"] else None],
    }
    budget = SimpleNamespace(is_result=True, name="quick", repeats=10)
    return SimpleNamespace(
        corner="placement", budget=budget, seed=1, frame=frames.get, observed=lambda title, *arguments: seen[title]
    )


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
    assert values["slowest / fastest random order, call_method"] == pytest.approx(np.exp(0.03 * 4.09), abs=0.06)
    assert values["hot functions together / the middle random order, call_method"] == pytest.approx(0.95, abs=0.02)
    without = claims.measurements(made_up_session("no valgrind", "no counters", "no profile")).complete()
    assert without.measurements["D2"] == without.measurements["D3"] == without.measurements["D4"] == {}
    assert "no counters" in without.missing["D2"].values()
    assert list(without.missing["D4"].values()) == ["no profile"]
    unlinked = {"lacking": "no objects", "absent": {}}
    without = claims.measurements(made_up_session(COUNTS, STALLS, PROFILE, unlinked)).complete()
    for claim in ("D1", "D6"):
        assert len(without.measurements[claim]) == 1
        assert list(without.missing[claim].values()) == ["no objects"]
    unordered = {"lacking": None, "absent": {lottery.BY_PROFILE: "no profile"}}
    without = claims.measurements(made_up_session(COUNTS, STALLS, PROFILE, unordered)).complete()
    assert list(without.missing["D6"].values()) == ["no profile"]
    assert not without.missing["D1"]
    unknown = {name: [{"instructions": 1.0}] for name in STALLS}
    assert "does not count" in results.stalls_ratio(unknown)
    assert len(figures.story_table(TIMES, "no valgrind", "no counters").columns) == 2
    assert len(figures.story_table(TIMES, results.table(COUNTS), STALLS).columns) == 6


def test_a_profile_of_instructions_is_exact():
    found = results.five_hottest({"what": "instructions", "processes": PROFILE["processes"][:1]})
    assert found == Measurement(Counted(0.5), "share of instructions")
    assert "share of instructions" in figures.share_words(found)


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


def test_other_commits_that_are_blamed_are_named():
    said = figures.blamed_words(pd.DataFrame({"found": [1.0, 1.0, 0.0], "message": ["a", "a", "b"]}))
    assert said.startswith("2 of 3 (")
    assert "1 blame “b”" in said


def around(centre, error, n=20):
    """An estimate that a rule can answer."""
    return Location(np.log(centre), error, n - 1, n, log=True)


def orders_apart(range_of_30):
    """As many orders and duels as `full` has, of which thirty orders have this range."""
    how = lottery.SIZES["full"]
    return Spread((np.log(range_of_30) / 4.09) ** 2 + 1e-5, 1e-5, how.orders, how.duels, 4.09)


ANSWERS = {
    ("D1", "slow / fast, a change that never runs"): (around(2, 0.05), around(1.05, 0.02), around(1.3, 0.1)),
    ("D1", "slowest / fastest random order, call_method"): (
        orders_apart(1.1),
        orders_apart(1.0),
        orders_apart(1.02),
    ),
    ("D2", "instructions, slow / fast (simulated)"): (Counted(1.001), Counted(1.1), None),
    ("D2", "stalled front-end cycles, slow / fast (counted)"): (around(2, 0.05), around(1.0, 0.02), around(1.3, 0.1)),
    ("D3", "misses of the instruction cache, slow / fast (simulated)"): (Counted(70.0), Counted(1.5), None),
    ("D4", "share of the five hottest functions, call_method"): (
        Location(0.75, 0.02, 9, 10),
        Location(0.55, 0.02, 9, 10),
        Location(0.65, 0.02, 9, 10),
    ),
    ("D5", "share of bisections that blame the unrelated commit"): (Share(20, 20), Share(5, 20), Share(16, 20)),
    ("D6", "slow / hot, the same commit with hot functions together"): (
        around(2, 0.05),
        around(0.9, 0.02),
        around(1.3, 0.1),
    ),
    ("D6", "hot functions together / the middle random order, call_method"): (
        around(0.9, 0.01),
        around(1.05, 0.01),
        around(0.97, 0.02),
    ),
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
    """Nothing that chance did: D1 and D6 hold in part at most, whatever the trap does."""
    d1, *_, d6 = declared("placement").claims
    for claim in (d1, d6):
        planted, by_lot = dict.fromkeys(rule.measured for rule in claim.tests)
        found = {planted: exact(5.0, "ratio"), by_lot: exact(1.0, "ratio")}
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
