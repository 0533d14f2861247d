"""What the chapter "The boundary" measures (claims A1 to A4, A7, A10, A11, A23). The page quotes all of it."""

import runpy
import subprocess
import tempfile
from collections import Counter
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pandas as pd
from pygments.lexers import get_lexer_for_filename
from pygments.token import Comment, String, Text
from pygments.util import ClassNotFound

from ffilab.measure import instructions, profile
from ffilab.measure.case import Case
from ffilab.measure.plan import Arm, empty_loop
from ffilab.measure.record import Record
from ffilab.measure.session import Session
from ffilab.run.errors import UserError
from ffilab.run.paths import BUILT, BY_PRODUCTS, NATIVE, ROOT, resolved, without_paths
from ffilab.setup.catalogue import BY_LABEL, FREE_THREADED, GIL
from ffilab.setup.installed import load, soabi

# [setting]
ARMS, EXPERIMENTS = "native/boundary/arms.py", "native/boundary/experiments.py"
EVALUATE, SCRIPT = "native/boundary/evaluate.py", "native/boundary/talk_loop.py"
LIBRARIES = f"{BUILT}/boundary"
_arms = runpy.run_path(str(ROOT / ARMS))
# What each binding's folder declares, by the binding's name, in the order of the figures.
DECLARED = _arms["BINDINGS"]
BINDINGS: tuple[str, ...] = tuple(DECLARED)
# Other forms of some of them, each with the binding that it is a form of.
VARIANTS: dict[str, str] = {title: one.of for title, one in _arms["VARIANTS"].items()}
# Three kinds are not timed: no sentence speaks of them.
NOT_TIMED = ("float → float", "bytes out", "struct by value")
SIGNATURES: tuple[str, ...] = tuple(one for one in _arms["SIGNATURES"] if one not in NOT_TIMED)
TEXTS = ("str in, ASCII", "str in, é, first", "str in, é, again", "str out")
# The texts of A7: the first conversion of one that is not ASCII, and beside it an ASCII one, and one that is made.
TEXT = TEXTS[1]
TAXED = (TEXTS[0], TEXT, TEXTS[3])
INT, ANSWER, METHOD, ERROR, DETACHED = "int → int", "→ int", "C++ method", "error → exception", "no-op, detached"
TEXT_MADE = "the text of str in, é, first"
FLOOR = "C API"
CPP = ("pybind11", "nanobind", "Cython")
# The free-threaded build with its GIL switched on, as a module that does not declare itself GIL-free does at its import.
ON = ", GIL on"
GIL_ON = FREE_THREADED + ON
# [/setting]

# [as the talk ran it]
# The talk's four. It does not say which mode of cffi it used; the chapter explains this choice.
TALK = ("ctypes CDLL", "cffi ABI", "pybind11", "PyO3")


PROGRAM = "single calls, as the talk ran them"


def original(session: Session) -> pd.DataFrame:
    """A1 to A4 as the talk ran them: ns of single calls of each binding, in many processes of each build."""
    fixed = {"folder": LIBRARIES, "bindings": [*TALK, "ctypes PyDLL"]}
    built = [(GIL, GIL, {}), (FREE_THREADED, FREE_THREADED, {}), (FREE_THREADED, GIL_ON, {"PYTHON_GIL": "1"})]
    cases = [
        Case.of(label, EXPERIMENTS, "original", fixed=fixed, named={"build": build}, environment=environment)
        for label, build, environment in built
    ]
    return session.run(PROGRAM, cases, session.budget.repeats)


# [/as the talk ran it]


# [cell]
def name(binding: str, signature: str) -> str:
    """The arm's name in a record."""
    return f"{binding}: {signature}"


def call(binding: str, signature: str, title: str | None = None, **further) -> Arm:
    """The arm of one cell of the matrix. further: as in Arm."""
    arguments = {"folder": LIBRARIES, "binding": binding, "signature": signature}
    # What is compared runs next to each other: all bindings of one signature.
    return Arm.of(title or name(binding, signature), ARMS, "call", arguments, beside=signature, **further)


# [/cell]

# [matrix]
AGAIN = " again"
# The signatures of which other forms of a tool are measured.
OF_VARIANTS = ("no-op", INT, "str in, ASCII", "list of 1,000 ints", METHOD)
# A cell of the matrix is one of hundreds for each interpreter: short batches, or it takes an hour.
BATCH_MS = 1


def cells() -> list[Arm]:
    """Every signature through every binding."""
    return [call(binding, signature) for signature in SIGNATURES for binding in BINDINGS]


def arms() -> list[Arm]:
    """The whole matrix, other forms of some tools, and second copies of two cells for the A/A test."""
    forms = [call(form, signature) for signature in OF_VARIANTS for form in VARIANTS]
    return [*cells(), *forms, *(call(binding, INT, name(binding, INT) + AGAIN) for binding in (FLOOR, "ctypes CDLL"))]


def matrix(session: Session) -> Record:
    """Time the whole matrix on all interpreters, interleaved in one run."""
    budget = session.budget
    shorter = replace(budget, batch_ms=min(BATCH_MS, budget.batch_ms), seconds=budget.seconds * 2 / 3)
    return session.time("matrix", arms(), budget=shorter)


# [/matrix]

# [claims]
# By signature, the bindings that claims compare on both builds; with the GIL alone; and on the free-threaded build with its GIL on.
COMPARED_BY_CLAIMS = {
    ANSWER: (*TALK, "ctypes PyDLL"),
    **dict.fromkeys((INT, *TAXED), (FLOOR,)),
    METHOD: (*CPP, "PyO3"),
}
WITH_THE_GIL = {
    INT: ("ctypes CDLL", "ctypes PyDLL"),
    METHOD: ("cffi API", "ctypes CDLL"),
    ERROR: (FLOOR, "pybind11", "nanobind", "PyO3"),
    DETACHED: (FLOOR, "cffi API"),
}
SWITCHED_ON = {ANSWER: COMPARED_BY_CLAIMS[ANSWER], INT: (FLOOR,), TEXT: (FLOOR,)}
# Few cells: batches can be longer, and there is time for more blocks.
CLAIMS_BATCH_MS = 2


def claims(session: Session) -> Record:
    """A1 to A4, A7, A10, A23: the cells that claims compare, and no others, on the chapter pair."""
    on = {"group": "GIL on", "interpreters": (FREE_THREADED,), "gil": True}
    compared = [
        call(binding, signature, name(binding, signature) + suffix, **further)
        for which, suffix, further in (
            (COMPARED_BY_CLAIMS, "", {}),
            (WITH_THE_GIL, "", {"interpreters": (GIL,)}),
            (SWITCHED_ON, ON, on),
        )
        for signature, found in which.items()
        for binding in found
    ]
    compared += [
        Arm.of(TEXT_MADE + suffix, ARMS, "text_made", beside=TEXT, **further)
        for suffix, further in (("", {}), (ON, on))
    ]
    budget = session.budget
    shorter = replace(budget, batch_ms=min(CLAIMS_BATCH_MS, budget.batch_ms), seconds=budget.seconds / 2)
    return session.time("claims", compared, [GIL, FREE_THREADED], shorter)


# [/claims]


# [not built]
def notes(label: str) -> dict[str, str]:
    """The reasons that the build left for an interpreter, by project."""
    built = Path(resolved(LIBRARIES)) / soabi(load(BY_LABEL[label]))
    return {path.stem.removeprefix("missing-"): without_paths(path.read_text()) for path in built.glob("missing-*.txt")}


def looked_up(labels: list[str], stood_in_for: bool) -> dict[str, dict[str, str]]:
    """By interpreter, the bindings whose project was not built, with the reason; another stands in for them, or not."""
    found = {}
    for label in labels:
        reasons = notes(label)
        lacking = {binding: one.project for binding, one in DECLARED.items() if one.project in reasons}
        found[label] = {
            binding: reasons[project]
            for binding, project in lacking.items()
            if (_arms["STANDS_IN"].get(project, project) not in reasons) == stood_in_for
        }
    return found


def not_built(session: Session) -> dict[str, dict[str, str]]:
    """The bindings that an interpreter lacks, with the reason: neither they nor what stands in for them was built."""
    return session.observe("bindings that were not built", lambda: looked_up(session.interpreters, False))


def stand_ins(session: Session) -> dict[str, dict[str, str]]:
    """The bindings that another project stands in for on an interpreter, with the reason."""
    return session.observe("bindings by a stand-in", lambda: looked_up(session.interpreters, True))


# [/not built]


# [instructions]
def count_instructions(session: Session, record: Record) -> dict[str, dict[str, float]] | str:
    """Instructions per loop of every cell with the GIL, by interpreter and arm, or why they cannot be counted here."""

    def look():
        if reason := instructions.available():
            return reason
        # A smoke test counts one row.
        counted = cells() if session.budget.is_result else [call(binding, INT) for binding in BINDINGS]
        counted.append(empty_loop())
        # Cheap calls need more loops for a clean slope, dear ones would take minutes.
        many = {
            (GIL, arm.name): int(min(200, max(12, 1.3e5 / float(np.nanmedian(record.times(GIL, arm.name))))))
            for arm in counted
            if record.has(GIL, arm.name)
        }
        found = instructions.per_call([GIL], counted, many)
        return {GIL: {arm: count for (_, arm), count in found.items()}}

    return session.observe("instructions", look)


# [/instructions]


# [call trees]
# The two whose call graphs the talk showed.
COMPARED = ("ctypes CDLL", "PyO3")


def call_trees(session: Session, absent: dict[str, dict[str, str]]) -> dict[str, list[dict]] | str:
    """A11: call trees of one call with an int, by binding, or the reason why they cannot be had here."""
    chosen = [call(binding, INT, binding) for binding in COMPARED if binding not in absent[GIL]]

    def look():
        if reason := instructions.available():
            return reason
        try:
            trees = instructions.call_trees(GIL, chosen)
        except UserError as error:
            return without_paths(str(error))
        return {binding: [asdict(node) for node in nodes] for binding, nodes in trees.items()}

    return session.observe("call trees", look)


# [/call trees]


# [profiles]
# What A10 is about takes many processes: the samples of one are no independent trials.
PROFILED, WITHOUT_HAND_OVER = (GIL, "ctypes CDLL"), (GIL, "ctypes PyDLL")
# perf takes longer to start and to end than the calls that it looks at: no more cases than the text speaks of.
LOOKED_AT = {GIL: ("ctypes CDLL", "ctypes PyDLL", "PyO3"), FREE_THREADED: ("ctypes CDLL",)}


def profiles(session: Session, absent: dict[str, dict[str, str]]) -> dict[str, dict[str, list[dict]]] | str:
    """A10: what a profiler saw of the call that the talk timed, by interpreter and binding, one entry for each process, or why
    there is none here."""

    def looks(label: str, binding: str) -> list[dict]:
        loops = int((3_000_000 if binding.startswith("ctypes") else 8_000_000) * min(1, session.budget.scale))
        found = [profile.look(label, call(binding, ANSWER), loops)]
        # Counted instructions are the same in the next process.
        if (label, binding) in (PROFILED, WITHOUT_HAND_OVER) and found[0]["how"].startswith("perf"):
            found += [profile.look(label, call(binding, ANSWER), loops) for _ in range(session.budget.repeats - 1)]
        return found

    def look():
        try:
            return {
                label: {binding: looks(label, binding) for binding in bindings if binding not in absent[label]}
                for label, bindings in LOOKED_AT.items()
            }
        except UserError as error:
            return without_paths(str(error))

    return session.observe("where the time goes, by process", look)


# [/profiles]

# [as the talk profiled it]
TALK_HZ, TALK_S = 997, 2
# Of each stack so many functions are kept, from the one that ran outwards.
FRAMES = 3


def call_graph(binding: str, seconds: float) -> dict:
    """Samples of one process that runs the talk's loop, by the innermost functions of their stacks; `how`: what perf counted.

    Where there is no counter of cycles, perf takes the clock."""

    def said(*command) -> str:
        words = [str(word) for word in command]
        return subprocess.run(words, capture_output=True, text=True, check=True, env=instructions.environment()).stdout

    with tempfile.TemporaryDirectory() as folder:
        data, python = f"{folder}/perf.data", load(BY_LABEL[GIL]).python
        graph = ("-F", TALK_HZ, "-g", "--call-graph=dwarf", "-o", data)
        said(
            "perf", "record", "-e", "cycles", *graph, "--", python, ROOT / SCRIPT, resolved(LIBRARIES), binding, seconds
        )
        how = "perf " + said("perf", "evlist", "-i", data).strip()
        stacks = said("perf", "script", "--no-inline", "-i", data, "-F", "ip,sym").split("\n\n")
    lines = [stack.strip().splitlines()[:FRAMES] for stack in stacks if stack.strip()]
    counted = Counter(tuple(line.split(maxsplit=1)[-1] for line in stack) for stack in lines)
    return {"how": how, "stacks": [[list(functions), n] for functions, n in counted.most_common()]}


def as_the_talk_profiled(session: Session, absent: dict[str, dict[str, str]]) -> dict[str, list[dict]] | str:
    """A10 as the talk ran it: the call graphs of its loop, by binding, one for each process; or why there are none here."""

    def look():
        if reason := profile.perf_available():
            return reason
        seconds = TALK_S * min(1, session.budget.scale)
        found = [binding for binding in COMPARED if binding not in absent[GIL]]
        try:
            # Of PyO3 only the text speaks, of ctypes a rule.
            times = {binding: session.budget.few if binding.startswith("ctypes") else 1 for binding in found}
            return {binding: [call_graph(binding, seconds) for _ in range(n)] for binding, n in times.items()}
        except subprocess.CalledProcessError as error:
            return f"perf took no call graph here: {without_paths(error.stderr.strip()[-200:])}"

    return session.observe("the talk's loop, profiled", look)


# [/as the talk profiled it]

# [contracts]
CONTRACTS = (
    "m.add_one(2**31)",
    "m.add_one(1.5)",
    "m.add_one(1, 2)",
    "m.code_points('\\udc80')",
    "m.code_points(b'abc')",
    "m.ends(array('i', [0, 0]))",
    "m.ends(array('d'))",
    "m.sum_list((1, 2))",
    "emptied(m)",
    "m.scale(None, 2.0)",
    "m.scale([], 2.0)",
    "m.apply(m.callback(fails), 1)",
)


# Two ways to declare a pointer that one tool alone has to tell apart.
NONE_AS_A_POINTER = ("m.scale_pointer(None, 2.0)", "m.scale_not_none(None, 2.0)")
HANDS_OVER_NONE = "pybind11"


def contracts(session: Session) -> pd.DataFrame:
    """What each binding makes of awkward arguments, each call in a fresh process, which may die of it."""
    fixed = {"folder": LIBRARIES}
    asked = [(binding, expression) for expression in CONTRACTS for binding in BINDINGS]
    asked += [(HANDS_OVER_NONE, expression) for expression in NONE_AS_A_POINTER]
    cases = [
        Case.of(GIL, EVALUATE, "evaluate", {"binding": binding, "expression": expression}, fixed)
        for binding, expression in asked
    ]
    return session.run("awkward arguments", cases, repeats=1, may_fail=True)


# [/contracts]

# [one object]
METHODS = ("add", "add_unlocked")


def one_object(session: Session, absent: dict[str, dict[str, str]]) -> pd.DataFrame:
    """Two threads add to one C++ object, with each tool's own lock and without: shares lost and refused, in fresh processes."""
    fixed = {"folder": LIBRARIES, "threads": 2, "calls": round(50_000 * session.budget.scale) or 1}
    cases = [
        Case.of(FREE_THREADED, EXPERIMENTS, "one_object", {"binding": binding, "method": method}, fixed)
        for binding in BINDINGS
        if binding not in absent[FREE_THREADED]
        for method in METHODS
    ]
    return session.run("one object, two threads", cases, repeats=3)


# [/one object]


# [interpreter]
def own_interpreter(session: Session, absent: dict[str, dict[str, str]]) -> pd.DataFrame:
    """Each binding in an interpreter with a GIL of its own, beside the main one: what it says, or how the process ended."""
    cases = [
        Case.of(GIL, EXPERIMENTS, "own_interpreter", {"binding": binding}, {"folder": LIBRARIES})
        for binding in BINDINGS
        if binding not in absent[GIL]
    ]
    return session.run("another interpreter", cases, repeats=1, may_fail=True)


# [/interpreter]

# [first use]
# The three whose author's code is linked in the three classic ways: C, generated C++, templates.
RELINKED = (FLOOR, "Cython", "pybind11")
# The one other form of a tool that differs in its import.
OUT_OF_LINE = "cffi ABI, out of line"


def first_use(session: Session, absent: dict[str, dict[str, str]]) -> pd.DataFrame:
    """Import and first call with the GIL, in fresh processes; those of RELINKED also lazy."""
    cases = []
    for binding in (*BINDINGS, OUT_OF_LINE):
        if VARIANTS.get(binding, binding) not in absent[GIL]:
            for linking in ("default", "lazy") if binding in RELINKED else ("default",):
                factors = {"binding": binding, "linking": linking}
                cases.append(Case.of(GIL, EXPERIMENTS, "first_use", factors, {"folder": LIBRARIES}))
    return session.run("import and first call", cases, session.budget.repeats)


# [/first use]

# [sizes]
PACKAGING = {"pyproject.toml", "setup.py", "CMakeLists.txt", "Cargo.toml", "build.rs"}
# A list of versions, what only this book asks for, and what another form of the binding needs.
NEITHER = {"crates.lock", _arms["DECLARATION"], "declare.py", "out_of_line.py"}


def lines_of_code(path: Path) -> int:
    """Lines of a file that hold code: no comment, no docstring, not blank (by Pygments's lexers)."""
    try:
        lexer = get_lexer_for_filename(path.name)
    except ClassNotFound:
        return 0
    lines, number = set(), 1
    for kind, value in lexer.get_tokens(path.read_text(encoding="utf-8")):
        if kind not in Comment and kind not in String.Doc and kind not in Text and value.strip():
            lines.update(range(number, number + value.rstrip("\n").count("\n") + 1))
        number += value.count("\n")
    return len(lines)


def size(label: str, binding: str) -> dict:
    """Lines of code and of packaging in a binding's project, and bytes of what was built of it, with symbols."""
    project, module = DECLARED[binding].project, DECLARED[binding].module.partition(".")[0]
    folder, built = NATIVE / "boundary" / project, Path(resolved(LIBRARIES)) / soabi(load(BY_LABEL[label]))
    files = [
        path
        for path in folder.rglob("*")
        if path.is_file() and not BY_PRODUCTS & set(path.relative_to(folder).parts) and path.name not in NEITHER
    ]
    made = [path for top in (built / module, *built.glob(f"{module}.*")) for path in (top, *top.rglob("*"))]
    return {
        "code": sum(lines_of_code(path) for path in files if path.name not in PACKAGING),
        "packaging": sum(lines_of_code(path) for path in files if path.name in PACKAGING),
        "built": sum(path.stat().st_size for path in made if path.is_file() and path.suffix in (".so", ".py")),
    }


def sizes(session: Session) -> dict[str, dict[str, int]]:
    """By binding: what its author writes (lines), and what is built with the GIL (bytes)."""
    return session.observe("sizes", lambda: {binding: size(GIL, binding) for binding in BINDINGS})


# [/sizes]

# [work]
WORK = (10, 100, 1_000, 10_000)
# PyDLL and the limited C API are left out for time.
WORKED = tuple(binding for binding in BINDINGS if binding not in ("ctypes PyDLL", "C API, limited"))


def work(session: Session) -> Record:
    """A C function of four lengths through the bindings, with the GIL, and in a C loop."""
    found = []
    for n in WORK:
        fixed = {"folder": LIBRARIES, "iterations": n}
        each = [Arm.of(f"{binding}: work {n}", ARMS, "work", {**fixed, "binding": binding}) for binding in WORKED]
        found += [replace(arm, beside=f"work {n}") for arm in [*each, Arm.of(f"C: work {n}", ARMS, "work_in_c", fixed)]]
    budget = session.budget
    shorter = replace(budget, batch_ms=min(BATCH_MS, budget.batch_ms), seconds=budget.seconds * 0.24)
    return session.time("work", found, [GIL], shorter)


# [/work]
