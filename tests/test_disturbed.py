"""What was disturbed: how it is told, measured again, left out and counted."""

import itertools
import random
import time
from contextlib import contextmanager, nullcontext
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ffilab.judge import controls
from ffilab.measure import neighbour, noise, runner
from ffilab.measure import session as sessions
from ffilab.measure.case import Outcome, Step
from ffilab.measure.children import case_of, chosen
from ffilab.measure.plan import controls as arms_of_controls
from ffilab.run import machine
from ffilab.setup.catalogue import FREE_THREADED, GIL

pytestmark = pytest.mark.usefixtures("quiet_progress")


@pytest.mark.parametrize(
    ("siblings", "cpus"), [("", [2]), ("2", [2]), ("2,6", [2, 6]), ("0-2", [0, 1, 2]), ("1-2,9", [1, 2, 9])]
)
def test_a_pinned_worker_is_disturbed_on_its_core_and_its_siblings(siblings, cpus, monkeypatch):
    monkeypatch.setattr(machine.system, "read_text", lambda path: siblings)
    assert machine.cpus_of(2) == cpus
    assert machine.cpus_of(None) == machine.cores_to_pin()


def test_the_watch_counts_strangers_and_stolen_time_where_they_disturb(monkeypatch):
    """What others do on another core is their affair."""
    used, ours = {0: 0.0, 1: 0.0, 2: 0.0}, [0.0]

    def cpu_times(percpu):
        return [SimpleNamespace(user=seconds, system=0.0, steal=seconds / 10) for seconds in used.values()]

    monkeypatch.setattr(machine.psutil, "cpu_times", cpu_times)
    monkeypatch.setattr(machine, "_own_s", lambda: ours[0])
    monkeypatch.setattr(machine, "cpus_of", lambda cpu: [0, 2] if cpu is None else [cpu])
    watches = {cpu: machine.Watch(cpu) for cpu in (None, 0, 1, 2)}
    used |= {0: 1.0, 1: 5.0, 2: 0.5}
    ours[0] = 0.2
    found = {cpu: watch.end(children_s=0.3) for cpu, watch in watches.items()}
    assert {cpu: one["strangers_s"] for cpu, one in found.items()} == {None: 1.0, 0: 0.5, 1: 4.5, 2: 0.0}
    assert {cpu: one["steal_s"] for cpu, one in found.items()} == {None: 0.15, 0: 0.1, 1: 0.5, 2: 0.05}


@pytest.mark.parametrize(
    ("line", "word"),
    [
        ({}, ""),
        ({"strangers_s": 0.04, "wall_s": 0.06}, ""),  # four ticks may be the grain of the clock
        ({"strangers_s": 0.06, "wall_s": 0.3}, "other load"),
        ({"strangers_s": 0.06, "wall_s": 0.5}, ""),
        ({"throttled_s": 0.06, "wall_s": 2.0}, "quota"),
        ({"throttled_s": 0.06, "wall_s": 4.0}, ""),
        # Of sixteen CPUs others may use one; of two, a sixth of one.
        ({"strangers_s": 1.0, "wall_s": 1.0, "cpus": 16}, ""),
        ({"strangers_s": 1.3, "wall_s": 1.0, "cpus": 16}, "other load"),
        ({"strangers_s": 0.16, "wall_s": 1.0, "cpus": 2}, "other load"),
        ({"steal_s": 0.06, "wall_s": 2.0}, "stolen time"),
        ({"steal_s": 0.02, "wall_s": 0.1}, ""),
        ({"steal_s": 1.0, "strangers_s": 1.0, "wall_s": 1.0}, "other load"),
    ],
)
def test_what_disturbed_is_told_by_what_happened(line, word):
    assert noise.disturbed(line) == word


@given(st.lists(st.integers(1, 10**12), min_size=8, max_size=8))
def test_the_rule_never_looks_at_a_time(times):
    blocks = [
        {"restart": n // 4, "ns": {"k/a": ns}, "strangers_s": 0.1 * (n in (2, 6)), "wall_s": 0.1}
        for n, ns in enumerate(times)
    ]
    assert noise.discard(blocks, [0, 1]).blocks == {2, 6}


def test_disturbances_are_said_in_a_sentence():
    assert noise.disturbed_in_words(noise.Disturbed(0, 0, 40), "", "processes") == "none of 40 processes was disturbed"
    told = noise.disturbed_in_words(noise.Disturbed(12, 1, 400), "quota", "processes")
    assert told == "12 of 400 processes were measured again, 1 left out: quota"
    assert "more than half" in noise.disturbed_in_words(noise.Disturbed(20, 30, 40), "quota", "processes")


def test_there_are_four_pairs_of_controls_and_two_on_each_interpreter():
    pairs = {number: sum(arm.group == "shared" for arm in arms_of_controls(number)) // 2 for number in (1, 2, 3, 6)}
    assert pairs == {1: 4, 2: 2, 3: 2, 6: 2}


# ---- which restarts a run makes ----


def restarts_of(is_disturbed, given=(0, 1, 2, 3), blocks=4, wall_s=None):
    """The restarts of a run, by layout, blocks and whether again; is_disturbed(restart, block)."""
    made, done, found = SimpleNamespace(blocks=blocks, wall_s=wall_s), [], []
    for number, (layout, count, again, _) in enumerate(runner.all_turns(made, list(given), done, random.Random(1))):
        found.append((layout, count, again))
        done += [
            {"layout": layout, "again": again, "strangers_s": float(is_disturbed(number, block)), "wall_s": 1.0}
            for block in range(count)
        ]
    return found


def test_layouts_that_lost_blocks_get_them_again_and_others_nothing():
    assert restarts_of(lambda restart, block: False) == [(layout, 4, False) for layout in range(4)]
    lost = {(1, 0): 1, (1, 3): 1, (2, 1): 1}
    assert sorted(restarts_of(lambda *place: place in lost)[4:]) == [(1, 2, True), (2, 1, True)]
    # Of ten blocks one is not worth a restart.
    assert len(restarts_of(lambda *place: place == (0, 0), blocks=10)) == 4


def test_half_of_the_blocks_are_measured_again_at_most_and_again_while_they_stay_disturbed():
    always = restarts_of(lambda restart, block: True)
    assert sum(count for _, count, again in always if again) == 8
    # One layout whose first repair is disturbed too.
    found = restarts_of(lambda restart, block: restart in (1, 4))
    assert found[4:] == [(1, 4, True), (1, 4, True)]


def test_without_layouts_whole_restarts_are_added():
    found = restarts_of(lambda restart, block: restart == 2 or (restart, block) == (0, 0), given=[None] * 4)
    assert found[4:] == [(None, 4, True)]


def test_the_default_link_has_a_restart_that_nothing_takes_the_place_of():
    made = SimpleNamespace(blocks=4, wall_s=None)
    found = list(runner.all_turns(made, [0, 1, 2], [], random.Random(1), default=2))
    assert found == [(0, 4, False, False), (1, 4, False, False), (None, 4, False, True), (2, 4, False, False)]


def test_a_wall_time_ends_a_run_and_nothing_is_measured_again():
    assert len(restarts_of(lambda restart, block: True, given=[0] * 100, wall_s=0.0)) == runner.LEAST_RESTARTS
    assert len(restarts_of(lambda restart, block: True, given=[0] * 20, wall_s=60)) == 20


# ---- processes ----

QUIET_NS, BUSY_NS = 100, 150


def probed(*probes, busy_s=1.0):
    """What is kept of the probes on core 0 beside one process."""
    return {"0": {"busy_s": busy_s, "probes": list(probes)}}


@pytest.fixture
def busy(monkeypatch):
    """Of the processes that run from now on those are disturbed whose numbers are in this set."""
    numbers, count = set(), itertools.count()

    class Busy:
        def end(self):
            return {"strangers_s": 0.05 + (next(count) in numbers), "throttled_s": 0.0, "steal_s": 0.0, "wall_s": 1.0}

    monkeypatch.setattr(sessions.machine, "Watch", Busy)
    monkeypatch.setattr(neighbour, "beside", lambda: nullcontext(probed(QUIET_NS, QUIET_NS)))
    return numbers


def three(session, title="calls", **further):
    """An experiment of three cases in four rounds; each process says how many ran before it."""
    count = itertools.count()
    cases = [Step(lambda seed: Outcome({"at": next(count)}, "ok"), {"case": n}) for n in range(3)]
    return session.run(title, cases, 4, **further)


def test_disturbed_processes_run_again_at_the_end_in_the_place_of_the_first(session, busy):
    busy |= {2, 7}
    frame = three(session)
    assert list(frame.process) == list(range(12))
    assert sorted(frame["at"]) == [0, 1, 3, 4, 5, 6, 8, 9, 10, 11, 12, 13]
    again = session.record.children[12:]
    assert [line["again"] for line in again] == [True, True]
    assert {line["replaces"] for line in again} == {2, 7}
    for line in again:
        first = session.record.children[line["replaces"]]
        assert all(line[key] == first[key] for key in ("factors", "round", "layout"))
        assert line["seed"] != first["seed"]
    assert session.disturbed("calls") == (2, 0, 12)
    assert session.said("calls") == "2 of 12 processes were measured again, none left out: other load"


def test_nobody_watches_what_only_counts_events(session, busy):
    busy |= set(range(12))
    frame = three(session, events=True)
    assert sorted(frame["at"]) == list(range(12))
    assert session.disturbed("calls") == (0, 0, 12)
    assert session.said("calls") == "12 processes, in which events are counted: they hold whatever else ran"
    assert controls.disturbed(session, "calls").passed


def test_half_as_many_processes_run_again_at_most_and_what_stays_disturbed_is_left_out(session, busy):
    busy |= {0, *range(12, 18)}
    frame = three(session)
    assert list(frame.process) == list(range(1, 12))
    assert session.disturbed("calls") == (6, 1, 12)


def test_where_most_stayed_disturbed_all_are_shown_and_it_is_said(session, busy):
    busy |= set(range(18))
    frame = three(session)
    assert list(frame["at"]) == list(range(12))
    assert session.disturbed("calls") == (6, 12, 12)
    assert session.disturbed("calls").is_most
    assert "all are shown" in session.said("calls")


def test_a_case_does_not_vanish(session, busy):
    """Something may disturb one case alone: what it does itself, through the system."""
    place = itertools.count()
    steps = [
        Step(lambda seed, n=n: (busy.add(next(place)) if n == 2 else next(place), Outcome({}, "ok"))[1], {"case": n})
        for n in range(6)
    ]
    frame = session.run("one", steps, 3)
    assert frame.groupby("case").size().tolist() == [3] * 6
    assert session.disturbed("one") == (9, 3, 18)


def test_a_further_session_heals_and_a_bad_one_is_left_out(session, busy, monkeypatch, tmp_path, tell):
    busy |= set(range(18))
    three(session)
    session.close()
    busy.clear()
    tell(progress=str(tmp_path / "p"), earlier=[session.folder.name])
    second = sessions.Measuring("chapter", [GIL, FREE_THREADED])
    assert three(second).groupby("case").size().tolist() == [4] * 3
    assert second.disturbed("calls") == (6, 12, 24)
    busy |= set(range(18, 200))
    assert len(three(second)) == 24


# ---- a neighbour beside a process ----


QUIET, BUSY = probed(*[QUIET_NS] * 4), probed(*[BUSY_NS] * 4)
# Core 0 was busy three times as long as core 1, and core 1 alone had company.
OF_TWO_CORES = {**probed(*[QUIET_NS] * 3, busy_s=3.0), "1": {"busy_s": 1.0, "probes": [BUSY_NS] * 3}}
LATER = {**probed(*[QUIET_NS] * 3), "1": {"busy_s": 1.0, "probes": [QUIET_NS] * 3}}


@pytest.mark.parametrize(
    ("cases", "seen", "shares"),
    [
        # The share of its time between busy probes.
        (["case"] * 3, [probed(QUIET_NS, QUIET_NS, BUSY_NS, BUSY_NS, BUSY_NS), QUIET, QUIET], [0.625, 0, 0]),
        # From end to end: a later process tells.
        (["case"] * 2, [BUSY, QUIET], [1, 0]),
        # A case that slows its own probes.
        (["slow", "fast"] * 3, [BUSY, QUIET] * 3, [0] * 6),
        # Cores count by the time that they were busy.
        (["case"] * 2, [OF_TWO_CORES, LATER], [0.25, 0]),
        (["case"] * 2, [{}, {}], [0, 0]),
        (["case"] * 2, [probed(QUIET_NS)] * 2, [0, 0]),
    ],
)
def test_company_of_a_process_is_told_by_its_probes(cases, seen, shares):
    assert neighbour.of_processes(cases, seen) == pytest.approx(shares, abs=0.001)


@pytest.mark.skipif(not machine.can_pin(), reason="no thread can be kept on a core here")
def test_cores_are_probed_before_during_and_behind():
    with neighbour.beside() as cores:
        deadline = time.monotonic() + 4 * neighbour.EVERY_S
        while time.monotonic() < deadline:
            pass
    assert cores
    assert all(len(watched["probes"]) >= 3 for watched in cores.values())
    assert min(min(watched["probes"]) for watched in cores.values()) > 0


@pytest.fixture
def company(busy, monkeypatch):
    """A function of a predicate: those of the processes that run from now on have a neighbour whose number it tells."""

    def told(is_busy):
        count = itertools.count()

        @contextmanager
        def beside():
            yield probed(*[BUSY_NS if is_busy(next(count)) else QUIET_NS] * 3)

        monkeypatch.setattr(neighbour, "beside", beside)

    return told


def test_a_process_that_had_a_neighbour_runs_again(session, company):
    company(lambda number: number == 2)
    assert sorted(three(session)["at"]) == [0, 1, *range(3, 13)]
    assert session.said("calls") == "1 of 12 processes were measured again, none left out: a neighbour"


def test_a_neighbour_that_stays_is_said_and_withholds_nothing(session, company, monkeypatch):
    # The last round alone is quiet, and all that is measured again is not.
    company(lambda number: not 9 <= number < 12)
    monkeypatch.setattr(neighbour, "levels", lambda times, numbers: np.full(len(times), QUIET_NS))
    three(session)
    assert session.disturbed("calls").is_most
    check = controls.disturbed(session, "calls")
    assert check.passed
    assert check.found.endswith("of each case the quieter half is shown: a neighbour")


def test_a_neighbour_leaves_as_many_as_an_interval_takes():
    def child(process, company):
        return {"process": process, "interpreter": "", "factors": {}, "company": company}

    two_clean = [[child(number, company)] for number, company in enumerate((0.0, 0.9, 0.0, 0.4, 0.0))]
    assert [line["process"] for line in chosen(two_clean[:4], set())] == [0, 2, 3]
    assert [line["process"] for line in chosen(two_clean, set())] == [0, 2, 4]
    noisy = [[child(number, company)] for number, company in enumerate((0.9, 0.5, 0.8, 0.6, 0.7, 0.4, 0.0, 0.95))]
    assert [line["process"] for line in chosen(noisy, {case_of(noisy[0][0])})] == [1, 3, 5, 6]


def test_what_nothing_probed_says_so(session, busy, monkeypatch):
    monkeypatch.setattr(neighbour, "beside", lambda: nullcontext({}))
    three(session)
    assert session.said("calls") == "none of 12 processes was disturbed; not watched for a neighbour"
