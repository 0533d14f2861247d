"""The chapter on GIL Balm: forged strings keep the laws of str, leak nothing, and are refused where they do not fit."""

import json
import shutil
import subprocess

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ffilab import draw
from ffilab.bench.case import Case
from ffilab.bench.record import Record
from ffilab.bench.session import Measuring
from ffilab.bench.workers import WORKER
from ffilab.judge import characteristics, ledger, verdicts
from ffilab.judge.claims import declared
from ffilab.judge.rules import DOES_NOT_HOLD, HOLDS, UNDECIDED
from ffilab.machine import compiler
from ffilab.paths import NATIVE_OUT, ROOT
from ffilab.provision import installed
from ffilab.provision.catalogue import BY_LABEL, FREE_THREADED, GIL
from notebooks.balm import claims, exercise, experiment, figures, results, words

# Letters and digits often, anything now and then; no surrogates, which have no UTF-8.
CHARACTERS = st.one_of(st.characters(max_codepoint=127), st.characters(exclude_categories=["Cs"]))
LINES = st.lists(st.one_of(st.text(CHARACTERS, max_size=12), st.text("ab", max_size=200)), min_size=1, max_size=6)


def run(label, function, **arguments):
    """The whole outcome of one experiment, which must not fail."""
    outcome = Case(label, experiment.EXPERIMENTS, function, arguments, experiment.FOLDER, timeout_s=120).run()
    assert outcome.ended == "ok", outcome.error
    return outcome


def misused(label, what):
    return {row["asked"]: row["answer"] for row in run(label, "misuse", what=what).result}


@pytest.mark.slow
def test_the_laws_of_str_hold(labels):
    for label in labels:
        python = installed.load(BY_LABEL[label]).python
        arguments = json.dumps({"folder": str(NATIVE_OUT / "balm")})
        with subprocess.Popen(
            [python, "-I", WORKER, "case", ROOT / experiment.EXPERIMENTS, "laws", arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        ) as server:
            laws_hold(server)
            server.stdin.close()
            assert server.wait(timeout=10) == 0


def laws_hold(server):
    """Random lines, answered with the laws that their strings break."""

    @settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])
    @given(LINES)
    def broken(lines):
        server.stdin.write(json.dumps(lines) + "\n")
        server.stdin.flush()
        assert json.loads(server.stdout.readline() or "null") == []

    broken()


@pytest.mark.slow
def test_every_line_is_the_same_as_pythons_own(labels):
    for label in labels:
        rows = run(label, "layouts").result
        assert {(row["method"], row["text"]) for row in rows} == {
            (method, text) for method in experiment.OURS for text in ("ASCII", "mixed")
        }
        assert {row["wrong"] for row in rows} == {0}


@pytest.mark.slow
def test_what_works_and_what_does_not(labels):
    for label in labels:
        answers = {(row["probe"], row["kind"]): row["answer"] for row in run(label, "behaviour").result}
        for kind in (*experiment.OURS, results.COPIED):
            assert answers["isinstance(x, str)", kind] == "True"
            assert answers["type(x) is str", kind] == "False"
            for probe in (
                "{'pi': 1}[x], {x: 1}['pi']",
                "int(n), float(n)",
                "PyUnicode_AsUTF8(x)",
                "re.match('p(.)', x)[1]",
            ):
                assert answers[probe, kind] == answers[probe, "str"], probe
        assert answers["type(x).__name__", results.COPIED] == "'str'"
        for kind in (experiment.BEST, "subclass of str"):
            assert answers["pickle.loads(pickle.dumps(x))", kind] == "'pi'"


@pytest.mark.slow
def test_misuse_has_the_consequences_that_the_chapter_names(labels):
    for label in labels:
        zero = misused(label, "a hash of 0")
        assert zero["x == 'key'"] == "True"
        assert zero["x in {'key'}"] == "False"
        assert "ValueError" in misused(label, "no NUL at the end")["int(x)"]
        borrowed = misused(label, "a borrowed reference")
        assert borrowed == {"was": "first", "is now": "another", "found in the new tuple": "True"}
        assert misused(label, "the maker's thread is gone") == {
            "hash of every tuple": repr([True] * len(experiment.OURS)),
            "buffers left": "0",
        }
        alive = misused(label, "alive at exit")["strings alive"]
        assert alive == str(experiment.LINES * len(experiment.OURS))
        assert "ImportError" in misused(label, "another interpreter")["import balm"]


@pytest.mark.slow
def test_nothing_leaks_and_the_gil_stays_off(labels):
    """Two threads hand strings to each other; then more of the same must not take more memory."""
    for label in labels:
        outcome = run(label, "sanitized", name="balm", strings=2_000_000)
        assert outcome.result["buffers"] == 1  # the text itself
        assert outcome.result["wrong"] == 0
        assert outcome.result["grown"] < 4 << 20
        assert outcome.gil_enabled != BY_LABEL[label].free_threaded


@pytest.mark.slow
def test_no_lock_is_held_in_a_forked_child(labels):
    """One in some ten forks would copy a lock that is held, and its child would hang."""
    for label in labels:
        assert run(label, "forked", forks=150).result == {"well": 150}


SANITIZED = [(name, label) for name, (_, _, labels) in experiment.SANITIZERS.items() for label in labels]


@pytest.mark.slow
@pytest.mark.parametrize(("sanitizer", "label"), SANITIZED)
def test_the_sanitizers_say_nothing_about_our_code(sanitizer, label):
    outcome = experiment.sanitized(sanitizer, label, 1_000_000)
    if outcome.result["verdict"].startswith("not here"):
        pytest.skip(outcome.result["verdict"])
    assert outcome.result["verdict"] == experiment.NO_REPORT, outcome
    assert not outcome.result["said"]
    assert outcome.result["strings"] >= 1_000_000
    assert outcome.result["buffers"] == 1


# A mistake planted in a copy of the sources: (option, file, what stands there, what is put in its place).
PLANTED = {
    "ThreadSanitizer": ("thread", "pools.c", "    pthread_mutex_lock(&pool->lock);\n", ""),
    "AddressSanitizer": ("address", "pools.c", "    buffer_drop(buffer, 1);\n", "    free(buffer);\n"),
}


@pytest.mark.slow
@pytest.mark.parametrize("sanitizer", PLANTED)
def test_the_sanitizers_would_find_a_mistake(sanitizer, tmp_path):
    sources = tmp_path / "sources"
    shutil.copytree(experiment.SOURCES / "balm", sources)
    option, file, old, new = PLANTED[sanitizer]
    text = (sources / file).read_text()
    assert old in text
    (sources / file).write_text(text.replace(old, new))
    target = tmp_path / installed.soabi(installed.load(BY_LABEL[FREE_THREADED]))
    target.mkdir()
    module, _, _ = experiment.SANITIZERS[sanitizer]
    flags = (f"-fsanitize={option}", f"-DMODULE={module}")
    built = compile_module(FREE_THREADED, sources, target / f"{module}.so", *flags)
    if built.returncode:
        pytest.skip(f"this compiler has no sanitizer: {built.stderr[-200:]}")
    # Two threads must meet for a race to be seen: on a busy machine not in every run.
    for _ in range(10):
        outcome = experiment.sanitized(sanitizer, FREE_THREADED, 1_000_000, folder=str(tmp_path))
        if outcome.result["said"]:
            break
    assert outcome.result["said"], outcome
    assert outcome.result["verdict"] != experiment.NO_REPORT


def test_a_sanitizer_that_is_not_there_says_so(tmp_path, monkeypatch):
    monkeypatch.setattr(installed, "load", lambda one: None)
    monkeypatch.setattr(installed, "soabi", lambda one: "tag")
    (tmp_path / "tag").mkdir()
    (tmp_path / "tag" / "missing-balm_tsan.txt").write_text(f"no compiler in {ROOT}/bin")
    outcome = experiment.sanitized("ThreadSanitizer", FREE_THREADED, 10, folder=str(tmp_path))
    assert outcome.result == {"strings": 0, "verdict": "not here: no compiler in bin", "said": ""}


def compile_module(label, sources, target, *flags, include=None):
    python = installed.load(BY_LABEL[label]).python
    program = "import sysconfig; print(sysconfig.get_path('include'))"
    include = include or subprocess.run([python, "-c", program], capture_output=True, text=True).stdout.strip()
    files = [str(path) for path in sorted(sources.glob("*.c"))]
    command = [
        compiler(),
        "-O1",
        "-g",
        "-fPIC",
        "-shared",
        "-pthread",
        *flags,
        f"-I{include}",
        *files,
        "-o",
        str(target),
    ]
    return subprocess.run(command, capture_output=True, text=True)


@pytest.fixture
def headers(tmp_path):
    """A copy of the headers of the chapter's interpreter, to be changed."""
    python = installed.load(BY_LABEL[GIL]).python
    program = "import sysconfig; print(sysconfig.get_path('include'))"
    original = subprocess.run([python, "-c", program], capture_output=True, text=True, check=True).stdout.strip()
    return shutil.copytree(original, tmp_path / "include")


def change(path, old, new):
    text = path.read_text()
    assert old in text
    path.chmod(0o644)
    path.write_text(text.replace(old, new))


@pytest.mark.slow
def test_an_unknown_version_refuses_to_compile(headers, tmp_path):
    minor = "#define PY_MINOR_VERSION        "
    change(headers / "patchlevel.h", minor + GIL.partition(".")[2], minor + "99")
    built = compile_module(GIL, experiment.SOURCES / "balm", tmp_path / "balm.so", include=headers)
    assert built.returncode
    assert "balm knows the layout of str" in built.stderr


@pytest.mark.slow
def test_an_unknown_layout_refuses_to_compile(headers, tmp_path):
    change(
        headers / "cpython" / "unicodeobject.h",
        "    Py_ssize_t length;          /* Number of code",
        "    void *more;\n    Py_ssize_t length;          /* Number of code",
    )
    built = compile_module(GIL, experiment.SOURCES / "balm", tmp_path / "balm.so", include=headers)
    assert built.returncode
    assert "PyASCIIObject.length" in built.stderr


@pytest.mark.slow
def test_a_layout_that_is_another_one_refuses_to_be_imported(headers, tmp_path):
    """Two flags have changed places: the sizes are the same, the meaning is not."""
    header = headers / "cpython" / "unicodeobject.h"
    change(header, "        unsigned int compact:1;", "        unsigned int ASCII_:1;")
    change(header, "        unsigned int ascii:1;", "        unsigned int compact:1;")
    change(header, "        unsigned int ASCII_:1;", "        unsigned int ascii:1;")
    built = compile_module(GIL, experiment.SOURCES / "balm", tmp_path / "balm.so", include=headers)
    assert built.returncode == 0, built.stderr
    python = installed.load(BY_LABEL[GIL]).python
    program = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); import balm"
    imported = subprocess.run([python, "-I", "-c", program], capture_output=True, text=True)
    assert "ImportError: balm: this CPython lays out" in imported.stderr


@pytest.mark.slow
def test_bad_lengths_and_bad_text_are_errors():
    program = """
import sys; sys.path.insert(0, sys.argv[1])
import arms
balm = arms.load(sys.argv[2])
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
    python = installed.load(BY_LABEL[GIL]).python
    command = [python, "-I", "-c", program, experiment.SOURCES, NATIVE_OUT / "balm"]
    answer = subprocess.run(command, capture_output=True, text=True, check=True)
    assert answer.stdout.splitlines() == [
        "ValueError",
        "ValueError",
        "TypeError",
        "TypeError",
        "UnicodeDecodeError",
        "ValueError",
        "IndexError",
        "ValueError",
        "['a', 'é'] () 0",
    ]


# ---- the analysis, on a record whose truth is known ----

NEW, POOLED, BLOCK, BEST = experiment.NEW, experiment.POOLED, experiment.BLOCK, experiment.BEST
TRUTH = {NEW: 20.0, POOLED: 10.0, BLOCK: 4.0, BEST: 2.0}
# An arm that the second build cannot make.
MISSING = {FREE_THREADED: {"writer": "ValueError: no such method"}}


def made_up(truth=TRUTH, noise=0.004):
    """Costs in ns for each string as in `truth`, half as much more on the free-threaded build; all others cost 30."""
    rng = np.random.default_rng(8)
    blocks = []
    for restart in range(20):
        process = np.exp(rng.normal(0, 0.05))
        for _ in range(4):
            ns = {}
            for label in experiment.PAIR:
                for arm in experiment.arms():
                    if (arm.interpreters and label not in arm.interpreters) or arm.name in MISSING.get(label, {}):
                        continue
                    cost = truth.get(arm.name.split(", ")[0], 30.0)
                    # New strings cost the same on both builds.
                    cost *= 1.5 if label == FREE_THREADED and cost < 20 else 1
                    ns[f"{label}/{arm.name}"] = cost * experiment.LINES * process * np.exp(rng.normal(0, noise))
                ns[f"{label}/empty loop"] = 5.0
            blocks.append({"restart": restart, "ns": ns})
    run = {"plan": {"seed": 1, "interpreters": list(experiment.PAIR), "blocks": 4}}
    return Record(None, run, loops=dict.fromkeys(blocks[0]["ns"], 1), restarts=[{"missing": MISSING}], blocks=blocks)


@pytest.fixture(scope="module")
def record():
    return made_up()


def ran(truth, scatter=0.01):
    """As its author ran it: ns for each string as in `truth`, by method and number of threads."""
    rng = np.random.default_rng(9)
    return pd.DataFrame(
        [
            {
                "method": method,
                "threads": threads,
                "tuples": 2_000,
                "ns": ns * np.exp(rng.normal(0, scatter)),
                "faults": 0.0,
                "round": round_,
            }
            for (method, threads), ns in truth.items()
            for round_ in range(10)
        ]
    )


CELLS = [(method, threads) for method in experiment.ORIGINAL for threads in (1, experiment.THREADS)]


@pytest.fixture(scope="module")
def original():
    """Pools cost 40 with threads, all others as in TRUTH. Rounds in an order of their own."""
    return ran({cell: TRUTH[cell[0]] for cell in CELLS} | {(POOLED, experiment.THREADS): 40.0})


def answered():
    """What works: every forgery is a str, and none of exact type."""
    kinds = ("str", "subclass of str", *experiment.OURS, results.COPIED)
    rows = []
    for label in experiment.PAIR:
        for kind in kinds:
            rows.append({"interpreter": label, "probe": "isinstance(x, str)", "kind": kind, "answer": "True"})
            exact = str(kind == "str")
            rows.append({"interpreter": label, "probe": "type(x) is str", "kind": kind, "answer": exact})
    return pd.DataFrame(rows)


LAYOUTS = pd.DataFrame([{"interpreter": GIL, "method": "pooled", "text": "ASCII", "wrong": 0}])


def misused_frame(died=(), number="ValueError: no"):
    """Every misuse on the pair, as it was where nothing died. number: what a string without a NUL is as a number."""
    rows = []
    for label in experiment.PAIR:
        for what in experiment.MISUSE:
            one = {"interpreter": label, "what": what, "ended": "ok"}
            if (label, what) in died:
                rows.append({**one, "ended": "killed by SIGSEGV"})
            elif what == "no NUL at the end":
                rows.append({**one, "asked": "x == '12'", "answer": "True"})
                rows.append({**one, "asked": "int(x)", "answer": number})
            else:
                rows.append({**one, "asked": "hash(x)", "answer": "0"})
    return pd.DataFrame(rows)


def by_other_layouts(wrong="x == 'pi': False", labels=experiment.PAIR):
    """Strings, tuples and modules by the layout of each build; by another one: `wrong`, or None if the process died."""
    return pd.DataFrame(
        [
            {
                "interpreter": one,
                "layout_of": other,
                "made": made,
                "wrong": "" if one == other else wrong,
                "ended": "ok" if one == other or wrong is not None else "killed by SIGSEGV",
            }
            for one in labels
            for other in labels
            for made in experiment.MADE
        ]
    )


def lists(died=experiment.GROWS):
    """Every act with a list of ours on the pair, of which some end their process."""
    return pd.DataFrame(
        [
            {"interpreter": label, "what": what, "ended": "killed by SIGSEGV"}
            if what in died
            else {"interpreter": label, "what": what, "ended": "ok", "asked": "x is now", "answer": "[1, 2, 3]"}
            for label in experiment.PAIR
            for what in experiment.MUTABLE
        ]
    )


class Held:
    """A session that holds what was made up."""

    corner = "balm"

    def __init__(self, record, original, lines=LAYOUTS, wrongs=None, works=None, others=None, grown=None):
        self._record = record
        self._frames = {
            "as the author ran it": original,
            "what works": answered() if works is None else works,
            "layouts": lines,
            "what must not be done": misused_frame() if wrongs is None else wrongs,
            "the layout of another build": by_other_layouts() if others is None else others,
            "a list in memory of ours": lists() if grown is None else grown,
        }

    def timed(self, name):
        assert name == "ways"
        return self._record

    def frame(self, title):
        return self._frames[title]


def test_every_claim_gets_what_its_rule_asks_for(record, original):
    handed = claims.measurements(Held(record, original)).complete().measurements
    ours = {claim.id: {test.measured for test in claim.tests} for claim in declared("balm").claims}
    assert {claim: set(measurements) for claim, measurements in handed.items()} == ours
    for apart in ("", ", apart"):
        assert handed["B1"][f"new / pooled, one thread{apart}: {GIL}"].interval.value == pytest.approx(2, rel=0.02)
        assert handed["B2"][f"new / block, one thread{apart}: {GIL}"].interval.value == pytest.approx(5, rel=0.02)
    found = handed["B3"][f"pooled / new, 16 threads: {GIL}"].interval
    assert found.low <= 2 <= found.high or found.value == pytest.approx(2, rel=0.03)
    assert all(next(iter(handed[claim].values())).interval.value == 1 for claim in ("B4", "B5", "B6"))
    broken = LAYOUTS.assign(wrong=3)
    died = [(GIL, "no NUL at the end")]
    handed = claims.measurements(Held(record, original, broken, misused_frame(died))).measurements
    assert next(iter(handed["B5"].values())).interval.value == 0
    assert next(iter(handed["B6"].values())).interval.value == 1
    died = [(label, "no NUL at the end") for label in experiment.PAIR]
    handed = claims.measurements(Held(record, original, wrongs=misused_frame(died))).complete()
    assert set(handed.measurements["B6"]) == {claims.OTHER_LAYOUT, claims.GROWN}
    assert "ended well" in next(iter(handed.missing["B6"].values()))
    alone = by_other_layouts(labels=[GIL])
    handed = claims.measurements(Held(record, original, others=alone)).complete()
    assert "alone" in handed.missing["B6"][claims.OTHER_LAYOUT]


def test_an_arm_that_is_missing_is_a_reason_and_no_number(original):
    found = made_up()
    for name in ("pooled, released", "block, released"):
        found.loops.pop(f"{GIL}/{name}")
    handed = claims.measurements(Held(found, original)).complete()
    assert handed.missing["B1"] == {f"new / pooled, one thread: {GIL}": "was not measured"}
    assert list(handed.missing["B2"]) == [f"new / block, one thread: {GIL}"]


NEW_16, POOLED_16, BLOCK_16 = ((method, experiment.THREADS) for method in experiment.ORIGINAL)


def answer(identifier, held, measured, kind):
    """What one test of a claim says of a session."""
    claim = next(claim for claim in declared("balm").claims if claim.id == identifier)
    handed = claims.measurements(held).complete()
    given = verdicts.answers(claim, handed.measurements[identifier], handed.missing[identifier])
    return next(
        found.verdict
        for rule, found in given
        if (rule.measured, type(rule).__name__.lower()) == (f"{measured}: {GIL}", kind)
    )


@pytest.mark.parametrize(
    ("identifier", "measured", "above", "below", "kind", "holds", "refuted", "edge"),
    [
        ("B1", "new / pooled, one thread, apart", (NEW, 1), (POOLED, 1), "side", 2.0, 1.1, 1.25),
        ("B1", "new / pooled, one thread, apart", (NEW, 1), (POOLED, 1), "size", 2.39, 4.0, 2.39),
        ("B2", "new / block, one thread, apart", (NEW, 1), (BLOCK, 1), "side", 2.0, 1.1, 1.25),
        ("B2", "new / block, one thread, apart", (NEW, 1), (BLOCK, 1), "size", 5.02, 10.0, 5.02),
        ("B3", "pooled / new, 16 threads", POOLED_16, NEW_16, "side", 1.3, 1.0, 1.1),
        ("B3", "pooled / new, 16 threads", POOLED_16, NEW_16, "size", 2.43, 4.0, 2.43),
        ("B3", "new / block, 16 threads", NEW_16, BLOCK_16, "side", 1.3, 1.0, 1.1),
        ("B3", "new / block, 16 threads", NEW_16, BLOCK_16, "size", 20.0, 6.0, 20.0),
        # Faster with 16 threads is fine.
        ("B3", "block, 16 threads / one thread", BLOCK_16, (BLOCK, 1), "side", 0.5, 1.5, 1.2),
        ("B3", "block, 16 threads / one thread", BLOCK_16, (BLOCK, 1), "side", 1.1, 1.3, 1.2),
    ],
)
def test_rules_of_what_was_run_as_its_author_did(
    record, identifier, measured, above, below, kind, holds, refuted, edge
):
    for ratio, scatter, says in ((holds, 0.01, HOLDS), (refuted, 0.01, DOES_NOT_HOLD), (edge, 0.5, UNDECIDED)):
        frame = ran({**dict.fromkeys(CELLS, 10.0), below: 10.0, above: 10.0 * ratio}, scatter)
        assert answer(identifier, Held(record, frame), measured, kind) == says, (ratio, scatter)


@pytest.mark.parametrize(("identifier", "method", "published"), [("B1", POOLED, 2.39), ("B2", BLOCK, 5.02)])
def test_rules_of_the_corrected_experiment(original, identifier, method, published):
    cases = {
        "side": ((published, 0.004, HOLDS), (1.1, 0.004, DOES_NOT_HOLD), (1.25, 0.6, UNDECIDED)),
        "size": ((published, 0.004, HOLDS), (2 * published, 0.004, DOES_NOT_HOLD), (published, 1.2, UNDECIDED)),
    }
    for kind, three in cases.items():
        for ratio, noise, says in three:
            held = Held(made_up({NEW: 20.0, method: 20.0 / ratio}, noise), original)
            assert answer(identifier, held, f"new / {method}, one thread", kind) == says, (kind, ratio, noise)


def judged(held):
    """The ledger's rows of a session, by claim."""
    handed = claims.measurements(held).complete()
    return {row["id"]: row for _, row in ledger.rows_of(handed, {"is_result": True}, [])}


def test_what_is_true_by_construction_is_no_claim_that_was_tested(record, original):
    rows = judged(Held(record, original))
    assert {rows[identifier]["verdict"] for identifier in ("B4", "B5")} == {verdicts.CONFORMS}
    works = answered()
    works.loc[(works.probe == "type(x) is str") & (works.kind == BLOCK), "answer"] = "True"
    rows = judged(Held(record, original, LAYOUTS.assign(wrong=1), works=works))
    assert {rows[identifier]["verdict"] for identifier in ("B4", "B5")} == {verdicts.CANNOT_TEST}
    assert rows["B5"]["qualifier"] == "our own code failed its checks"


def test_one_event_proves_a_caveat_and_none_leaves_it_open(record, original):
    row = judged(Held(record, original))["B6"]
    assert ledger.verdict_of(row) == verdicts.HOLDS
    assert all(how_often in row["reason"] for how_often in ("2 of 2 runs", "4 of 4 runs", "6 of 6 runs"))
    once = misused_frame()
    once.loc[(once.interpreter == FREE_THREADED) & (once.asked == "int(x)"), "answer"] = "12"
    row = judged(Held(record, original, wrongs=once))["B6"]
    assert row["verdict"] == verdicts.HOLDS
    assert "1 of 2 runs" in row["reason"]
    alike, grew = by_other_layouts(wrong=""), lists(died=())
    for open_ in ({"wrongs": misused_frame(number="12")}, {"others": alike}, {"grown": grew}):
        assert judged(Held(record, original, **open_))["B6"]["verdict"] == verdicts.IN_PART
    nothing = {"wrongs": misused_frame(number="12"), "others": alike, "grown": grew}
    assert judged(Held(record, original, **nothing))["B6"]["verdict"] == verdicts.UNDECIDED_HERE


def test_a_forgery_that_dies_is_as_wrong_as_one_that_answers_wrongly():
    for wrong, outcome in (("x == 'pi': False", "x == 'pi': False"), (None, "killed by SIGSEGV"), ("", "works")):
        found = results.by_layout(by_other_layouts(wrong))
        other = results.other_builds(found, *experiment.MADE)
        assert set(other.outcome) == {outcome}
        assert set(other.right) == {wrong == ""}
        assert found[found.CPython == found.layout_of].right.all()
        assert results.other_versions(found).empty
    versions = results.by_layout(by_other_layouts(labels=["3.13", "3.14", "3.14t"]))
    assert set(zip(results.other_versions(versions).CPython, results.other_versions(versions).layout_of)) == {
        ("3.13", "3.14"),
        ("3.14", "3.13"),
    }


def test_copies_that_differ_withhold_the_claims_on_one_thread(original):
    rng = np.random.default_rng(3)
    for factor, passed in ((1.0, True), (1.2, False)):
        found = made_up({**TRUTH, experiment.AGAIN: TRUTH[NEW]})
        for block in found.blocks:
            for label in experiment.PAIR:
                twin = block["ns"][f"{label}/{NEW}"] * factor * np.exp(rng.normal(0, 0.004))
                block["ns"][f"{label}/{experiment.AGAIN}"] = twin
        checks = claims.controls(Held(found, original))
        assert {check.passed for check in checks} == {passed}
        assert {check.claims for check in checks} == {("B1", "B2")}


@pytest.mark.parametrize(
    ("truth", "measured", "forgery"),
    [
        ("as published", {verdicts.HOLDS}, verdicts.HOLDS),
        ("half the size", {verdicts.IN_DIRECTION}, verdicts.HOLDS),
        ("no effect", {verdicts.REFUTED}, verdicts.UNDECIDED_HERE),
        ("the wrong sign", {verdicts.REFUTED}, verdicts.UNDECIDED_HERE),
    ],
)
def test_a_long_run_tells_the_truth(truth, measured, forgery):
    rows = characteristics.rows("balm", truth, "full", 0, noise=0)
    assert {rows[identifier]["verdict"] for identifier in ("B1", "B2", "B3")} == measured
    assert rows["B6"]["verdict"] == forgery


def test_cases_are_paired_by_round(original):
    shuffled = original.sample(frac=1, random_state=3)
    pair = (POOLED, experiment.THREADS), (NEW, experiment.THREADS)
    assert results.original_ratio(shuffled, *pair) == results.original_ratio(original, *pair)


def test_the_page_answers_for_every_interpreter_of_the_record(record):
    found = results.gains(record)
    assert list(found) == list(experiment.PAIR)
    assert set(found[GIL]) == {POOLED, BLOCK, BEST}
    assert found[GIL][BEST].value == pytest.approx(10, rel=0.02)
    assert "3.14:" in words.holds_on(found)
    missing = made_up()
    missing.loops.pop(f"{FREE_THREADED}/{BEST}")
    assert results.gains(missing)[FREE_THREADED][BEST] is None
    said = words.holds_on(results.gains(missing))
    assert "our strings of pages and tuple are not seen to be faster than CPython's own on every CPython" in said
    assert "his pooled strings are faster than CPython's own on every CPython" in said


def churned(ns):
    """The experiment on arenas: ns for each string by (method, state), with page faults where an arena goes back."""
    rng = np.random.default_rng(4)
    return pd.DataFrame(
        [
            {
                "method": method,
                "arenas": state,
                "ns": value * np.exp(rng.normal(0, 0.01)),
                "faults": 226.0 if state == experiment.GIVEN_BACK else 0.0,
                "round": round_,
            }
            for (method, state), value in ns.items()
            for round_ in range(5)
        ]
    )


def test_arenas_are_told_apart(record, original):
    held, given = experiment.HELD, experiment.GIVEN_BACK
    runs = churned({(NEW, held): 20.0, (NEW, given): 80.0, (POOLED, held): 10.0, (BLOCK, held): 4.0})
    assert results.cost_of_giving_back(runs).interval.value == pytest.approx(4, rel=0.02)
    assert results.condition(runs, held, BLOCK).interval.value == pytest.approx(5, rel=0.02)
    assert results.condition(runs, given, BLOCK).interval.value == pytest.approx(20, rel=0.02)
    table = figures.arenas_table(original, runs, record)
    assert list(table["page faults a tuple"])[2:4] == ["fewer than 0.1", "226 (all values alike)"]
    assert table["block, times as fast"].iloc[0] == "5.02"
    quotient = results.quotient(results.condition(runs, held, BLOCK), results.faster(record, GIL, f"{BLOCK}, released"))
    assert quotient.value == pytest.approx(1, rel=0.03)


def test_texts_are_compared_with_the_whole():
    runs = pd.DataFrame(
        [
            {"interpreter": label, "lines": lines, "ns": ns + 0.01 * round_, "round": round_}
            for label in experiment.PAIR
            for lines, ns in zip(experiment.TEXTS, (4.0, 5.0, 10.0))
            for round_ in range(5)
        ]
    )
    small, large = (results.of_lengths(runs, GIL, experiment.TEXTS[n]) for n in (0, 2))
    assert small.value == pytest.approx(1.25, rel=0.01)
    assert large.value == pytest.approx(0.5, rel=0.01)
    table = figures.texts_table(runs)
    assert set(table.n) == {5}
    assert table["large / whole"].iloc[0].startswith("1.9")


def test_tables_say_what_was_not_measured(record, original):
    table = figures.reading_table(record)
    arrow = table[table.strings == experiment.ARROW]
    assert set(arrow[f"{FREE_THREADED}, µs for the text"]) == {draw.NOT_MEASURED}
    assert len(arrow) == 2
    ways = figures.ways_table(record)
    absent = ways.map(lambda cell: str(cell).startswith(draw.NOT_MEASURED))
    assert set(ways[absent.any(axis=1)].strings) == {"writer"}
    assert set(ways.n) == {20}
    assert list(ways.set_index("strings")["published, times as fast"][["pooled, released", "block, released"]]) == [
        "2.39",
        "5.02",
    ]
    writer = ways[ways.strings == "writer"].iloc[0]
    assert writer[f"{FREE_THREADED}, ns"] == f"{draw.NOT_MEASURED} (ValueError: no such method)"
    assert writer[f"{FREE_THREADED}, times as fast as new"] == draw.NOT_MEASURED
    assert not writer[f"{GIL}, ns"].startswith(draw.NOT_MEASURED)
    assert len(figures.original_table(original)) == 6
    assert set(figures.original_table(original)["tuples here"]) == {"2,000"}


def test_memory_where_there_is_no_proc():
    table = figures.memory_table(pd.DataFrame(columns=["interpreter", "process", "round", "ended"]))
    assert len(table) == 2 * len(experiment.ALIVE)
    assert set(table["peak, MiB"]) == {draw.NOT_MEASURED}


def test_what_works_and_misuse_as_tables():
    works = answered()
    table = figures.behaviour_table(works)
    assert list(table.asked) == ["type(x) is str"]
    assert list(table["ours (a block)"]) == ["False"]
    assert results.unlike(works, GIL, BLOCK, "str") == ["type(x) is str"]
    assert results.unlike(works, GIL, BLOCK, "subclass of str") == []
    table = figures.misuse_table(misused_frame(died=[(FREE_THREADED, "a hash of 0")]))
    assert list(table["what was done"]) == list(experiment.MISUSE)
    assert table[f"CPython {FREE_THREADED}"].iloc[0] == "killed by SIGSEGV"
    assert table[f"CPython {GIL}"].iloc[1] == "x == '12': True; int(x): ValueError: no"


def test_the_grid_over_threads():
    runs = pd.DataFrame(
        [
            {
                "interpreter": label,
                "method": method,
                "how": how,
                "threads": threads,
                "ns": 10.0 * threads + n,
                "round": n,
            }
            for label in experiment.PAIR
            for method in (NEW, POOLED, BLOCK, BEST)
            for how in ("kept", "released")
            for threads in (1, 2, 8)
            for n in range(5)
            if how == "kept" or (label == GIL and method != NEW)
        ]
    )
    table = figures.grid_table(runs)
    assert list(table.columns) == ["CPython", "strings", "1 thread, ns", "2 threads, ns", "8 threads, ns", "n"]
    assert len(table) == 7 + 4
    assert table["1 thread, ns"].iloc[0].startswith("12")
    assert set(table.n) == {5}
    assert f"block, GIL released, {GIL}: 12" in figures.listing(results.series(runs), ["series", "CPython"])
    assert figures.two_over_one(runs, BLOCK).value == pytest.approx(12 / 22, rel=0.01)


@pytest.mark.slow
def test_self_check(labels):
    session = Measuring("balm", labels)
    assert exercise.check_forgery(session, b"1234", 2, 0)[-1] == "It does not pass yet."
    assert exercise.check_forgery(session, b"12\x0034", 2, -1)[-1] == "It passes."
    assert "did not survive" in exercise.check_forgery(session, b"12", 3, -1)[0]
    session.close()
    assert str(ROOT) not in (session.folder / "session.jsonl").read_text()


RIGHT = {"viewer": experiment.LAZY, "plugin": NEW, "demonstration": BEST}


@pytest.mark.parametrize(
    ("program", "choice", "says"),
    [
        ("viewer", NEW, "times as fast"),
        ("viewer", BEST, "Not correct"),
        ("plugin", BEST, "type(x) is str says False"),
        ("plugin", experiment.LAZY, "all strings at once"),
        ("plugin", "a list", "choose"),
        ("demonstration", NEW, "times as fast"),
    ],
)
def test_the_choice_is_checked_by_the_run(program, choice, says):
    costs = {NEW: 30.0, experiment.LAZY: 30.0, BEST: 10.0}
    record = made_up({**TRUTH, **costs})
    for block in record.blocks:
        for label in experiment.PAIR:
            block["ns"][f"{label}/{experiment.LAZY}, one in a hundred read"] /= 10
    assert exercise.check_choice(record, answered(), RIGHT)[-1] == "It passes."
    said = exercise.check_choice(record, answered(), {**RIGHT, program: choice})
    assert said[-1] == "It does not pass yet."
    assert any(says in line for line in said)


@pytest.mark.slow
def test_a_build_s_own_layout_is_right_and_another_s_is_not(labels):
    session = Measuring("balm", labels)
    facts = experiment.layout_facts(session)
    found = results.by_layout(experiment.another_layout(session, facts))
    session.close()
    assert found[found.CPython == found.layout_of].right.all()
    forged = found[(found.CPython != found.layout_of) & (found.made != experiment.A_MODULE)]
    kinds = [
        BY_LABEL[one].free_threaded != BY_LABEL[other].free_threaded
        for one, other in zip(forged.CPython, forged.layout_of)
    ]
    assert not forged[kinds].right.any()
    assert str(ROOT) not in (session.folder / "session.jsonl").read_text()


@pytest.mark.slow
def test_a_list_in_memory_of_ours_works_until_it_grows(labels):
    for label in labels:
        for what in experiment.MUTABLE:
            arguments = {"what": what}
            outcome = Case(label, experiment.EXPERIMENTS, "mutable", arguments, experiment.FOLDER, timeout_s=60).run()
            assert (outcome.ended == "ok") == (what not in experiment.GROWS), (label, what, outcome)


@pytest.mark.slow
def test_arenas_are_held_and_given_back():
    faults = {}
    for state in ("as they come", *experiment.ARENAS):
        found = run(GIL, "churn", method=NEW, threads=1, tuples=50, how="kept", arenas=state).result
        faults[state] = found["faults"]
    assert faults[experiment.HELD] < words.FEW
    assert faults[experiment.GIVEN_BACK] > words.MANY


@pytest.mark.slow
def test_getsizeof_counts_characters_that_a_view_does_not_own(labels):
    for label in labels:
        rows = {row["method"]: row for row in run(label, "sizes").result}
        assert set(rows) == {NEW, *experiment.OURS}
        assert all(row["says"] > row["characters"] for row in rows.values())
    lengths = [row["lines"] for row in run(GIL, "texts", method=BLOCK, strings=40_000, lines=experiment.TEXTS).result]
    assert lengths == list(experiment.TEXTS)


@pytest.mark.slow
def test_an_experiment_brings_what_the_chapter_needs(labels):
    churned = run(labels[0], "churn", method=BEST, threads=2, tuples=4, how="released").result
    assert set(churned) == {"ns", "faults"}
    assert set(run(labels[0], "three_times", method=BEST, threads=2, tuples=4, how="kept").result) == {"ns"}


def test_the_lists_of_chapter_and_code_agree():
    source = (ROOT / experiment.EXPERIMENTS).read_text()
    assert all(
        f'"{what}":' in source
        for what in (*experiment.MISUSE, *experiment.MUTABLE, *experiment.MADE, *experiment.ARENAS)
    )
    arms = (ROOT / experiment.ARMS).read_text()
    assert f"OURS = {experiment.OURS!r}".replace("'", '"') in arms


# ---- tuples that end all their strings at once, and the floors ----

AT_ONCE = (experiment.BLOCK_TUPLE, experiment.BEST)


def said(label, code, *arguments):
    """What a program prints in which `balm` and `arms` are there, line by line."""
    start = (
        "import sys; sys.path.insert(0, sys.argv[1])\nimport arms\nbalm, corpus = arms.load(sys.argv[2]), arms.corpus\n"
    )
    python = installed.load(BY_LABEL[label]).python
    command = [python, "-I", "-c", start + code, experiment.SOURCES, NATIVE_OUT / "balm", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()


@pytest.mark.slow
@pytest.mark.parametrize("method", AT_ONCE)
def test_strings_that_somebody_keeps_outlive_the_tuple_that_ends_the_others(labels, method):
    code = """
method = sys.argv[3]
text = balm.Text(*corpus.ascii_text(5000))
made, real = text.strings(method), text.strings("new")
kept = {i: made[i] for i in (0, 1, 1500, 4998, 4999)}
del made, text
print(balm.buffers_alive())
more = [balm.Text(*corpus.ascii_text(5000, seed)).strings(method) for seed in range(3)]
print(all(kept[i] == real[i] and hash(kept[i]) == hash(real[i]) for i in kept))
print(balm.buffers_alive())
del kept
print(balm.buffers_alive())
del more
print(balm.buffers_alive())
"""
    for label in labels:
        assert said(label, code, method) == ["1", "True", "4", "3", "0"]


@pytest.mark.slow
@pytest.mark.parametrize("method", AT_ONCE)
def test_strings_of_cpython_that_stand_between_ours_lose_one_reference(labels, method):
    code = """
text = balm.Text(*corpus.mixed_text(3000))
made, real = text.strings(sys.argv[3]), text.strings("new")
other = next(i for i, line in enumerate(real) if not line.isascii())
kept = [made[other], made[-1]]
before = sys.getrefcount(kept[0])
del made
print(before - sys.getrefcount(kept[0]), kept == [real[other], real[-1]])
del kept, text
print(balm.buffers_alive(), balm.Text("é".encode(), [2]).strings(sys.argv[3]), balm.Text(b"", []).strings(sys.argv[3]))
"""
    for label in labels:
        assert said(label, code, method) == ["1 True", "0 ('é',) ()"]


@pytest.mark.slow
@pytest.mark.parametrize("method", AT_ONCE)
def test_a_tuple_may_be_dropped_by_a_thread_that_did_not_make_it(labels, method):
    code = """
import threading
method, box = sys.argv[3], []
box.append(balm.Text(*corpus.ascii_text()).strings(method))
kept = box[0][7000]
for _ in range(2):
    thread = threading.Thread(target=box.clear)
    thread.start()
    thread.join()
    print(balm.buffers_alive())
    thread = threading.Thread(target=lambda: box.append(balm.Text(*corpus.ascii_text()).strings(method)))
    thread.start()
    thread.join()
print(kept == box[0][7000])
"""
    for label in labels:
        assert said(label, code, method) == ["1", "1", "True"]


@pytest.mark.slow
def test_floors_write_what_they_say(labels):
    code = """
import json
text = arms.text(balm)
print(json.dumps({what: text.floor(what) / corpus.LINES for what in sys.argv[3:]}))
print(json.dumps(arms.written(sys.argv[2])), str.__basicsize__)
for call in (lambda: text.floor("no such floor"), lambda: text.floor(3), lambda: balm.Text("é".encode(), [2]).floor("memory")):
    try:
        call()
    except ValueError as error:
        print(error)
"""
    for label in labels:
        names = [name.removeprefix("floor: ") for name in experiment.FLOORS]
        floors, layouts, *errors = said(label, code, *names)
        layouts, size = layouts.rsplit(" ", 1)
        shortest = int(size) + 8
        assert json.loads(floors) == {**dict.fromkeys(names, shortest), "tuple alone": 8}
        assert json.loads(layouts) == {"block": shortest + 8, "pages": shortest}
        assert errors == ["no such floor: no such floor", *["a floor needs its name, and a text that is ASCII"] * 2]


@pytest.mark.slow
def test_counts_of_instructions_and_bytes(labels):
    """Ended at once, strings cost fewer instructions than one by one; a floor does nothing that they do not."""
    session = Measuring("balm", labels)
    found = experiment.counts(session)
    session.close()
    assert set(found["bytes"]) == set(experiment.PAIR)
    if isinstance(found["instructions"], str):
        pytest.skip(found["instructions"])
    for each in found["instructions"].values():
        assert set(each) == set(experiment.COUNTED)
        assert each[experiment.BYTES] < each[experiment.FLOOR] < each[BLOCK]
        for method in AT_ONCE:
            assert each[method] < each[BLOCK] < each[NEW]
