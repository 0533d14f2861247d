"""What the chapter on code placement builds: interpreters linked again in other orders, and a small repository with a
trap."""

import itertools
import shutil
import subprocess
from collections import Counter
from contextlib import nullcontext
from types import SimpleNamespace

import numpy as np
import pytest

from ffilab.measure import case, profile
from ffilab.run.errors import UserError
from ffilab.setup import relink
from ffilab.setup.catalogue import FREE_THREADED, GIL
from notebooks.placement import counting, exercise, experiment, history, lottery, story
from notebooks.placement.counting import USUAL
from tests.helpers.environment import order_of, ran, script

pytestmark = pytest.mark.usefixtures("quiet_progress", "quiet_machine")
VALGRIND = pytest.mark.tool("valgrind")


def lacking() -> str | None:
    """Why the lottery's interpreters cannot be linked again here; None if they can."""
    try:
        return next(filter(None, map(relink.missing, lottery.BUILDS)), None)
    except UserError as error:
        return str(error)


CAN_RELINK = pytest.mark.skipif(lacking() is not None, reason=str(lacking()))


@pytest.fixture
def linked(tmp_path, monkeypatch):
    """The folder of linked interpreters."""
    monkeypatch.setattr(lottery, "LINKED", tmp_path / "linked")
    return lottery.LINKED


# ---- the lottery ----


def in_order(placed: list[str], wanted: list[str]) -> float:
    """Share of neighbours in one list of functions that stand in the same order in another; those of one name are left
    out."""
    once = set.intersection(*({name for name, n in Counter(names).items() if n == 1} for names in (placed, wanted)))
    known = [name for name in wanted if name in once]
    assert len(known) > 0.9 * len(wanted)
    position = {name: number for number, name in enumerate(placed)}
    return float(np.mean([position[a] < position[b] for a, b in itertools.pairwise(known)]))


@pytest.mark.full
@CAN_RELINK
def test_the_orders_are_what_the_page_says_of_them(linked, monkeypatch):
    functions = relink.functions(GIL)
    # Static functions of one name, in several files, come together.
    named = Counter(function.symbol for function in functions)
    hot = [function for function in functions if function.part == ".text.hot." and named[function.symbol] == 1]
    wanted = hot[::-7]
    hottest = {function.symbol: 1000 - rank for rank, function in enumerate(wanted)}
    monkeypatch.setattr(lottery, "hottest", lambda *_: ("samples", Counter(hottest)))
    monkeypatch.setattr(lottery, "Reporter", lambda *_: nullcontext(SimpleNamespace(advance=lambda _: None)))
    made = lottery.link_all(GIL, seed=1, orders=1, copies=1, links=1, rounds=1)
    files = {program["kind"]: lottery.where(GIL, program["file"]) for program in made["programs"]}
    original = relink.prefix(GIL) / "bin" / f"python{GIL}"
    kinds = ("copy", lottery.TOGETHER, lottery.ANYWHERE, "order")
    installed, default, together, anywhere, shuffled = map(order_of, (original, *map(files.get, kinds)))
    # The linker's own order is that of the interpreter as it is installed.
    assert in_order(default, installed) > 0.99
    # What is hot stands side by side, and all others by lot, in whatever part the profile put them; or what is hot
    # does, too.
    symbols = [function.symbol for function in wanted]
    assert in_order(together, symbols) == 1
    places = [together.index(symbol) for symbol in symbols]
    assert max(places) - min(places) < 1.1 * len(symbols)
    assert in_order(together, [symbol for symbol in installed if symbol not in symbols]) < 0.6
    assert np.ptp(np.quantile([anywhere.index(symbol) for symbol in symbols], (0.1, 0.9))) > 0.5 * len(functions)
    # By lot within the parts, and the parts as they were: what is hot stays with what is hot.
    assert in_order(shuffled, installed) < 0.6
    names = {function.symbol for function in hot}
    places = [number for number, symbol in enumerate(shuffled) if symbol in names]
    all_hot = sum(function.part == ".text.hot." for function in functions)
    assert np.ptp(np.quantile(places, (0.01, 0.99))) < 1.2 * all_hot


@pytest.mark.full
@CAN_RELINK
@pytest.mark.parametrize("label", lottery.BUILDS)
def test_linked_programs_answer(label, linked):
    lottery.prepare(label)
    program = relink.link(label, lottery.where(label, lottery.DEFAULT))
    asked = "import os, sys; print(sys.version, os.__file__, sys.flags.hash_randomization)"
    done = ran(program, "-S", "-s", "-P", "-c", asked, env=lottery.server_environment())
    assert done.stderr == ""
    assert ("free-threading" in done.stdout) == (label == FREE_THREADED)
    assert done.stdout.split()[-2:] == [str(linked / label / "lib" / f"python{label}" / "os.py"), "0"]
    broken = script(lottery.where(label, "broken"), "exit 3")
    with pytest.raises(UserError, match="did not answer"):
        lottery.duel(broken, program, turns=3, seed=1)


@pytest.mark.full
@VALGRIND
@CAN_RELINK
def test_a_profile_without_perf_has_no_start_of_the_process_in_it(linked, monkeypatch):
    monkeypatch.setattr(lottery.profile, "perf_available", lambda: "perf is not installed")
    lottery.prepare(GIL)
    relink.link(GIL, lottery.where(GIL, lottery.DEFAULT))
    found = lottery.take_profiles(10, 20)
    assert found["what"] == "instructions"
    (counted,) = found["processes"]  # the same in each
    assert next(iter(counted["hottest"])) == "_PyEval_EvalFrameDefault"
    assert not [name for name in counted["hottest"] if "Pegen" in name or "siphash" in name]


def test_where_nothing_can_be_linked_there_is_no_lottery(session, linked, monkeypatch):
    monkeypatch.setattr(relink, "missing", lambda label: f"no objects of {label}")
    made = lottery.linking(session)
    assert made[GIL]["lacking"] == "no objects of 3.14"
    assert lottery.duels(session, made).empty
    assert lottery.misses(session, made, USUAL)[GIL] == "no order of CPython 3.14 was linked"
    assert lottery.hot_functions(session) == "no objects of 3.14"


def test_stalls_of_an_order_are_those_of_its_loops(monkeypatch):
    """Of so many lines of a benchmark less those of none: the start of the process is in both."""
    turns = {"head -n 20": 1_300.0, "head -n 0": 300.0}

    def seen(command):
        return {lottery.STALLED: next(n for what, n in turns.items() if what in command[-1])}

    monkeypatch.setattr(lottery, "counters", seen)
    found = lottery.count_stalls(GIL, {"order 1": "order-1"}, 20)
    assert found == [{"name": "order 1", "benchmark": one, "stalls": 1_000.0} for one in lottery.BENCHMARKS]
    monkeypatch.setattr(lottery, "counters", lambda command: {"instructions": 1.0})
    assert "does not count" in lottery.count_stalls(GIL, {"order 1": "order-1"}, 20)


def test_what_is_lacking_is_said(monkeypatch, tmp_path):
    monkeypatch.setattr(relink, "prefix", lambda label: tmp_path)
    assert "was not compiled here" in relink.missing(GIL)
    (tmp_path / relink.OBJECTS).mkdir()
    (tmp_path / relink.OBJECTS / relink.ARCHIVE).touch()
    monkeypatch.setattr(relink.linker, "find", lambda: None)
    assert "no linker that orders functions" in relink.missing(GIL)


# ---- the story ----


@pytest.fixture(scope="module")
def histories():
    """The repository, in the folder that tests build in."""
    return story.make_repository()


@pytest.fixture(scope="module")
def revisions(histories):
    return histories[history.TRAP]


def test_the_histories_are_what_they_say(histories):
    trap, quiet = histories[history.TRAP], histories[history.NO_TRAP]
    assert len(trap) == len(quiet) == 1 + len(story.HISTORY)
    assert trap[: story.AT] == quiet[: story.AT]
    changes = ((trap, "report.h", story.CULPRIT), (quiet, "operations.h", story.HARMLESS["message"]))
    for revisions, file, message in changes:
        before, after = revisions[story.AT - 1 : story.AT + 1]
        assert story.git("diff", "--name-only", before, after).split() == [file]
        assert message in story.git("log", "--format=%s", after, "-1")
    assert story.make_repository() == histories  # the same hashes again


def test_the_small_machine_says_its_time(session, revisions):
    names = story.compiled(session, revisions, exercise.SUSPECTS)
    times = story.times(session, "the suspects", names, 2)
    assert sorted(times.program) == sorted(2 * names)
    assert (times.ns > 0).all()


@pytest.mark.full
@pytest.mark.skipif(not shutil.which("objcopy"), reason="there is no objcopy here")
def test_the_commits_that_change_machine_code_are_named(histories):
    """By the bytes of .text of neighbours."""
    changed = set()
    for revisions in histories.values():
        codes = []
        for revision in revisions:
            story.build("neighbour", revision, [])
            out = story.machine("neighbour").with_name("text")
            copy = ["objcopy", "-O", "binary", "--only-section=.text", story.machine("neighbour"), out]
            subprocess.run(copy, check=True)
            codes.append(out.read_bytes())
        for revision, before, after in zip(revisions[1:], codes, codes[1:]):
            if before != after:
                changed.add(story.git("show", "--no-patch", "--format=%s", revision).strip())
    assert changed == set(story.CHANGE_CODE)


def counts_of(revisions, versions):
    return counting.table(story.count(story.compile_all(revisions, versions))).set_index("program")


@pytest.mark.full
@VALGRIND
def test_the_commit_changes_misses_and_not_instructions(histories):
    counts = counts_of(histories[history.TRAP], experiment.PROGRAMS)
    assert counts.instructions["slow"] / counts.instructions["fast"] == pytest.approx(1, abs=0.001)
    assert counts.misses["slow"] > 20 * counts.misses["fast"]
    assert counts.misses["hot"] < 2 * counts.misses["fast"]
    assert counts.instructions["hot, aligned"] / counts.instructions["hot"] == pytest.approx(1, abs=0.001)
    suspects = counts_of(histories[history.TRAP], exercise.SUSPECTS)
    more = suspects.instructions / suspects.instructions["before"]
    for name, (verdict, _) in exercise.TRUTH.items():
        assert verdict == ("real" if more[name] > 1.2 else "placement")
    # Without the trap, neither work nor misses change.
    versions = {"first": {"commit": 0, "changes": []}, "last": {"commit": len(story.HISTORY), "changes": []}}
    quiet = counts_of(histories[history.NO_TRAP], versions)
    assert quiet.instructions["last"] / quiet.instructions["first"] == pytest.approx(1, abs=0.001)
    assert quiet.misses["last"] < 2 * quiet.misses["first"]


@pytest.mark.full
def test_bisection_finds_what_its_check_finds(session, histories, monkeypatch):
    """With a check that looks at the header and not at the clock: no speed is asserted here."""
    fake = script(story.REPOSITORY.parent / "look.sh", "! grep -q 'aligned(4096)' report.h")
    git = story.git

    def with_fake(*words, **options):
        return git(*(str(fake) if word == "./check.sh" else word for word in words), **options)

    monkeypatch.setattr(story, "git", with_fake)
    found = story.bisections(session, histories).set_index("history")
    # Where everything is good, git, told that the last commit is bad, names it.
    assert found.found.to_dict() == {history.TRAP: 1.0, history.NO_TRAP: 0.0}
    assert found.message[history.NO_TRAP] == story.HISTORY[-1]["message"]
    assert all("is the first bad commit" in log for log in found.log)
    assert git("status", "--short") == ""
    assert git("rev-parse", "--abbrev-ref", "HEAD").strip() == "main"


def test_a_blame_stands_if_the_limit_lies_between_again(monkeypatch):
    """The limit is the middle of the two ends, and what is blamed is measured again, with its parent."""
    times = {"a": 1.0, "b": 1.1, "c": 2.9, "d": 3.0}
    answers = {"rev-parse": "c\n", "show": f"{story.CULPRIT}\n"}
    monkeypatch.setattr(story, "took", times.get)
    monkeypatch.setattr(story, "git", lambda *words, **_: answers.get(words[0], "log"))
    found = story.bisect(list(times), history.TRAP)
    assert (found["limit"], found["before"], found["blamed"]) == (2.0, 1.1, 2.9)
    assert found["found"] == found["stands"] == 1.0


@pytest.mark.full
def test_the_check_script_decides_by_the_limit(revisions):
    for limit, expected in (("1000000", "ok"), ("0.000001", "exit code 1")):
        ended, out, err = case.program(["sh", "-c", f"cd '{story.REPOSITORY}' && ./check.sh {limit}"])
        assert ended == expected, out + err
    assert story.git("status", "--short") == ""


def test_tools_that_are_not_there_are_named(session, linked, monkeypatch, hide_tools):
    """Without perf, valgrind and counters the chapter goes on, and says what it lacks."""
    default = lottery.where(GIL, lottery.DEFAULT)
    default.parent.mkdir(parents=True)
    default.touch()
    hide_tools("perf", "valgrind")
    # It remembers what it found: not here, and not beyond this test.
    monkeypatch.setattr(profile, "perf_available", profile.perf_available.__wrapped__)
    assert "perf is not installed" in experiment.count()
    assert "perf is not installed" in story.hardware(session, ["fast"])
    assert "valgrind is not installed" in experiment.simulate(*experiment.simulated_how(session, USUAL))
    assert "valgrind is not installed" in story.counts(session, [])
    with pytest.raises(UserError, match="make doctor"):
        counting.cachegrind(["true"], USUAL)
    assert "perf is not installed" in lottery.count_stalls(GIL, {"order 1": "default"}, 1)
    assert "valgrind is not installed" in lottery.count_misses(GIL, {"default": "default"}, {})
