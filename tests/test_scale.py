"""`ffilab scale`: what rules say of recorded slices, sweeps and arms, and which arms are tried. No test asks for a
speed."""

import json
import math
from dataclasses import replace
from types import SimpleNamespace

import pytest

from ffilab.page import evidence
from ffilab.run.errors import UserError
from ffilab.yours.scale import command, diagnosing, rules, slices
from ffilab.yours.scale.result import Scaling
from studies import scale as study
from tests.helpers.scaling import arms, moved, processes, recorded, waits

# ---- slices ----


@pytest.mark.parametrize(("alone", "together", "ratio"), [(100, 100, 2), (100, 400, 0.5), (100, 50, 4)])
def test_each_thread_is_compared_with_itself(alone, together, ratio):
    found = slices.process_of(recorded(alone, together))
    assert found.ratio == pytest.approx(ratio)
    assert found.throughput == pytest.approx(ratio)
    assert slices.left_out([found]) == 0


def test_what_was_preempted_is_left_out_and_its_share_is_told():
    found = slices.process_of(recorded(preempted=5))
    assert found.ratio == pytest.approx(1)
    assert found.throughput < 0.5
    assert slices.left_out([found]) == pytest.approx(0.2)


def test_a_slice_whose_neighbour_did_not_run_does_not_count():
    found = slices.process_of(recorded(late=10**8))
    assert found.used == 0
    assert slices.ratio([found] * 5).is_known is False


def test_with_the_gil_a_thread_counts_by_the_slices_that_it_got_done():
    """Each slice is as fast as alone; there are half as many."""
    answer = {**recorded(together=100), "gil": True}
    assert slices.process_of(answer).throughput == pytest.approx(2)
    for rows in answer["rows"]:
        rows[:] = [row for number, row in enumerate(rows) if row[slices.PHASE] % 3 < 2 or number % 2]
    assert slices.process_of(answer).throughput == pytest.approx(1)


def test_who_waited_for_a_core_does_not_count():
    answer = recorded()
    for row in answer["rows"][0]:
        row[slices.DELAY] = 0.05 * (row[slices.ENDED] - row[slices.BEGAN])
    assert slices.process_of(answer).used == 0


def test_two_processes_have_no_interval():
    assert not slices.interval([2.0, 2.0]).is_known
    assert slices.interval([1.9, 2.0, 2.1]).is_known


# ---- rules ----


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (arms(1.98), rules.FINE),
        (arms(0.3), rules.HELD),
        (arms(1.2), rules.HELD),
        (arms(4000), rules.ERROR),
        (arms([one for ratio in (2.5, 4, 8) for one in processes(ratio, times=1)]), "open"),
        ({rules.DISTURBED: processes(1.0)}, rules.MACHINE),
        ({rules.DISTURBED: processes(1.0, lost=60)}, "open"),
        ({rules.DISTURBED: processes(1.0, times=2)}, "open"),
        (arms(1.0, control=1.0), "open"),
        (arms(1.0, control=processes(1.7)), "open"),
        (arms(1.0, control=processes(2.0, times=2)), "open"),
        (arms(1.2, ceiling=1.2), rules.BANDWIDTH),
        (arms(0.3, ceiling=1.2), rules.HELD),
        (arms(0.3, ceiling=processes(1.7)), rules.HELD),
        (arms(processes(1.98, empty=90.0)), rules.LITTLE_WORK),
        (arms(processes(0.3, empty=90.0)), rules.HELD),
        (arms(processes(1.0, gil=True)), rules.GIL),
        (arms(processes(1.98, rates=(0.5, 0.5))), rules.HELD),
    ],
)
def test_the_verdict(given, said):
    assert rules.verdict(given, 2) == said


def test_beside_a_busy_loop_nothing_is_found():
    """Rare long waits are told from other work by the control, which has them as well."""
    loaded = processes(1.98, rates=(0.5, 0.5))
    assert rules.verdict(arms(loaded, control=loaded), 2) == rules.FINE


def test_what_ran_beside_a_disturbed_control_is_measured_again(tmp_path):
    """Whatever it says itself: the rule looks at the control alone."""
    said = iter(
        [*processes(0.1, times=1), *processes(1.0, times=1), *processes(1.9, times=1), *processes(2.0, times=1)]
    )
    one = SimpleNamespace(measure=lambda **how: next(said), threads=2)
    record = Scaling("x", "t", 2)
    diagnosing.Diagnosis(one, record, float("inf")).arm("it", times=1)
    assert [round(each.ratio, 1) for each in record.arms["it"]] == [1.9]
    assert len(record.arms[rules.DISTURBED]) == len(record.arms[rules.CONTROL]) == 1


def test_suspects_are_what_moved_and_not_what_the_tool_moves():
    found = rules.suspects(moved("l", "l[0]", idle=["type repeat"]))
    assert [one.name for one in found] == ["l", "l[0]"]
    assert rules.suspects(moved("l", times=2)) == []
    held = rules.suspects(moved("L", kind="lock"))
    assert [one.kind for one in held] == ["lock"]


@pytest.mark.parametrize(
    ("name", "root"),
    [
        ("config['limit']", "config"),
        ("f.argtypes", "f"),
        ("l[0]", "l"),
        ("x", "x"),
        ("f: default of a", ""),
        ("f()", "f"),
    ],
)
def test_the_name_from_which_it_is_reached(name, root):
    assert rules.Suspect(name, "counts", 1, "counted", True).root == root


def test_two_that_count_only_together_are_both_named_and_an_innocent_is_not():
    those = rules.suspects(moved("l", "l[0]", "innocent"))
    found = arms(0.26, all_immortal=1.97)
    found |= {
        rules.WITHOUT + name: processes(ratio) for name, ratio in (("l", 0.33), ("l[0]", 0.31), ("innocent", 1.96))
    }
    assert [one.name for one in rules.culprits(found, those)] == ["l", "l[0]"]
    told = rules.explained(found, those, None, 2)
    assert [(one.name, one.kind) for one in told] == [("l", rules.COUNTS), ("l[0]", rules.COUNTS)]
    assert told[0].without.value == pytest.approx(0.33, rel=0.02)


def test_what_is_counted_and_not_contended_is_innocent():
    those = rules.suspects(moved("source"))
    assert rules.culprits(arms(1.2, all_immortal=1.2), those) == []
    told = rules.explained(arms(1.2, all_immortal=1.2), those, None, 2)
    assert [one.kind for one in told] == [rules.UNKNOWN]


def test_a_lock_is_named_where_a_copy_for_each_thread_helps():
    those = rules.suspects(moved("L", kind="lock"))
    assert rules.explained(arms(0.7, own_copy=2.0), those, None, 2)[0].kind == rules.LOCK
    those = rules.suspects(moved("d", kind="mutex"))
    assert rules.explained(arms(0.7, own_copy=2.0), those, None, 2)[0].kind == rules.SECTION
    assert rules.explained(arms(0.7, own_copy=0.7), those, None, 2)[0].kind == rules.UNKNOWN


def test_a_rest_is_told_only_where_there_certainly_is_one():
    those = rules.suspects(moved("p"))
    some = [one for ratio in (2.0, 1.98, 1.2) for one in processes(ratio, times=1)]
    assert [one.name for one in rules.explained(arms(0.4, all_immortal=some), those, None, 2)] == ["p"]
    told = rules.explained(arms(0.4, all_immortal=1.0), those, None, 2)
    assert [one.name for one in told] == ["p", "the rest"]


def test_of_what_is_imported_no_thread_has_a_copy():
    """So that no copy makes an innocent of it."""
    those = rules.suspects({**moved("logging._lock", kind="lock"), "imported": ["logging"]})
    told = rules.explained(arms(0.7, own_copy=0.7), those, None, 2)
    assert [(one.name, one.kind) for one in told] == [("logging._lock", rules.LOCK)]


def test_a_lock_that_was_only_seen_held_is_told_if_the_world_does_not_stop():
    those = rules.suspects(moved("set set()", kind="mutex"))
    assert rules.explained(arms(0.7), those, None, 2)[0].kind == rules.SECTION
    stops = processes(1.0, rates=(1.0, 0.3))
    assert rules.explained(arms(0.7, beside_others=stops), those, None, 2)[0].kind == rules.STOPS


@pytest.mark.parametrize(("immortal", "kinds"), [(1.6, {rules.COUNTS}), (1.0, {rules.COUNTS, rules.DATA})])
def test_what_copies_cure_and_immortal_objects_hardly_is_data(immortal, kinds):
    given = arms(0.8, all_immortal=immortal, own_copy=2.0, own_setup=2.0)
    found = rules.explained(given, rules.suspects(moved("row")), None, 2)
    assert {one.kind for one in found} == kinds


def test_counts_that_meet_or_do_not_are_told_apart_by_ranks():
    """An arm whose processes are of two kinds has a wide interval, and is below all of the other one."""
    some = [one for ratio in (0.6, 0.62, 1.5, 1.52, 1.55) for one in processes(ratio, times=1)]
    given = arms(1.4, all_immortal=processes(2.0, times=5), all_immortal_but_l=some)
    assert rules.larger(rules.value(given, rules.IMMORTAL), rules.value(given, rules.WITHOUT + "l")) != "yes"
    assert [one.name for one in rules.culprits(given, rules.suspects(moved("l", "innocent")))] == ["l"]


def test_where_each_alone_loses_little_those_are_named_that_certainly_lose():
    given = arms(1.47, all_immortal=1.99, all_immortal_but_t=1.85, all_immortal_but_innocent=1.98)
    assert [one.name for one in rules.culprits(given, rules.suspects(moved("t", "innocent")))] == ["t"]


def test_a_lock_that_nobody_saw_is_found_where_threads_wait():
    one = Made(["L"], moved(), everything=False)
    one.ask = lambda do, **_: waits(L=80) if do == "park" else Made.ask(one, do)
    found = diagnosed(one)
    assert [(one.name, one.kind) for one in found.culprits] == [("L", rules.SECTION)]
    assert [cure.how for cure in found.cures] == [rules.PRICES[rules.COPY][0]]


@pytest.mark.parametrize(
    ("others", "parked", "kind"),
    [
        ({}, rules.Parked("the C library", "srandom", "_ctypes.so", 0.1), rules.C_LIBRARY),
        ({}, rules.Parked("mine.so", "PyMutex_Lock", "mine.so", 0.1), rules.EXTENSION),
        ({}, rules.Parked("mine.so", "pthread_mutex_lock", "mine.so", 0.1), rules.EXTENSION),
        ({"beside_others": processes(1.0, rates=(1.0, 0.3))}, None, rules.STOPS),
        (
            {"beside_others": processes(1.0, rates=(1.0, 0.3))},
            rules.Parked("mine.so", "PyMutex_Lock", "mine.so", 0.1),
            rules.STOPS,
        ),
        ({"own_setup": 2.0}, None, rules.DATA),
        ({"own_setup": 0.7}, None, rules.UNKNOWN),
        ({"base": processes(0.7, faults=9.0), "own_setup": 0.7}, None, rules.SYSTEM),
        ({"base": processes(0.7, faults=9.0), "beside_others": processes(1.0, rates=(1.0, 0.3))}, None, rules.SYSTEM),
        ({}, rules.Parked("the interpreter", "", "", 0.1), rules.INTERPRETER),
    ],
)
def test_kinds_are_told_apart(others, parked, kind):
    given = arms(**{"base": 0.7, **others})
    assert [one.kind for one in rules.explained(given, [], parked, 2)] == [kind]


def test_a_cure_is_told_where_it_certainly_helped():
    found = rules.cures(arms(0.3, all_immortal=2.0, deferred=0.31, local_names=1.2), 2)
    assert [(one.how, one.is_enough) for one in found] == [
        (rules.PRICES[rules.LOCAL][0], False),
        (rules.PRICES[rules.IMMORTAL][0], True),
    ]


# ---- the screen ----


def result(**given):
    record = Scaling("l[0]", "3.14t", 2, arms(**given))
    record.suspects = rules.suspects(moved("l", "l[0]"))
    return record


TWO = {"all_immortal": 1.97, "all_immortal_but_l": 0.33, "all_immortal_but_l[0]": 0.31}


def test_the_answer_comes_first_and_names_what_was_tried():
    said = str(result(base=0.26, **TWO))
    assert said.startswith("Held back by the reference counts of `l` and `l[0]`: with all immortal 1.97 [")
    assert "left out 0.33 and 0.31" in said
    alone = str(result(base=0.38, all_immortal=1.97, **{"all_immortal_but_l": 0.74, "all_immortal_but_l[0]": 1.97}))
    assert alone.startswith("Held back by the reference counts of `l`: with all that moved immortal 1.97 [")
    assert "; with all but it 0.74.\n" in alone
    assert "immortal objects, made so in C: 1.97" in said
    assert repr(result(base=0.26, **TWO)).startswith("<Scaling 'l[0]': 0.26 [")
    assert result(base=0.26, **TWO).kinds == [rules.COUNTS]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (arms(1.98), "It scales"),
        (arms(4000), "An error: more work than the threads can do"),
        (arms(1.0, control=processes(1.7)), "Open: threads that share nothing"),
        (arms(1.7), "Open: the interval holds both answers"),
        ({rules.DISTURBED: processes(1.0)}, "The machine"),
        (arms(1.2, ceiling=1.2), "The memory or the caches"),
        (
            arms(processes(1.0, gil=True), without_the_GIL=1.9),
            "Held back by the GIL, which came back with the module m",
        ),
    ],
)
def test_what_each_verdict_says(given, said):
    record = Scaling("f()", "3.14t", 2, given, gil_by="m")
    assert str(record).startswith(said)


def test_a_record_gives_the_same_answer_again(tmp_path):
    record = result(base=0.26, **TWO)
    few = replace(processes(1.0, times=1)[0], alone=(math.nan, 1.0))
    record.arms["too few slices"] = [few]
    record.save(tmp_path / "record.json")
    again = Scaling.read(tmp_path / "record.json")
    assert str(again) == str(record)
    assert json.loads(record.to_json())["found"]["culprits"][0]["name"] == "l"
    (tmp_path / "other.json").write_text("{}")
    with pytest.raises(UserError, match="is no record of ffilab scale"):
        Scaling.read(tmp_path / "other.json")


@pytest.mark.parametrize(("base", "said", "code"), [(0.3, "Failed", 1), (2.0, "Passed", 0), (1.5, "Open", 0)])
def test_the_exit_code_is_that_of_a_finding(base, said, code, monkeypatch, capsys):
    monkeypatch.setattr(diagnosing, "scale", lambda *_, **__: result(base=base))
    with pytest.raises(SystemExit) as left:
        command.scale.main(["--fail-below", "1.5", "l[0]"], standalone_mode=False)
    assert left.value.code == code
    assert said in capsys.readouterr().out.splitlines()[-1]


def test_threads_that_take_turns_are_judged_by_all_slices():
    """With the GIL most slices are as fast as alone, since the other thread waits outside of them."""
    record = Scaling("f()", "3.14t", 2, arms(processes(1.98, gil=True, rates=(0.5, 0.5))))
    assert record.ratio.value == pytest.approx(1)
    assert record.below(1.5) == "yes"


def test_more_than_two_threads_have_a_figure():
    record = result(base=0.5)
    record.threads = 4
    record.arms |= {"2 threads": processes(0.9), "3 threads": processes(0.7)}
    assert [line.split()[0] for line in record.figure() if line] == ["1", "2", "3", "4"]


# ---- which arms are tried ----


NOBODY = {"looks": 9, "parked": 0, "stacks": [], "waited": [], "imported": [], "python": ""}


class Made:
    """Stands for processes: of a statement whose threads scale if all its culprits are cured. control: what threads do
    that share nothing."""

    threads = 2

    def __init__(self, culprits, watched, control=2.0, everything=True):
        self.culprits, self.watched, self.control, self.everything = set(culprits), watched, control, everything

    def names(self):
        return {"l", "L"}

    def calls(self):
        return "f"

    def ask(self, do, **how):
        return {"watch": self.watched, "park": NOBODY}.get(do, {})

    def measure(self, *options, **how):
        if how.get("control") or how.get("processes") or how.get("beside"):
            return processes(self.control, times=1)[0]
        immortal = how.get("immortal", ())
        cured = "own" in how or (self.everything if immortal == "everything" else self.culprits <= set(immortal))
        return processes(2.0 if cured and self.culprits else 0.3 if self.culprits else 1.98, times=1)[0]


def diagnosed(one, seconds=30.0):
    record = Scaling("it", "t", 2)
    diagnosing.Diagnosis(one, record, diagnosing.time.monotonic() + seconds).run()
    return record


def test_all_suspects_are_cured_then_each_is_left_out():
    found = diagnosed(Made(["l", "l[0]"], moved("l", "l[0]", "innocent")))
    assert {one.name for one in found.culprits} == {"l", "l[0]"}
    assert {rules.WITHOUT + name for name in ("l", "l[0]", "innocent")} <= set(found.arms)
    assert [cure.how for cure in found.cures if cure.is_enough] == [
        rules.PRICES[rules.COPY][0],
        rules.PRICES[rules.IMMORTAL][0],
    ]


def test_what_scales_is_not_watched():
    found = diagnosed(Made([], None))
    assert (found.verdict, found.culprits, set(found.arms)) == (
        rules.FINE,
        [],
        {rules.BASE, rules.PROCESSES, rules.CONTROL},
    )


def test_a_lock_is_found_by_copies():
    found = diagnosed(Made(["a lock"], moved("L", kind="lock"), everything=False))
    assert [(one.name, one.kind) for one in found.culprits] == [("L", rules.LOCK)]


def test_what_is_seen_in_two_sweeps_is_one_suspect():
    one = Made(["l", "hidden"], moved("l"))
    sweeps = iter([moved("l"), moved("l", "further", times=7), moved("l", times=8)])
    one.ask = lambda do, **_: next(sweeps) if do == "watch" else Made.ask(one, do)
    assert [suspect.name for suspect in diagnosed(one).suspects] == ["l", "further"]


def test_on_a_busy_machine_nothing_is_named():
    found = diagnosed(Made(["l"], moved("l"), control=1.2))
    assert found.culprits == []
    assert rules.BASE not in found.arms
    assert found.verdict == rules.MACHINE


# ---- the study ----


def test_enough_of_the_specimens_were_written_when_the_rules_were_fixed():
    those = study.specimens()
    assert len({one["name"] for one in those}) == len(those) >= 30
    assert sum(one.get("after_rules", False) for one in those) >= 25
    assert all("names" in one for one in those if one["verdict"] == rules.HELD)


@pytest.mark.parametrize(
    ("names", "right", "false"),
    [
        (["l", "l[0]"], True, []),
        ([["l", "L"], "l[0]"], True, []),
        (["l"], False, ["l[0]"]),
        (["l", "x"], False, ["l[0]"]),
    ],
)
def test_a_specimen_is_right_with_all_of_its_names_and_no_other(names, right, false):
    one = {"name": "it", "verdict": rules.HELD, "kinds": [rules.COUNTS], "names": names}
    said = study.judged(one, result(base=0.26, **TWO))
    assert (said["right"], said["false"]) == (right, false)


def test_the_page_shows_what_was_kept():
    assert "was not run yet" in evidence.scale_page([])
    specimen = {"name": "it", "verdict": rules.HELD, "names": ["l", "l[0]"]}
    row = study.judged(specimen, result(base=0.26, **TWO))
    machine = {"cpu": "a core", "cores": 2, "date": "2026-11-27T00:00:00"}
    runs = {part: [row] for part in ("idle", "silent", "loaded")} | {"cases": [{**row, "cured": None, "cure": "it"}]}
    page = evidence.scale_page([{"part": part, "machine": machine, "runs": those} for part, those in runs.items()])
    assert "**1 of 1 statements got the right answer**" in page
    assert "| it | `l` (counts), `l[0]` (counts) | 0.26" in page
