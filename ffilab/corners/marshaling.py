"""Chapter "The boundary": nine bindings, every kind of argument (claims A1 to A4, A7, A10, A11, A23)."""

import dataclasses
import itertools
import random
import runpy
import secrets
from pathlib import Path

import numpy as np
import pandas as pd
from pygments.lexers import get_lexer_for_filename
from pygments.token import Comment, String, Text
from pygments.util import ClassNotFound

from ffilab import draw
from ffilab.bench import child, instructions, profile, runner
from ffilab.bench.plan import EMPTY, Arm, plan
from ffilab.bench.record import Record
from ffilab.budget import current
from ffilab.errors import UserError
from ffilab.judge import description, statistics
from ffilab.judge.ledger import Measurement
from ffilab.judge.processes import exact
from ffilab.judge.statistics import Interval
from ffilab.kernels import load, soabi
from ffilab.paths import BY_PRODUCTS, NATIVE, NATIVE_OUT
from ffilab.provision.catalogue import BY_LABEL

SOURCES = NATIVE / "boundary"
LIBRARIES = NATIVE_OUT / "boundary"
ARMS = SOURCES / "arms.py"
EXPERIMENTS = SOURCES / "experiments.py"
EVALUATE = SOURCES / "evaluate.py"
_arms = runpy.run_path(str(ARMS))
BINDINGS: tuple[str, ...] = tuple(_arms["BINDINGS"])
SIGNATURES: tuple[str, ...] = tuple(_arms["SIGNATURES"])
PROJECTS: dict[str, str] = {name: project for name, (project, _, _) in _arms["BINDINGS"].items()}
FLOOR = "C API"
INT = "int → int"
KERNEL, WITHOUT_GIL = "3.14", "3.14t"
# The talk's four. It does not say which mode of cffi it used; the chapter explains this choice.
TALK = ("ctypes CDLL", "cffi ABI", "pybind11", "PyO3")
AGAIN = " again"
# A cell of the matrix is one of some hundred and eighty per kernel: short batches, or it takes an hour.
BATCH_MS = 1
WORK = (10, 100, 1_000)
TARGET_SHARE = 0.05


def name(binding: str, signature: str) -> str:
    """The arm's name in a record."""
    return f"{binding}: {signature}"


def call(binding: str, signature: str, title: str | None = None) -> Arm:
    """The arm of one cell of the matrix."""
    arguments = {"folder": str(LIBRARIES), "binding": binding, "signature": signature}
    return Arm(title or name(binding, signature), str(ARMS), "call", arguments)


def arms() -> list[Arm]:
    """The whole matrix, and second copies of two cells for the A/A test."""
    copies = [call(binding, INT, name(binding, INT) + AGAIN) for binding in (FLOOR, "ctypes CDLL")]
    matrix = [call(binding, signature) for signature in SIGNATURES for binding in BINDINGS]
    return [*matrix, *copies]


def measure(labels: list[str]) -> Record:
    """Time the whole matrix on all kernels, interleaved in one run."""
    budget = current()
    return runner.run(
        plan("marshaling.matrix", arms(), labels, dataclasses.replace(budget, batch_ms=min(BATCH_MS, budget.batch_ms)))
    )


def present(record: Record, label: str, signature: str = INT) -> list[str]:
    """The bindings that were measured on this kernel with this signature."""
    return [b for b in BINDINGS if (label, name(b, signature)) not in record.missing]


def why_not_built(label: str, binding: str) -> str | None:
    """The reason that the build left if neither a binding nor what stands in for it was built for a kernel."""
    built = LIBRARIES / soabi(load(BY_LABEL[label]))
    note, other = built / f"missing-{PROJECTS[binding]}.txt", _arms["STANDS_IN"].get(PROJECTS[binding])
    if not note.exists() or (other and not (built / f"missing-{other}.txt").exists()):
        return None
    return note.read_text()


def stand_ins(label: str) -> dict[str, str]:
    """Bindings that another project stands in for on this kernel, with the reason that the build left."""
    built = LIBRARIES / soabi(load(BY_LABEL[label]))
    notes = {binding: built / f"missing-{project}.txt" for binding, project in PROJECTS.items()}
    return {
        binding: note.read_text()
        for binding, note in notes.items()
        if note.exists() and not why_not_built(label, binding)
    }


def net(record: Record, label: str, arm: str, empty: str = EMPTY) -> Interval:
    """Nanoseconds of one call without the loop around it."""
    times = record.times(label, arm) - record.times(label, empty)
    return statistics.location_interval(np.nanmedian(times, axis=1), record.run["plan"]["seed"])


def over_floor(record: Record, label: str, binding: str, signature: str) -> Interval:
    """Nanoseconds that a binding takes more than the C API for the same signature, paired by block."""
    times = record.times(label, name(binding, signature)) - record.times(label, name(FLOOR, signature))
    return statistics.location_interval(np.nanmedian(times, axis=1), record.run["plan"]["seed"])


def ratio(record: Record, slow: tuple[str, str], fast: tuple[str, str]) -> Interval:
    """Time of one (kernel, arm) over that of another, paired by block."""
    log = statistics.restart_log_ratios(record, slow, fast)
    return statistics.location_interval(log, record.run["plan"]["seed"]).map(np.exp)


def matrix(record: Record) -> pd.DataFrame:
    """One row per kernel, signature and binding: ns per call, ns over the floor (both with interval), ratio."""
    rows = []
    for label in record.kernels:
        for signature in SIGNATURES:
            for binding in present(record, label, signature):
                cell = (label, name(binding, signature))
                rows.append(
                    {
                        "kernel": label,
                        "signature": signature,
                        "binding": binding,
                        "ns": statistics.per_call(record, cell),
                        "over": over_floor(record, label, binding, signature),
                        "times": float(
                            np.exp(
                                np.median(statistics.restart_log_ratios(record, cell, (label, name(FLOOR, signature))))
                            )
                        ),
                    }
                )
    return pd.DataFrame(rows)


def count_instructions(record: Record, labels: list[str]) -> dict[tuple[str, str], float] | str:
    """Instructions per loop of every cell of the matrix, or the reason why they cannot be counted here."""
    if reason := instructions.available():
        return reason
    cells = [arm for arm in arms() if not arm.name.endswith(AGAIN)]
    if not current().is_result:
        cells = [arm for arm in cells if INT in arm.name]
    cells.append(Arm(EMPTY, str(Path(runner.__file__).with_name("empty.py")), "empty_loop"))
    # Cheap calls need more loops for a clean slope, dear ones would take minutes.
    many = {}
    for label in labels:
        for arm in cells:
            if (label, arm.name) not in record.missing:
                ns = float(np.nanmedian(record.times(label, arm.name)))
                many[label, arm.name] = int(min(300, max(12, 2e5 / ns)))
    return instructions.per_call(labels, cells, many)


def original(labels: list[str]) -> dict[str, dict[str, np.ndarray]]:
    """A1 to A4 as the talk ran them, once per kernel: the samples (ns) of each binding after Tukey's filter."""
    found = {}
    for label in labels:
        taken = child.result(label, EXPERIMENTS, "original", LIBRARIES, *TALK, "ctypes PyDLL")
        found[label] = {binding: description.tukey(np.array(values)) for binding, values in taken.items()}
    return found


CONTRACTS = (
    "m.add_one(2**31)",
    "m.add_one(1.5)",
    "m.add_one(1, 2)",
    "m.code_points('\\udc80')",
    "m.code_points(b'abc')",
    "m.ends(array('i', [0, 0]))",
    "m.ends(array('d'))",
    "m.sum_list((1, 2))",
    "m.scale(None, 2.0)",
    "m.apply(m.callback(fails), 1)",
)


def contracts(label: str) -> pd.DataFrame:
    """What each binding makes of awkward arguments, each call in a fresh process: value, exception, or death."""
    rows = []
    for expression in CONTRACTS:
        row = {"call": expression}
        for binding in BINDINGS:
            outcome = child.run(label, EVALUATE, LIBRARIES, binding, expression)
            answer = outcome.result or {}
            row[binding] = answer.get("value") or answer.get("error") or outcome.ended
        rows.append(row)
    return pd.DataFrame(rows)


def where_time_goes(labels: list[str]) -> dict[tuple[str, str], tuple[str, dict[str, int]]] | str:
    """Samples by group of symbols for `int → int`, by (kernel, binding), with the method; or why there are none."""
    found = {}
    for label in labels:
        for binding in [b for b in ("ctypes CDLL", "PyO3") if not why_not_built(label, b)]:
            loops = int((2_000_000 if binding.startswith("ctypes") else 8_000_000) * min(1, current().scale))
            try:
                how, groups, _ = profile.samples(label, call(binding, INT), loops)
            except UserError as error:
                return str(error)
            found[label, binding] = how, groups
    return found


def call_trees(label: str) -> dict[str, list[instructions.Node]] | str:
    """A11: the call trees of ctypes CDLL and PyO3 for `int → int`, or why they cannot be had here."""
    if reason := instructions.available():
        return reason
    try:
        built = [b for b in ("ctypes CDLL", "PyO3") if not why_not_built(label, b)]
        return instructions.call_trees(label, [call(b, INT, b) for b in built])
    except UserError as error:
        return str(error)


def below(nodes: list[instructions.Node], pattern: str) -> float:
    """Share of a call's instructions below the functions whose name holds `pattern`; the outermost counts."""
    total, inside = 0.0, None
    for node in nodes:
        if inside is not None and node.depth > inside:
            continue
        inside = None
        if pattern in node.function:
            total, inside = total + node.share, node.depth
    return total


def without_gil(record: Record, version: str = KERNEL) -> pd.DataFrame:
    """Time on the t-build over time on the GIL build of one version, by binding and signature."""
    rows = []
    for signature in SIGNATURES:
        for binding in BINDINGS:
            arm = name(binding, signature)
            if not {(version, arm), (f"{version}t", arm)} & set(record.missing):
                interval = ratio(record, (f"{version}t", arm), (version, arm))
                rows.append({"signature": signature, "binding": binding, **vars(interval)})
    return pd.DataFrame(rows)


def as_interval(row) -> Interval:
    """The interval in a row of one of this module's tables."""
    return Interval(row.value, row.low, row.high)


def measure_work() -> Record:
    """A C function of four lengths through every binding on the chapter's kernel, and in a C loop."""
    found = []
    for n in WORK:
        found += [
            Arm(f"{b}: work {n}", str(ARMS), "work", {"folder": str(LIBRARIES), "binding": b, "iterations": n})
            for b in BINDINGS
        ]
        found.append(Arm(f"C: work {n}", str(ARMS), "work_in_c", {"folder": str(LIBRARIES), "iterations": n}))
    budget = dataclasses.replace(current(), batch_ms=min(BATCH_MS, current().batch_ms), seconds=current().seconds / 8)
    return runner.run(plan("marshaling.work", found, [KERNEL], budget))


def work_shares(record: Record) -> pd.DataFrame:
    """Share of a call that the boundary takes, against the time (ns) that the C function takes by itself."""
    rows = []
    for n in WORK:
        alone = record.times(KERNEL, f"C: work {n}")
        for binding in BINDINGS:
            if (KERNEL, f"{binding}: work {n}") in record.missing:
                continue
            through = record.times(KERNEL, f"{binding}: work {n}") - record.times(KERNEL, EMPTY)
            share = statistics.location_interval(np.nanmedian(1 - alone / through, axis=1), record.run["plan"]["seed"])
            rows.append({"binding": binding, "work_ns": float(np.nanmedian(alone)), **vars(share)})
    return pd.DataFrame(rows)


def worth_crossing(record: Record, label: str = KERNEL) -> dict[str, Interval]:
    """How long (ns) a C function of an int must run until the boundary takes less than TARGET_SHARE of the call."""
    factor = (1 - TARGET_SHARE) / TARGET_SHARE
    return {b: net(record, label, name(b, INT)).map(lambda ns: ns * factor) for b in present(record, label)}


# The three whose author's code is linked in the three classic ways: C, generated C++, templates.
RELINKED = (FLOOR, "Cython", "pybind11")


def first_use() -> pd.DataFrame:
    """Import and first call on the chapter's kernel, in fresh processes, one row each; RELINKED also lazy and bound early."""
    jobs = []
    for binding in BINDINGS:
        if not why_not_built(KERNEL, binding):
            for linking in ("default", "lazy", "bind now") if binding in RELINKED else ("default",):
                jobs.append((KERNEL, EXPERIMENTS, "first_use", LIBRARIES, binding, linking))
    outcomes = child.repeat("import and first call", jobs, current().repeats, random.Random(secrets.randbits(32)))
    return pd.DataFrame([{"binding": job[4], "linking": job[5], **(outcome.result or {})} for job, outcome in outcomes])


def linking_effect(runs: pd.DataFrame, key: str, linking: str) -> Interval:
    """Median over bindings, by round, of `key` under a way of linking over `key` under the default."""
    part = runs[runs.binding.isin(RELINKED)].dropna()
    rounds = part.assign(round=part.groupby(["binding", "linking"]).cumcount())
    table = rounds.pivot(index=["round", "binding"], columns="linking", values=key).dropna()
    logs = np.log(table[linking] / table["default"]).groupby("round").median()
    return statistics.location_interval(logs.to_numpy()).map(np.exp)


PACKAGING = {"pyproject.toml", "setup.py", "CMakeLists.txt", "Cargo.toml", "build.rs", "crates.lock"}


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


def sizes(label: str) -> pd.DataFrame:
    """What the author writes (lines of code, lines of packaging), and the size of what is built (KiB, with symbols)."""
    rows = []
    built = LIBRARIES / soabi(load(BY_LABEL[label]))
    for binding in BINDINGS:
        folder = SOURCES / PROJECTS[binding]
        files = [p for p in folder.rglob("*") if p.is_file() and not BY_PRODUCTS & set(p.parts)]
        code = sum(lines_of_code(p) for p in files if p.name not in PACKAGING)
        packaging = sum(lines_of_code(p) for p in files if p.name in PACKAGING - {"crates.lock"})
        module = _arms["BINDINGS"][binding][1]
        produced = [
            p
            for top in (built / module, *built.glob(f"{module}.*"))
            for p in ([top] if top.is_file() else top.rglob("*"))
        ]
        size = sum(p.stat().st_size for p in produced if p.is_file() and p.suffix in (".so", ".py"))
        rows.append(
            {
                "binding": binding,
                "lines of code": code,
                "lines of packaging": packaging,
                "built": f"{size / 1024:,.0f} KiB",
            }
        )
    return pd.DataFrame(rows)


def headline(record: Record) -> pd.DataFrame:
    """Net cost of `int → int` by binding and kernel, with intervals."""
    return pd.DataFrame(
        [
            {"binding": b, "kernel": label, **vars(net(record, label, name(b, INT)))}
            for label in record.kernels
            for b in present(record, label)
        ]
    )


CPP = ("pybind11", "nanobind", "Cython")


def cpp_table(record: Record) -> pd.DataFrame:
    """A23: the C++ class through other tools over the C++ class through PyO3 and Rust; above 1, Rust is faster."""
    rows = []
    for label in record.kernels:
        for signature in ("C++ method", "new C++ object"):
            for binding in CPP:
                if {binding, "PyO3"} <= set(present(record, label, signature)):
                    found = ratio(record, (label, name(binding, signature)), (label, name("PyO3", signature)))
                    rows.append({"kernel": label, "signature": signature, "binding": binding, **vars(found)})
    return pd.DataFrame(rows, columns=["kernel", "signature", "binding", "value", "low", "high"])


TEXTS = ("str in, ASCII", "str in, é, first", "str in, é, again", "str out")


def text_tax(record: Record) -> dict[str, Interval]:
    """A7: t-build over GIL build for texts through the C API, next to the same ratio for an int."""
    return {s: ratio(record, (WITHOUT_GIL, name(FLOOR, s)), (KERNEL, name(FLOOR, s))) for s in (INT, *TEXTS)}


def claim_measurements(record: Record, where: dict | str, trees: dict | str) -> dict[str, dict[str, Measurement]]:
    """What the chapter hands in to the ledger, by claim id."""

    def cells(slow, fast):
        result = statistics.compare(record, slow, fast)
        return Measurement(result.ratio, result.mde, "ratio of times")

    # Claim, name of the measurement, and the two cells: (kernel, binding, signature).
    wanted = [
        *(("A1", f"{a} / {b}", (KERNEL, a, "→ int"), (KERNEL, b, "→ int")) for a, b in itertools.pairwise(TALK)),
        *(
            ("A2", f"{a} / {b} on 3.14t", (WITHOUT_GIL, a, "→ int"), (WITHOUT_GIL, b, "→ int"))
            for a, b in itertools.pairwise(TALK)
        ),
        *(("A2", f"{b}: 3.14t / 3.14", (WITHOUT_GIL, b, "→ int"), (KERNEL, b, "→ int")) for b in TALK),
        ("A3", "cffi ABI / ctypes PyDLL", (KERNEL, "cffi ABI", "→ int"), (KERNEL, "ctypes PyDLL", "→ int")),
        *(
            ("A4", f"{a} / {b} on 3.14t", (WITHOUT_GIL, a, "→ int"), (WITHOUT_GIL, b, "→ int"))
            for a, b in itertools.pairwise(("cffi ABI", "ctypes PyDLL", "pybind11", "PyO3"))
        ),
        *(
            ("A7", f"{s}: 3.14t / 3.14", (WITHOUT_GIL, FLOOR, s), (KERNEL, FLOOR, s))
            for s in ("str in, ASCII", "str in, é, first", "str out")
        ),
        *(("A23", f"{b} / PyO3", (KERNEL, b, "C++ method"), (KERNEL, "PyO3", "C++ method")) for b in CPP),
    ]
    handed = {claim: {} for claim in ("A1", "A2", "A3", "A4", "A7", "A10", "A11", "A23")}
    for claim, measured, *pair in wanted:
        slow, fast = ((label, name(binding, signature)) for label, binding, signature in pair)
        # What could not be measured is not handed in: the ledger then says so.
        if not {slow, fast} & set(record.missing):
            handed[claim][measured] = cells(slow, fast)
    if not isinstance(where, str) and (KERNEL, "ctypes CDLL") in where:
        groups = where[KERNEL, "ctypes CDLL"][1]
        hand_off, libffi, total = groups["GIL and thread state"], groups["libffi"], sum(groups.values())
        share = statistics.share_interval(hand_off, total)
        first = statistics.share_interval(hand_off, hand_off + libffi)
        handed["A10"] = {
            "share of the hand-off in a CDLL call": Measurement(share, share.half_width, "share of samples"),
            "hand-off among hand-off and libffi": Measurement(first, first.half_width, "share of samples"),
        }
    if not isinstance(trees, str):
        for binding, measured, pattern in (
            ("ctypes CDLL", "ctypes: share below _ctypes_callproc", "_ctypes_callproc"),
            ("ctypes CDLL", "ctypes: share below ffi_call", "ffi_call"),
            ("PyO3", "PyO3: share below its trampoline", "trampoline"),
        ):
            if binding in trees:
                handed["A11"][measured] = exact(below(trees[binding], pattern), "share of instructions")
    return handed


def check_binding(choice: dict[str, str], record: Record, rules: pd.DataFrame) -> list[str]:
    """The exercise's self-check: correct first, then fast, by this page's own measurements on 3.14.

    choice: a binding for `parser` (texts, must refuse a wrong number loudly) and for `plugin` (no compiler on
    the user's machine when the library is loaded). Returns what to say, one line each.
    """
    rules = rules.set_index("call")
    lines, here = [], present(record, KERNEL)
    parser = choice.get("parser")
    if parser not in here:
        lines.append(f"parser: still open. Choose one of {', '.join(here)}.")
    elif "Error" not in str(rules.loc[CONTRACTS[0], parser]):
        lines.append(f"parser: not correct. {parser} answered {rules.loc[CONTRACTS[0], parser]} to 2**31.")
    elif parser == FLOOR:
        lines.append("parser: correct and fastest, and all of it written by hand. Try a tool.")
    else:
        signature = "str in, ASCII"
        tools = [
            b for b in present(record, KERNEL, signature) if b != FLOOR and "Error" in str(rules.loc[CONTRACTS[0], b])
        ]
        cost = {b: over_floor(record, KERNEL, b, signature) for b in tools}
        best = min(tools, key=lambda b: cost[b].value)
        result = (
            statistics.compare(record, (KERNEL, name(parser, signature)), (KERNEL, name(best, signature)))
            if parser != best
            else None
        )
        if result is None or statistics.finding(result) is None:
            lines.append("parser: correct, and no tool is faster here.")
        else:
            lines.append(
                f"parser: correct, not yet fast. A text costs {draw.text(cost[parser], 'ns')} over the floor; one tool needs {draw.text(cost[best], 'ns')}."
            )
    plugin = choice.get("plugin")
    no_compiler = ("cffi ABI", "ctypes PyDLL", "ctypes CDLL")
    if plugin not in here:
        lines.append(f"plugin: still open. Choose one of {', '.join(here)}.")
    elif plugin not in no_compiler:
        lines.append(f"plugin: not correct. {plugin} needs a compiler for each library and each version of Python.")
    elif plugin == "ctypes PyDLL":
        lines.append(
            "plugin: not correct. Through PyDLL, an unknown function that blocks stops every thread of a GIL build."
        )
    else:
        signature = "int → int"
        best = min(
            [b for b in ("cffi ABI", "ctypes CDLL") if b in here],
            key=lambda b: net(record, KERNEL, name(b, signature)).value,
        )
        lines.append(
            "plugin: correct"
            + (
                ", and the faster of the two."
                if plugin == best
                else f", not yet fast: {best} takes {draw.text(net(record, KERNEL, name(best, signature)), 'ns')} for an int."
            )
        )
    return lines
