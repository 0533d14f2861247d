"""Make the golden records again, from the newest complete session of every chapter: `python tests/golden/make.py
RECORDS [FOLDER]`.

A golden record is a real one, cut down: the first restarts and blocks of a timed plan, the first rounds of every
experiment. Pages and verdicts are made from them in the tests, in seconds and without measuring; nothing about a
machine is concluded from them. What they say is kept in tests/snapshots.

The other folders are real, too, measured at `smoke` (FOLDER is where they go). tests/golden-poor: on one core (`taskset
-c 0`, or 1), with a PATH on which there is no lld, valgrind, perf, gdb, cargo and rustc, also when the native code was
built. tests/golden-small-pages: in a process that may have no huge pages (`prctl(PR_SET_THP_DISABLE)`, which children
inherit).
"""

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from ffilab.judge import claims
from ffilab.measure.foreign import find
from ffilab.measure.record import MAIN
from ffilab.run.errors import UserError
from ffilab.run.paths import ROOT
from ffilab.yours.worked_example import RECORD

HERE = Path(__file__).parent
RESTARTS, BLOCKS, ROUNDS = 4, 3, 4
# A calibration that is cut down fails, and what rests on it is then withheld; a benchmark of the third step takes eight
# rounds. Of what writes long rows, as many as an interval takes.
ROUNDS_OF = {"two at once": 20, "a benchmark, restarted": 24}
ROUNDS_OF |= dict.fromkeys(("scenarios", "the talk's experiment", "remedies"), 3)
# What a page needs of an interpreter's packages is few of them.
PACKAGES = ("numpy", "scipy", "pandas", "seaborn")


def restarts_that_stay(lines: list[dict]) -> set[int]:
    """The first restarts, for each of them the next one with the same layout, if one came twice, and that of the
    default link."""
    planned = [line for line in lines if line["kind"] == "restart" and not line["again"]]
    drawn = {line["restart"]: line.get("layout") for line in planned if not line["default"]}
    first = [number for number in drawn if number < RESTARTS]
    again = [
        next((later for later, layout in drawn.items() if later > number and layout == drawn[number]), number)
        for number in first
        if drawn[number] is not None
    ]
    return {*first, *again, *(line["restart"] for line in planned if line["default"])}


def cut(lines: list[dict]) -> list[dict]:
    """The lines of one record that stay."""
    kept, restarts = [], restarts_that_stay(lines)
    for line in lines:
        if line["kind"] == "run":
            line["plan"]["blocks"] = min(BLOCKS, line["plan"]["blocks"])
            for facts in line["interpreters"].values():
                facts["packages"] = {name: v for name, v in facts["packages"].items() if name in PACKAGES}
        if line["kind"] == "restart":
            line["facts"], line["blocks"] = {}, min(BLOCKS, line["blocks"])
        if line["kind"] == "end":
            # It is that of the whole record; tests change what is left, too.
            line.pop("sha256", None)
        # Of so few batches and processes none can be spared for a neighbour; what becomes of them has tests of its own.
        line.pop("probes", None)
        line.pop("cores", None)
        too_late = (
            ("restart" in line and line["restart"] not in restarts)
            or line.get("block", 0) >= BLOCKS
            or line.get("round", 0) >= ROUNDS_OF.get(line.get("title"), ROUNDS)
        )
        if not (too_late and line["kind"] in ("restart", "block", "child")):
            kept.append(line)
    for line in kept:
        if line["kind"] == "experiment":
            of_it = [child for child in kept if child["kind"] == "child" and child["title"] == line["title"]]
            # What was measured again stands in the place of another.
            line["processes"] = sum(child["run"] == line["run"] and "replaces" not in child for child in of_it)
    return kept


def write_cut(path: Path, target: Path) -> None:
    lines = cut([json.loads(line) for line in path.read_text().splitlines()])
    text = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)
    target.parent.mkdir(parents=True, exist_ok=True)
    # Where a reader's file lies.
    target.write_text(text.replace(str(ROOT), ""))


def make(records: Path, folder: Path) -> None:
    if (records / RECORD).exists():
        write_cut(records / RECORD, folder / RECORD)
    for chapter in claims.chapter_names():
        try:
            source, target = find(records, chapter), folder / chapter
        except UserError:
            print(f"{chapter}: no records there; its golden ones stay as they are")
            continue
        target.mkdir(parents=True, exist_ok=True)
        for old in target.glob("*.jsonl"):
            old.unlink()
        for path in sorted(source.glob("*.jsonl")):
            write_cut(path, target / path.name)
        size = sum(path.stat().st_size for path in target.iterdir())
        print(f"{chapter}: {size / 1024:.0f} KiB, from {source.name}/{MAIN}")


if __name__ == "__main__":
    make(Path(sys.argv[1]), Path(sys.argv[2]) if sys.argv[2:] else HERE)
