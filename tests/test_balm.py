"""The chapter on GIL Balm: forged strings keep the laws of str, leak nothing, and are refused where they do not fit."""

import json
import shutil
import subprocess

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ffilab import kernels
from ffilab.bench import child
from ffilab.bench.record import Record
from ffilab.corners import balm
from ffilab.corners import balm_page as page
from ffilab.judge import ledger
from ffilab.machine import compiler
from ffilab.provision.catalogue import BY_LABEL

LABELS = [kernel.label for kernel in kernels.present()]
# Letters and digits often, anything now and then; no surrogates, which have no UTF-8.
CHARACTERS = st.one_of(st.characters(max_codepoint=127), st.characters(exclude_categories=["Cs"]))
LINES = st.lists(st.one_of(st.text(CHARACTERS, max_size=12), st.text("ab", max_size=200)), min_size=1, max_size=6)


def experiment(label, name, *arguments):
    outcome = child.run(label, balm.EXPERIMENTS, name, balm.LIBRARIES, *arguments, timeout_s=120)
    assert outcome.ended == "ok", outcome.error
    return outcome.result


@pytest.mark.parametrize("label", LABELS)
def test_the_laws_of_str_hold(label):
    python = kernels.load(BY_LABEL[label]).python
    with subprocess.Popen(
        [python, "-I", balm.EXPERIMENTS, "laws", balm.LIBRARIES],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as server:

        @settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])
        @given(LINES)
        def broken(lines):
            server.stdin.write(json.dumps(lines) + "\n")
            server.stdin.flush()
            assert json.loads(server.stdout.readline() or "null") == []

        broken()
        server.stdin.close()
        assert server.wait(timeout=10) == 0


@pytest.mark.parametrize("label", LABELS)
def test_every_line_is_the_same_as_pythons_own(label):
    wrong = experiment(label, "layouts")
    assert len(wrong) == 2 * len(balm.OURS)
    assert set(wrong.values()) == {0}


@pytest.mark.parametrize("label", LABELS)
def test_what_works_and_what_does_not(label):
    answers = experiment(label, "behaviour")
    for kind in (*balm.OURS, balm.COPIED):
        assert answers["isinstance(x, str)"][kind] == "True"
        assert answers["type(x) is str"][kind] == "False"
        for probe in (
            "{'pi': 1}[x], {x: 1}['pi']",
            "int(n), float(n)",
            "PyUnicode_AsUTF8(x)",
            "re.match('p(.)', x)[1]",
        ):
            assert answers[probe][kind] == answers[probe]["str"], probe
    assert answers["type(x).__name__"][balm.COPIED] == "'str'"
    assert answers["pickle.loads(pickle.dumps(x))"][balm.BEST] == "'pi'"


@pytest.mark.parametrize("label", LABELS)
def test_misuse_has_the_consequences_that_the_chapter_names(label):
    zero = experiment(label, "misuse", "a hash of 0")
    assert zero["x == 'key'"]
    assert not zero["x in {'key'}"]
    assert "ValueError" in experiment(label, "misuse", "no NUL at the end")["int(x)"]
    borrowed = experiment(label, "misuse", "a borrowed reference")
    assert borrowed == {"was": "first", "is now": "another", "found in the new tuple": True}
    assert experiment(label, "misuse", "the maker's thread is gone") == {
        "hash of every tuple": repr([True] * len(balm.OURS)),
        "buffers left": 0,
    }
    assert experiment(label, "misuse", "alive at exit")["strings alive"] == balm.LINES * len(balm.OURS)
    assert "ImportError" in experiment(label, "misuse", "another interpreter")["import balm"]


@pytest.mark.parametrize("label", LABELS)
def test_nothing_leaks_and_the_gil_stays_off(label):
    """Two threads hand strings to each other; then more of the same must not take more memory."""
    found = experiment(label, "sanitized", "balm", 2_000_000)
    assert found["buffers"] == 1  # the text itself
    assert found["wrong"] == 0
    assert found["grown"] < 4 << 20
    assert found["gil"] != label.endswith("t")


SANITIZED = [(name, label) for name, labels in balm.SANITIZERS.values() for label in labels if label in LABELS]


@pytest.mark.parametrize(("module", "label"), SANITIZED)
def test_the_sanitizers_say_nothing_about_our_code(module, label):
    outcome, said = balm.sanitized(label, module, 1_000_000)
    if outcome is None:
        pytest.skip(said)
    assert outcome.result is not None, outcome
    assert not said
    assert outcome.result["buffers"] == 1


# A mistake planted in a copy of the sources: (file, what stands there, what is put in its place).
PLANTED = {
    "balm_tsan": ("pools.c", "    pthread_mutex_lock(&pool->lock);\n", ""),
    "balm_asan": ("pools.c", "    buffer_drop(buffer, 1);\n", "    free(buffer);\n"),
}


@pytest.mark.parametrize(("module", "label"), [(m, label) for m, label in SANITIZED if label == balm.WITHOUT_GIL])
def test_the_sanitizers_would_find_a_mistake(module, label, tmp_path):
    sources = tmp_path / "sources"
    shutil.copytree(balm.SOURCES / "balm", sources)
    file, old, new = PLANTED[module]
    text = (sources / file).read_text()
    assert old in text
    (sources / file).write_text(text.replace(old, new))
    kernel = kernels.load(BY_LABEL[label])
    target = tmp_path / kernels.soabi(kernel)
    target.mkdir()
    sanitizer = {"balm_tsan": "thread", "balm_asan": "address"}[module]
    built = compile_module(label, sources, target / f"{module}.so", f"-fsanitize={sanitizer}", f"-DMODULE={module}")
    if built.returncode:
        pytest.skip(f"this compiler has no sanitizer: {built.stderr[-200:]}")
    # Two threads must meet for a race to be seen: on a busy machine not in every run.
    for _ in range(10):
        outcome, said = balm.sanitized(label, module, 1_000_000, tmp_path)
        if said:
            break
    assert said, outcome


def compile_module(label, sources, target, *flags, include=None):
    python = kernels.load(BY_LABEL[label]).python
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
    """A copy of the chapter's kernel's headers, to be changed."""
    python = kernels.load(BY_LABEL[balm.KERNEL]).python
    program = "import sysconfig; print(sysconfig.get_path('include'))"
    original = subprocess.run([python, "-c", program], capture_output=True, text=True, check=True).stdout.strip()
    return shutil.copytree(original, tmp_path / "include")


def change(path, old, new):
    text = path.read_text()
    assert old in text
    path.chmod(0o644)
    path.write_text(text.replace(old, new))


def test_an_unknown_version_refuses_to_compile(headers, tmp_path):
    change(headers / "patchlevel.h", "#define PY_MINOR_VERSION        14", "#define PY_MINOR_VERSION        16")
    built = compile_module(balm.KERNEL, balm.SOURCES / "balm", tmp_path / "balm.so", include=headers)
    assert built.returncode
    assert "balm knows the layout of str" in built.stderr


def test_an_unknown_layout_refuses_to_compile(headers, tmp_path):
    change(
        headers / "cpython" / "unicodeobject.h",
        "    Py_ssize_t length;          /* Number of code",
        "    void *more;\n    Py_ssize_t length;          /* Number of code",
    )
    built = compile_module(balm.KERNEL, balm.SOURCES / "balm", tmp_path / "balm.so", include=headers)
    assert built.returncode
    assert "PyASCIIObject.length" in built.stderr


def test_a_layout_that_is_another_one_refuses_to_be_imported(headers, tmp_path):
    """Two flags have changed places: the sizes are the same, the meaning is not."""
    header = headers / "cpython" / "unicodeobject.h"
    change(header, "        unsigned int compact:1;", "        unsigned int ASCII_:1;")
    change(header, "        unsigned int ascii:1;", "        unsigned int compact:1;")
    change(header, "        unsigned int ASCII_:1;", "        unsigned int ascii:1;")
    built = compile_module(balm.KERNEL, balm.SOURCES / "balm", tmp_path / "balm.so", include=headers)
    assert built.returncode == 0, built.stderr
    python = kernels.load(BY_LABEL[balm.KERNEL]).python
    program = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); import balm"
    imported = subprocess.run([python, "-I", "-c", program], capture_output=True, text=True)
    assert "ImportError: balm: this CPython lays out" in imported.stderr


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
    python = kernels.load(BY_LABEL[balm.KERNEL]).python
    command = [python, "-I", "-c", program, balm.SOURCES, balm.LIBRARIES]
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

TRUTH = {balm.NEW: 20.0, balm.POOLED: 10.0, balm.BLOCK: 4.0, balm.BEST: 2.0}


@pytest.fixture(scope="module")
def record():
    """Made up: costs in ns for each string as in TRUTH, half as much more on the t-build; all others cost 30."""
    rng = np.random.default_rng(8)
    blocks = []
    for restart in range(20):
        process = np.exp(rng.normal(0, 0.05))
        for _ in range(4):
            ns = {}
            for label in balm.PAIR:
                for arm in balm.arms(list(balm.PAIR)):
                    if not arm.kernels or label in arm.kernels:
                        truth = TRUTH.get(arm.name.split(", ")[0], 30.0)
                        # New strings cost the same on both builds.
                        truth *= 1.5 if label == balm.WITHOUT_GIL and truth < 20 else 1
                        ns[f"{label}/{arm.name}"] = truth * balm.LINES * process * np.exp(rng.normal(0, 0.004))
                ns[f"{label}/empty loop"] = 5.0
            blocks.append({"restart": restart, "ns": ns, "loops": dict.fromkeys(ns, 1)})
    run = {"plan": {"seed": 1, "kernels": list(balm.PAIR), "blocks": 4}}
    return Record(None, run, [{"missing": {}}], blocks, [], False)


@pytest.fixture(scope="module")
def original():
    rng = np.random.default_rng(9)
    return pd.DataFrame(
        [
            {
                "method": method,
                "threads": threads,
                "ns": (40.0 if method == balm.POOLED and threads > 1 else TRUTH[method]) * np.exp(rng.normal(0, 0.01)),
                "faults": 0.0,
            }
            for method in balm.ORIGINAL
            for threads in (1, balm.THREADS)
            for _ in range(5)
        ]
    )


ANSWERS = {
    label: {
        "isinstance(x, str)": dict.fromkeys((*balm.OURS, balm.COPIED), "True"),
        "type(x) is str": dict.fromkeys((*balm.OURS, balm.COPIED), "False"),
    }
    for label in balm.PAIR
}
WRONG_LINES = pd.DataFrame([{"kernel": "3.14", "method": "pooled", "text": "ASCII", "wrong": 0}])
MISUSED = pd.DataFrame(
    [
        {
            "kernel": label,
            "what": "no NUL at the end",
            "ended": "ok",
            "result": {"x == '12'": True, "int(x)": "ValueError: no"},
        }
        for label in balm.PAIR
    ]
)


def test_every_claim_gets_what_its_rule_asks_for(record, original):
    handed = balm.claim_measurements(record, original, ANSWERS, WRONG_LINES, MISUSED)
    ours = {c["id"]: {t["measured"] for t in c["test"]} for c in ledger.claims() if c["chapter"] == "balm"}
    assert {claim: set(measurements) for claim, measurements in handed.items()} == ours
    assert handed["B1"]["new / pooled, one thread: 3.14"].interval.value == pytest.approx(2, rel=0.01)
    assert handed["B2"]["new / block, one thread: 3.14"].interval.value == pytest.approx(5, rel=0.01)
    found = handed["B3"]["pooled / new, 16 threads: 3.14"].interval
    assert found.low <= 2 <= found.high or found.value == pytest.approx(2, rel=0.03)
    assert all(next(iter(handed[claim].values())).interval.value == 1 for claim in ("B4", "B5", "B6"))
    broken = WRONG_LINES.assign(wrong=3)
    share = balm.claim_measurements(record, original, ANSWERS, broken, MISUSED)["B5"]
    assert next(iter(share.values())).interval.value == 0


def test_the_new_question_is_answered_by_the_run(record):
    assert page.still_pays(record).startswith("Yes, on one thread")
    assert "less than on 3.14" in page.still_pays(record)
    turned = {}
    for block in record.blocks:
        swapped = dict(block["ns"])
        for label in balm.PAIR:
            new, best = f"{label}/{balm.NEW}", f"{label}/{balm.BEST}"
            swapped[new], swapped[best] = block["ns"][best], block["ns"][new]
        turned[id(block)] = {**block, "ns": swapped}
    other = Record(None, record.run, record.restarts, list(turned.values()), [], False)
    assert page.still_pays(other).startswith("Not on one thread")


def test_tables_say_what_was_not_measured(record, original):
    table = page.reading_table(record)
    arrow = table[table.strings == balm.ARROW]
    assert set(arrow[f"{balm.WITHOUT_GIL}, µs for the text"]) == {page.NOT_HERE}
    assert not (page.ways_table(record) == page.NOT_HERE).to_numpy().any()
    assert len(page.original_table(original)) == 6


def test_the_grid_over_threads():
    runs = pd.DataFrame(
        [
            {"kernel": label, "method": method, "how": how, "threads": threads, "ns": 10.0 * threads + n}
            for label in balm.PAIR
            for method in (balm.NEW, balm.POOLED, balm.BLOCK, balm.BEST)
            for how in ("kept", "released")
            for threads in (1, 2, 8)
            for n in range(5)
            if how == "kept" or (label == balm.KERNEL and method != balm.NEW)
        ]
    )
    table = page.grid_table(runs)
    assert list(table.columns) == ["CPython", "strings", "1 thread", "2 threads", "8 threads"]
    assert len(table) == 7 + 4
    assert table["1 thread"].iloc[0].startswith("12")
    assert "block, GIL released on 3.14 with 8 threads: 82" in page.grid_words(runs)


def test_self_check():
    assert balm.check_forgery(b"1234", 2, 0)[-1] == "It does not pass yet."
    assert balm.check_forgery(b"12\x0034", 2, -1)[-1] == "It passes."
    assert "did not survive" in balm.check_forgery(b"12", 3, -1)[0]


def test_the_lists_of_chapter_and_code_agree():
    assert set(experiment(LABELS[0], "churn", balm.BEST, 2, 4, "released")) == {"ns", "faults"}
    source = balm.EXPERIMENTS.read_text()
    assert all(f'"{what}":' in source for what in balm.MISUSE)
    arms = (balm.SOURCES / "arms.py").read_text()
    assert f"OURS = {balm.OURS!r}".replace("'", '"') in arms
