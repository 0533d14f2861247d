"""The chapter on code placement: the simulation shows the geometry that was put in; chance is not taken for an effect."""

import itertools
import random
import shutil

import numpy as np
import pandas as pd
import pytest

from ffilab import relink
from ffilab.bench import child
from ffilab.corners import placement, placement_lottery, placement_story
from ffilab.corners import placement_page as page
from ffilab.errors import UserError
from ffilab.judge import ledger
from ffilab.judge.ledger import Measurement
from ffilab.judge.processes import extremes, range_without_noise
from ffilab.judge.statistics import Interval

VALGRIND = pytest.mark.skipif(not shutil.which("valgrind"), reason="there is no valgrind")
CAN_RELINK = pytest.mark.skipif(relink.missing() is not None, reason=str(relink.missing()))


# ---- the mechanism ----


@VALGRIND
@pytest.mark.parametrize("cache", [placement.USUAL, placement.WESTMERE], ids=lambda cache: cache.name)
def test_the_simulated_cache_has_the_ways_that_were_put_in(cache):
    """At the distance of one way, as many functions as there are ways run without a miss, and one more never does."""
    fit = page.computed_fit(cache, placement.APART)
    assert placement.misses_per_call(placement.APART, fit, cache) == 0
    assert placement.misses_per_call(placement.APART, fit + 2, cache) > 0.9
    assert placement.misses_per_call(64, 64, cache) == 0


def test_what_a_cache_can_hold():
    usual = placement.USUAL
    assert page.computed_fit(usual, 64) == usual.size // usual.line
    assert page.computed_fit(usual, usual.way_bytes) == page.computed_fit(usual, 2 * usual.way_bytes) == usual.ways
    assert page.computed_fit(usual, usual.way_bytes // 2) == 2 * usual.ways
    assert page.computed_fit(placement.WESTMERE, placement.APART) == 8


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
    assert placement.this_cache(tmp_path) == placement.Cache("this machine", 49152, 12, 64)
    assert placement.this_cache(tmp_path / "nothing") == placement.USUAL


@pytest.fixture
def session(tmp_path, monkeypatch):
    monkeypatch.setattr(child, "RECORDS", tmp_path)
    monkeypatch.setenv("BUDGET", "smoke")
    return child.Session("placement", ["3.14"])


def test_the_programs_measure_every_case(session):
    runs = placement.distances(session)
    assert set(runs.distance) == {16, 64, 128, 256, 512, 1024, 2048, 4096, 8192}
    assert (runs.groupby(["process", "distance", "n"]).size() == 1).all()
    assert runs[runs.distance == placement.APART].n.max() == 256
    assert (runs.ns > 0).all()
    loops = placement.loops(session)
    assert sorted(loops[loops.process == 0].offset) == list(range(64))


def made_up_distances(ways):
    """Packed calls take 1 ns; at 4096 bytes 4 ns from the first function on that has no way left."""
    rng = np.random.default_rng(2)
    return pd.DataFrame(
        [
            {
                "process": process,
                "distance": distance,
                "n": n,
                "ns": (4.0 if distance == placement.APART and n > ways else 1.0) * np.exp(rng.normal(0, 0.02)),
            }
            for process in range(10)
            for distance in (placement.PACKED, 64, placement.APART)
            for n in (1, 2, 4, 8, 10, 12, 16, 20, 32, 64, 128, 256)
        ]
    )


def test_the_ways_are_read_off_the_clock(monkeypatch):
    monkeypatch.setattr(page, "this_cache", lambda: placement.USUAL)
    runs = made_up_distances(12)
    assert set(placement.fits(runs, placement.APART)) == {12.0}
    assert set(placement.fits(runs, 64)) == {float("inf")}
    assert "up to 12," in page.reading(runs)
    assert "A likely reason" in page.reading(runs)
    assert "agree" in page.reading(made_up_distances(8))
    assert "Something smaller" in page.reading(made_up_distances(4))
    assert "no number of functions" in page.reading(made_up_distances(1000))
    assert page.fits_table(runs).shape == (3, 4)
    ratio = page.apart_table(runs).set_index("functions").ratio[256]
    assert ratio.startswith(("3.9", "4.0"))


def test_simulation_and_clock_are_compared(monkeypatch):
    monkeypatch.setattr(page, "this_cache", lambda: placement.USUAL)
    found = pd.DataFrame(
        [
            {"cache": placement.USUAL.name, "distance": distance, "n": n, "misses": float(n > fit)}
            for distance, fit in ((64, 448), (placement.APART, 8))
            for n in placement.SIMULATED[distance]
        ]
    )
    assert "They agree in direction" in page.agreement(made_up_distances(8), found)
    assert "do not agree" in page.agreement(made_up_distances(1000), found)
    said = page.simulated_reading(found)
    assert "8 functions run without a miss" in said
    assert ": 8 ways." in said
    assert "30 KiB" in said  # 448 lines, and 448 calls
    assert "no valgrind" in page.agreement(made_up_distances(8), "no valgrind")


# ---- choosing the extremes ----


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

    found = [draw() for _ in range(400)]
    covered = np.mean([interval.low <= truth + 1e-9 and truth <= interval.high + 1e-9 for interval in found])
    assert covered >= 0.92
    if sd == 0:
        # An interval without 1 although nothing differs.
        assert np.mean([interval.low > 1 for interval in found]) <= 0.05
    assert np.isnan(range_without_noise(np.zeros((30, 2))).value)


# ---- the lottery ----


@CAN_RELINK
@pytest.mark.parametrize("name", [name for name in relink.LINKERS if shutil.which(f"ld.{name}")])
def test_an_order_is_what_was_asked_for(name, tmp_path, monkeypatch):
    monkeypatch.setattr(relink, "linker", lambda: name)
    names = relink.functions()
    assert len(names) > 5_000
    assert "_PyEval_EvalFrameDefault" in relink.order_of(relink.link(tmp_path / "plain"))
    wanted = sorted(names)[::-7]
    placed = [symbol for symbol in relink.order_of(relink.link(tmp_path / "ordered", wanted)) if symbol in set(wanted)]
    # Static functions of one name in several files come together; each name counts once.
    placed = list(dict.fromkeys(placed))
    position = {symbol: number for number, symbol in enumerate(placed)}
    known = [symbol for symbol in wanted if symbol in position]
    behind = [position[a] < position[b] for a, b in itertools.pairwise(known)]
    assert np.mean(behind) > 0.99


@CAN_RELINK
def test_linked_programs_answer(tmp_path, monkeypatch):
    monkeypatch.setattr(placement_lottery, "LINKED", tmp_path)
    monkeypatch.setattr(placement_lottery, "TURNS", 3)
    program = relink.link(tmp_path / "default")
    found = placement_lottery.duel(program, program, random.Random(1))
    assert set(found) == set(placement_lottery.BENCHMARKS)
    assert all(abs(log) < 1 for log in found.values())
    broken = tmp_path / "broken"
    broken.write_text("#!/bin/sh\nexit 3\n")
    broken.chmod(0o755)
    with pytest.raises(UserError, match="did not answer"):
        placement_lottery.duel(broken, program, random.Random(1))


@VALGRIND
@CAN_RELINK
def test_a_profile_without_perf_has_no_start_of_the_process_in_it(tmp_path, monkeypatch):
    monkeypatch.setattr(placement_lottery.profile, "perf_available", lambda: "perf is not installed")
    measurement, rows = placement_lottery.top_five(relink.link(tmp_path / "default"))
    assert measurement.unit == "share of instructions"
    assert rows[0][0] == "_PyEval_EvalFrameDefault"
    assert not [name for name, _ in rows if "Pegen" in name or "siphash" in name]


def test_what_is_lacking_is_said(monkeypatch, tmp_path):
    monkeypatch.setattr(relink, "cache", lambda: tmp_path)
    assert "make native" in relink.missing()
    note = relink.folder().with_suffix(".missing.txt")
    note.parent.mkdir(parents=True)
    note.write_text("no compiler")
    assert relink.missing() == "no compiler"
    relink.folder().mkdir()
    (relink.folder() / relink.ARCHIVE).touch()
    monkeypatch.setattr(relink.shutil, "which", lambda name: None if name.startswith("ld.") else name)
    assert "lld" in relink.missing()
    monkeypatch.setattr(relink.shutil, "which", lambda name: None)
    assert "binutils" in relink.missing()


def made_up_lottery(order_sd):
    """Ten rounds; orders 3 % slower than the default in the middle and apart by `order_sd`; noise of 2 %."""
    rng = np.random.default_rng(4)
    rows = []
    for benchmark in placement_lottery.BENCHMARKS:
        for kind, count, middle, sd in (("order", 30, 0.03, order_sd), ("copy", 10, 0.0, 0.0)):
            for number, truth in enumerate(rng.normal(middle, sd, count)):
                rows += [
                    {"name": f"{kind} {number}", "benchmark": benchmark, "log": truth + rng.normal(0, 0.02)}
                    for _ in range(10)
                ]
        for name in (placement_lottery.BY_PROFILE, placement_lottery.BY_PGO):
            rows += [{"name": name, "benchmark": benchmark, "log": rng.normal(-0.02, 0.02)} for _ in range(10)]
    return pd.DataFrame(rows)


def test_the_lottery_is_told_from_noise():
    same, different = made_up_lottery(0.0), made_up_lottery(0.03)
    for benchmark in placement_lottery.BENCHMARKS:
        raw, alone = placement_lottery.spread(same, benchmark)
        assert alone.low * 0.98 <= raw <= alone.high * 1.02
        raw, alone = placement_lottery.spread(different, benchmark)
        assert raw > alone.high
        assert placement_lottery.true_spread(different, benchmark).low > 1
    hits, trials = placement_lottery.passing(same, "numbers", "order ", 1.02)
    assert trials == 30
    assert hits > 20
    assert placement_lottery.passing(same, "numbers", "order ", 1.05)[0] <= 2
    assert placement_lottery.passing(same, "numbers", "copy ", 1.02)[0] <= 1
    assert "orders look like a regression of 2% or more" in page.luck(different)
    assert len(page.lottery_table(different)) == 3
    table = page.reasoned_table(different, {placement_lottery.BY_PGO: "it has no symbols"})
    assert (table["time over the linker's order"] == "it has no symbols").sum() == 3


# ---- the story ----


@pytest.fixture(scope="module")
def story():
    """The repository, in the folder that tests build in."""
    return placement_story.make_repository()


def test_the_history_is_what_it_says(story):
    assert len(story) == 1 + len(placement_story.HISTORY)
    at = placement_story.culprit(story)
    changed = placement_story.git("diff", "--name-only", story[at - 1], story[at]).split()
    assert changed == ["report.h"]
    assert placement_story.CULPRIT in placement_story.git("log", "--format=%s", story[at], "-1")
    assert placement_story.make_repository() == story  # the same hashes again


@VALGRIND
def test_the_commit_changes_misses_and_not_instructions(story):
    counts = placement_story.counts(placement_story.programs(story)).set_index("program")
    assert counts.instructions["slow"] / counts.instructions["fast"] == pytest.approx(1, abs=0.001)
    assert counts.misses["slow"] > 20 * counts.misses["fast"]
    assert counts.misses["hot"] < 2 * counts.misses["fast"]
    assert counts.instructions["hot, aligned"] / counts.instructions["hot"] == pytest.approx(1, abs=0.001)
    suspects = placement_story.counts(placement_story.suspects(story)).set_index("program")
    more = suspects.instructions / suspects.instructions["before"]
    assert {
        name: "real" if more[name] > 1.2 else "placement" for name in placement_story.TRUTH
    } == placement_story.TRUTH


def test_bisection_finds_what_its_check_finds(story, monkeypatch):
    """With a check that looks at the header and not at the clock: no speed is asserted here."""
    check = placement_story.REPOSITORY / "check.sh"
    original = check.read_text()
    assert "./machine" in original
    fake = placement_story.REPOSITORY.parent / "look.sh"
    fake.write_text("#!/bin/sh\n! grep -q 'aligned(4096)' report.h\n")
    fake.chmod(0o755)
    real = placement_story.git

    def git(*words, **options):
        return real(*(str(fake) if word == "./check.sh" else word for word in words), **options)

    monkeypatch.setattr(placement_story, "git", git)
    found = placement_story.bisect(story, 5.0)
    assert found["found"] == 1.0
    assert "is the first bad commit" in found["log"]
    assert real("status", "--short") == ""


def test_the_check_script_decides_by_the_limit(story):
    for limit, expected in (("1000000", "ok"), ("0.000001", "exit code 1")):
        ended, out, err = child.program(["sh", "-c", f"cd '{placement_story.REPOSITORY}' && ./check.sh {limit}"])
        assert ended == expected, out + err


def test_tools_that_are_not_there_are_named(monkeypatch, tmp_path):
    """Without perf, valgrind and counters the chapter goes on, and says what it lacks."""
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "perf is not installed" in placement.counted()
    assert "perf is not installed" in page.counted_words(placement.counted())
    assert "no valgrind" in placement.simulated()
    assert "no valgrind" in placement_story.counts({})
    with pytest.raises(UserError, match="make doctor"):
        placement.cachegrind(["true"], placement.USUAL)
    measurement, reason = placement_lottery.top_five(tmp_path / "program")
    assert measurement is None
    assert "Neither perf nor valgrind" in reason
    assert "Neither perf nor valgrind" in page.share_words(measurement, reason)


def test_self_check():
    assert all("still open" in line for line in placement_story.check_verdicts({"suspect 1": "", "suspect 2": ""}))
    assert placement_story.check_verdicts(placement_story.TRUTH) == ["suspect 1: right.", "suspect 2: right."]
    wrong = placement_story.check_verdicts({"suspect 1": "placement", "suspect 2": "real"})
    assert "more instructions" in wrong[0]
    assert "the same instructions as before" in wrong[1]


# ---- the claims ----

TIMES = pd.DataFrame(
    [
        {"program": name, "ns": ns * (1 + 0.01 * n)}
        for n in range(10)
        for name, ns in (("fast", 2.0), ("slow", 6.0), ("hot", 3.0))
    ]
)
COUNTS = pd.DataFrame(
    [
        {"program": name, "instructions": 1_000_000, "misses": misses}
        for name, misses in (("fast", 100), ("slow", 8_000), ("hot", 100))
    ]
)
STALLS = {
    name: {"instructions": 1.0, "stalled-cycles-frontend": stalled}
    for name, stalled in (("fast", 10.0), ("slow", 40.0), ("hot", 9.0))
}


def test_every_claim_gets_what_its_rule_asks_for():
    profile = Measurement(Interval(0.9, 0.88, 0.92), 0.0, "share of samples")
    bisections = pd.DataFrame({"found": [1.0, 1.0, 0.0]})
    handed = placement.claim_measurements(TIMES, COUNTS, bisections, profile, STALLS)
    ours = {c["id"]: {t["measured"] for t in c["test"]} for c in ledger.claims() if c["chapter"] == "placement"}
    assert {claim: set(measurements) for claim, measurements in handed.items()} == ours
    values = {name: m.interval.value for measurements in handed.values() for name, m in measurements.items()}
    assert values["slow / fast, a change that never runs"] == pytest.approx(3)
    assert values["slow / hot, the same commit with hot functions together"] == pytest.approx(2)
    assert values["misses of the instruction cache, slow / fast (simulated)"] == 80
    assert values["stalled front-end cycles, slow / fast (counted)"] == 4
    assert values["share of bisections that blame the unrelated commit"] == pytest.approx(2 / 3)
    without = placement.claim_measurements(TIMES, "no valgrind", bisections, None, "no counters")
    assert without["D2"] == without["D3"] == without["D4"] == {}
    assert len(page.story_table(TIMES, "no valgrind", "no counters").columns) == 2
    assert len(page.story_table(TIMES, COUNTS, STALLS).columns) == 6
