"""The strings of GIL Balm keep the laws of str, leak nothing, and outlive whoever made them."""

import json
import subprocess

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ffilab.measure.case import Case
from ffilab.measure.session import Measuring
from ffilab.measure.source import source_of
from ffilab.measure.workers import WORKER
from ffilab.run.paths import NATIVE_OUT, ROOT
from ffilab.setup.catalogue import BY_LABEL, GIL
from notebooks.balm import experiment, outcomes
from tests.helpers import balm_worker
from tests.helpers.balm_program import printed
from tests.helpers.environment import python_of
from tests.helpers.of_chapter import PAIR, outcome_of, result_of

NEW, BLOCK, BEST, ONE_PASS = experiment.NEW, experiment.BLOCK, experiment.BEST, experiment.ONE_PASS
# Letters and digits often, anything now and then; no surrogates, which have no UTF-8.
CHARACTERS = st.one_of(st.characters(max_codepoint=127), st.characters(exclude_categories=["Cs"]))
LINES = st.lists(st.one_of(st.text(CHARACTERS, max_size=12), st.text("ab", max_size=200)), min_size=1, max_size=6)


def run(label, function, **arguments):
    return result_of(label, function, {**experiment.FOLDER, **arguments}, timeout_s=120)


# ---- the laws of str ----


def test_the_laws_of_str_hold(label):
    """Random lines, answered with the laws that their strings break."""
    arguments = json.dumps({"folder": str(NATIVE_OUT / "balm")})
    command = [python_of(label), "-I", WORKER, "case", source_of(laws=balm_worker.laws), "laws", arguments]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:

        @settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])
        @given(LINES)
        def broken(lines):
            server.stdin.write(json.dumps(lines) + "\n")
            server.stdin.flush()
            assert json.loads(server.stdout.readline() or "null") == []

        broken()
        server.stdin.close()
        assert server.wait(timeout=60) == 0


def test_every_line_is_the_same_as_pythons_own(label):
    rows = run(label, experiment.layouts)
    assert {(row["method"], row["text"]) for row in rows} == {
        (method, text) for method in experiment.OURS for text in ("ASCII", "mixed")
    }
    assert {row["wrong"] for row in rows} == {0}


def test_what_works_and_what_does_not(label):
    answers = {(row["probe"], row["kind"]): row["answer"] for row in run(label, experiment.behaviour)}
    for kind in (*experiment.OURS, outcomes.COPIED):
        assert answers["isinstance(x, str)", kind] == "True"
        assert answers["type(x) is str", kind] == "False"
        for probe in (
            "{'pi': 1}[x], {x: 1}['pi']",
            "int(n), float(n)",
            "PyUnicode_AsUTF8(x)",
            "re.match('p(.)', x)[1]",
        ):
            assert answers[probe, kind] == answers[probe, "str"], probe
    assert answers["type(x).__name__", outcomes.COPIED] == "'str'"
    for kind in (BEST, "subclass of str"):
        assert answers["pickle.loads(pickle.dumps(x))", kind] == "'pi'"


def test_misuse_has_the_consequences_that_the_chapter_names(label):
    answers = {
        what: {row["asked"]: row["answer"] for row in run(label, experiment.misuse, what=what)}
        for what in outcomes.SHOWN_BY
    }
    for what, happened in outcomes.SHOWN_BY.items():
        assert happened(answers[what]), what
    assert answers["a borrowed reference"]["found in the new tuple"] == "True"
    assert answers["the maker's thread is gone"]["hash of every tuple"] == repr([True] * len(experiment.OURS))
    assert answers["the maker's thread is gone"]["buffers left"] == "0"
    assert answers["alive at exit"]["strings alive"] == str(experiment.LINES * len(experiment.OURS))


@pytest.mark.parametrize("what", experiment.MUTABLE)
def test_a_list_in_memory_of_ours_works_until_it_grows(label, what):
    ended = Case(label, experiment.acted, {"what": what}, experiment.FOLDER).run().ended
    assert (ended == "ok") == (what not in experiment.GROWS), ended


def test_nothing_leaks_and_the_gil_stays_off(label):
    """Two threads hand strings to each other; then more of the same must not take more memory."""
    arguments = {**experiment.FOLDER, "strings": 1_000_000}
    outcome = outcome_of(label, balm_worker.sanitized, arguments, timeout_s=120)
    assert outcome.result["buffers"] == 1  # the text itself
    assert outcome.result["wrong"] == 0
    assert outcome.result["grown"] < 4 << 20
    assert outcome.gil_enabled != BY_LABEL[label].free_threaded


@pytest.mark.full
def test_no_lock_is_held_in_a_forked_child(label):
    """One in some ten forks would copy a lock that is held, and its child would hang."""
    assert run(label, balm_worker.forked, forks=150) == {"well": 150}


def test_the_original_s_designs_are_as_their_author_wrote_them():
    """They give the text, keep the hash of 0 for good, leak nothing, and are refused where they do not fit."""
    code = """
for method in ("pooled, as written", "block, as written"):
    for seed in (1, 2):  # the second in the memory of the first
        text = balm.Text(*ascii_text(5000, seed))
        made, real = text.strings(method, released=True), text.strings("new")
        print(list(made) == list(real), {hash(x) for x in made}, type(made[0]) is str, type(made[0]).__name__)
        kept = made[4000]
        del made, text
        print(kept == real[4000], balm.buffers_alive())
        del kept
        print(balm.buffers_alive())
    try:
        balm.Text("é".encode(), [2]).strings(method)
    except ValueError as error:
        print("refused")
"""
    assert printed(GIL, code) == [*["True {0} False str", "True 1", "0"] * 2, "refused"] * 2


def test_bad_lengths_and_bad_text_are_errors():
    code = """
for make in (lambda: balm.Text(b"abc", [4]), lambda: balm.Text(b"abc", [-1]), lambda: balm.Text(b"abc", ["1"]),
             lambda: balm.Text("abc", [1]), lambda: balm.Text(bytes([255]), [1]),
             lambda: balm.Text(b"abc", [3]).strings("no such way"), lambda: balm.Text(b"abc", [3])[1],
             lambda: balm.counterfeit(b"abc", 4)):
    try:
        make()
    except Exception as error:
        print(type(error).__name__)
print(list(balm.Text("aé".encode(), [1, 2])), balm.Text(b"", []).strings("block"), balm.buffers_alive())
"""
    assert printed(GIL, code) == [
        *("ValueError", "ValueError", "TypeError", "TypeError", "UnicodeDecodeError", "ValueError", "IndexError"),
        *("ValueError", "['a', 'é'] () 0"),
    ]


# ---- tuples that end all their strings at once, and the floors ----

AT_ONCE = (experiment.BLOCK_TUPLE, BEST)
OF_OURS = (*AT_ONCE, ONE_PASS)


@pytest.mark.parametrize("method", OF_OURS)
def test_strings_that_somebody_keeps_outlive_the_tuple_that_ends_the_others(label, method):
    code = """
import gc
method = sys.argv[2]
text = balm.Text(*ascii_text(5000))
made, real = text.strings(method), text.strings("new")
kept = {i: made[i] for i in (0, 1, 1500, 4998, 4999)}
del made, text
print(balm.buffers_alive())
more = [balm.Text(*ascii_text(5000, seed)).strings(method) for seed in range(3)]
print(all(kept[i] == real[i] and hash(kept[i]) == hash(real[i]) for i in kept))
print(balm.buffers_alive())
del kept
print(balm.buffers_alive())
del more
if method not in sys.argv[3:]:
    gc.collect()
print(balm.buffers_alive())
"""
    assert printed(label, code, method, *AT_ONCE) == ["1", "True", "4", "3", "0"]


@pytest.mark.parametrize("method", OF_OURS)
def test_a_tuple_may_be_dropped_by_a_thread_that_did_not_make_it(label, method):
    """Strings of CPython that stand between ours lose one reference. (Without a GIL the thread that made a tuple ends
    it.)"""
    code = """
import gc, threading
method, box = sys.argv[2], []
text = balm.Text(*mixed_text(3000))
real = text.strings("new")
other = next(i for i, line in enumerate(real) if not line.isascii())
box.append(text.strings(method))
kept = [box[0][other], box[0][-1]]
before = sys.getrefcount(kept[0])
thread = threading.Thread(target=box.clear)
thread.start()
thread.join()
print(before - sys.getrefcount(kept[0]), kept == [real[other], real[-1]])
del kept, text
if method not in sys.argv[3:]:
    gc.collect()
print(balm.buffers_alive(), balm.Text("é".encode(), [2]).strings(method), balm.Text(b"", []).strings(method))
"""
    assert printed(label, code, method, *AT_ONCE) == ["1 True", "0 ('é',) ()"]


def test_loops_write_what_they_say(label):
    code = """
import json
layouts, text = written(sys.argv[1]), balm.Text(*ascii_text())
print(json.dumps({what: text.floor(what) / LINES for what in sys.argv[2:]}))
print(json.dumps(layouts), str.__basicsize__)
accented = balm.Text("é".encode(), [2])
for call in (lambda: text.floor("no such floor"), lambda: text.floor(3), lambda: accented.floor("memory")):
    try:
        call()
    except ValueError as error:
        print(error)
"""
    names = [name.removeprefix("loop: ") for name in experiment.LOOPS]
    floors, layouts, *errors = printed(label, code, *names)
    layouts, size = layouts.rsplit(" ", 1)
    shortest = int(size) + 8
    # In one pass: five fields of a head.
    assert json.loads(floors) == {name: 40 if name in ("one pass", "one pass, near") else shortest for name in names}
    assert json.loads(layouts) == {"block": shortest + 8, "pages": shortest}
    assert errors == ["no such floor: no such floor", *["a floor needs its name, and a text that is ASCII"] * 2]


@pytest.mark.full
@pytest.mark.usefixtures("quiet_machine")
def test_counts_of_instructions_and_bytes(labels, quiet_progress):
    """Ended at once, strings cost fewer instructions than one by one; a loop does nothing that they do not."""
    session = Measuring("balm", labels)
    found = session.observe("instructions and bytes", experiment.count)
    session.close()
    assert set(found["bytes"]) == set(PAIR)
    if isinstance(found["instructions"], str):
        pytest.skip(found["instructions"])
    for counted in found["instructions"].values():
        assert set(counted) == set(experiment.COUNTED)
        assert counted[experiment.BYTES] < counted[experiment.TWO_PASSES] < counted[BLOCK]
        assert all(counted[method] < counted[BLOCK] < counted[NEW] for method in AT_ONCE)


@pytest.mark.full
@pytest.mark.usefixtures("quiet_machine")
def test_a_build_s_own_layout_is_right_and_another_s_is_not(labels, quiet_progress):
    session = Measuring("balm", labels)
    cases = [Case(label, experiment.layout_facts, fixed=experiment.FOLDER) for label in labels]
    steps = experiment.steps(labels, session.run("layouts of objects", cases, repeats=1))
    runs = session.run("the layout of another build", steps, repeats=1, may_fail=True)
    session.close()
    objects = outcomes.by_layout(runs)
    assert objects[objects.CPython == objects.layout_of].right.all()
    refused = outcomes.refused(runs)
    assert refused.events == refused.trials > 0
    forged = outcomes.other_builds(runs, experiment.A_STRING, experiment.A_TUPLE)
    pairs = zip(forged.CPython, forged.layout_of)
    kinds = [BY_LABEL[one].free_threaded != BY_LABEL[other].free_threaded for one, other in pairs]
    assert not forged[kinds].right.any()
    assert str(ROOT) not in (session.folder / "session.jsonl").read_text()
