"""What instruments say of the chapter's calls: counted instructions, call trees, profiles, what was built. The page
quotes all of it."""

import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from dataclasses import asdict
from pathlib import Path

import numpy as np
from pygments.lexers import get_lexer_for_filename
from pygments.token import Comment, String, Text
from pygments.util import ClassNotFound

from ffilab.measure import instructions, profile
from ffilab.measure.plan import empty_loop
from ffilab.measure.record import Record
from ffilab.measure.session import Session
from ffilab.run.errors import UserError
from ffilab.run.paths import BY_PRODUCTS, NATIVE, ROOT, resolved, without_paths
from ffilab.setup.catalogue import BY_LABEL, FREE_THREADED, GIL
from ffilab.setup.installed import load, soabi
from native.boundary import arms
from notebooks.boundary.experiment import ANSWER, BINDINGS, DECLARED, INT, LIBRARIES, call, cells


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
            if (arms.STANDS_IN.get(project, project) not in reasons) == stood_in_for
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
    """A10: what a profiler saw of the call that the talk timed, by interpreter and binding, one entry for each process,
    or why there is none here."""

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
    """Samples of one process that runs the talk's loop, by the innermost functions of their stacks; `how`: what perf
    counted.

    Where there is no counter of cycles, perf takes the clock."""

    def said(*command) -> str:
        words = ["perf", *map(str, command)]
        return subprocess.run(words, capture_output=True, text=True, check=True, env=instructions.environment()).stdout

    with tempfile.TemporaryDirectory() as folder:
        data, python = f"{folder}/perf.data", load(BY_LABEL[GIL]).python
        graph = ("-e", "cycles", "-F", TALK_HZ, "-g", "--call-graph=dwarf", "-o", data)
        loop = (python, ROOT / "native/boundary/talk_loop.py", resolved(LIBRARIES), binding, seconds)
        said("record", *graph, "--", *loop)
        how = "perf " + said("evlist", "-i", data).strip()
        stacks = said("script", "--no-inline", "-i", data, "-F", "ip,sym").split("\n\n")
    lines = [stack.strip().splitlines()[:FRAMES] for stack in stacks if stack.strip()]
    counted = Counter(tuple(line.split(maxsplit=1)[-1] for line in stack) for stack in lines)
    return {"how": how, "stacks": [[list(functions), n] for functions, n in counted.most_common()]}


def as_the_talk_profiled(session: Session, absent: dict[str, dict[str, str]]) -> dict[str, list[dict]] | str:
    """A10 as the talk ran it: the call graphs of its loop, by binding, one for each process; or why there are none
    here."""

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


# [sizes]
PACKAGING = {"pyproject.toml", "setup.py", "CMakeLists.txt", "Cargo.toml", "build.rs"}
# A list of versions, what only this book asks for, and what another form of the binding needs.
NEITHER = {"crates.lock", arms.DECLARATION, "declare.py", "out_of_line.py", "frozen.rs"}


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


def built(binding: str) -> list[Path]:
    """The shared objects of a binding for the interpreter with the GIL, as its tool left them."""
    folder, name = Path(resolved(LIBRARIES)) / soabi(load(BY_LABEL[GIL])), DECLARED[binding].module.partition(".")[0]
    found = [*folder.glob(f"{name}.*"), *folder.glob(f"{name}/**/*")]
    return [path for path in found if path.suffix in (".so", ".dylib")]


def stripped(file: Path) -> int:
    """Bytes of a shared object without what only linkers and debuggers read: what a wheel should hold."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(shutil.copy(file, folder))
        # Without -x, macOS would refuse: what is looked up when the file is loaded has to stay.
        subprocess.run(["strip", *(["-x"] if sys.platform == "darwin" else []), copy], check=True)
        return copy.stat().st_size


def size(binding: str) -> dict:
    """Lines of code and of packaging in a binding's project; bytes of what is built of it."""
    folder = NATIVE / "boundary" / DECLARED[binding].project
    files = [
        path
        for path in folder.rglob("*")
        if path.is_file() and not BY_PRODUCTS & set(path.relative_to(folder).parts) and path.name not in NEITHER
    ]
    return {
        "code": sum(lines_of_code(path) for path in files if path.name not in PACKAGING),
        "packaging": sum(lines_of_code(path) for path in files if path.name in PACKAGING),
        "built": sum(file.stat().st_size for file in built(binding)) or None,
        "stripped": sum(map(stripped, built(binding))) or None if shutil.which("strip") else None,
    }


def sizes(session: Session) -> dict[str, dict[str, int | None]]:
    """By binding: the lines that its author writes, and the bytes of its shared objects."""
    return session.observe("sizes", lambda: {binding: size(binding) for binding in BINDINGS})


# [/sizes]
