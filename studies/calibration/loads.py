"""How often a run withholds what it measured, on an idle machine and beside other work.

python3 ffilab/bootstrap.py study calibration --part loads   one round and more; Ctrl-C loses nothing

A round is a book of all chapters on an idle machine and one beside an editor; at the end of every second round comes
one beside a compiler. Each chapter is measured as `make book` does it, in a folder of its own. What is kept are the
records: they are judged anew, by the rules of now, whenever the summary is made (book/evidence/withholding.json).
"""

import json
import os
import random
import subprocess
import sys
import time
from collections import Counter, defaultdict
from contextlib import contextmanager
from pathlib import Path

from ffilab.judge import ledger
from ffilab.judge.verdicts import WITHHELD
from ffilab.measure.alone import alone
from ffilab.measure.reading import Reading
from ffilab.page.book import drawn_layouts
from ffilab.page.characteristics import DECIDED
from ffilab.page.contents import chapters
from ffilab.page.execute import execute
from ffilab.run import machine, settings
from ffilab.run.budget import BUDGETS
from ffilab.run.paths import BUILD, NATIVE, RECORDS, ROOT
from ffilab.run.progress import say
from ffilab.run.subprocesses import group
from ffilab.setup.catalogue import FREE_THREADED, GIL
from studies import kept

EVIDENCE = kept.EVIDENCE / "withholding.json"
COMMAND = "python3 ffilab/bootstrap.py study calibration --part loads"
# An editor, or a browser: bursts of one core that last a second, a tenth of the time.
BURST_S, SHARE = 1.0, 0.1
ROUNDS = 3
# What a compiler is busy with: a file that needs no header of CPython.
COMPILED = NATIVE / "measuring" / "library" / "spin.c"


def editor() -> None:
    """Use a core for a second now and then, until killed. The pauses are exponential."""
    while True:
        time.sleep(random.expovariate(SHARE / (BURST_S * (1 - SHARE))))
        end = time.monotonic() + BURST_S
        while time.monotonic() < end:
            pass


def compiler() -> None:
    """Compile one file again and again, until killed."""
    while True:
        subprocess.run([*machine.compiler_command(), "-O2", "-c", COMPILED, "-o", os.devnull], check=True)


# Each load and how many processes it has.
LOADS = {"idle": 0, "editor": 1, "compiler": machine.cores_usable()}


@contextmanager
def beside(load: str):
    """Run the processes of a load meanwhile."""
    command = [sys.executable, "-m", __spec__.name, load]
    if not LOADS[load]:
        yield
        return
    with group(["sh", "-c", " & ".join(["exec " + " ".join(command)] * LOADS[load]) + " & wait"], cwd=ROOT):
        yield


def measure(load: str, budget: str, index: Path) -> None:
    """Measure all chapters beside a load; a line of the index for each, as it ends."""
    settings.tell(interpreters=[GIL, FREE_THREADED])
    try:
        with drawn_layouts([GIL, FREE_THREADED], BUDGETS[budget]):
            for chapter in chapters():
                began = time.monotonic()
                with alone(), beside(load):
                    execute(chapter, budget)
                line = {
                    "load": load,
                    "chapter": chapter.name,
                    "session": Path(chapter.facts["records"][0]).parent.name,
                    "minutes": round((time.monotonic() - began) / 60, 2),
                    "commit": machine.commit(),
                }
                with index.open("a") as lines:
                    lines.write(json.dumps(line) + "\n")
    finally:
        if index.exists():
            summarise(index)


def judged(line: dict) -> dict:
    """What the rules say of one run: its numbers, what was withheld and measured again, and the answer to each part."""
    session = Reading(line["chapter"], RECORDS / line["chapter"] / line["session"])
    rows = ledger.judged(session)
    parts = {(row["id"], part["number"], part["kind"]): part["verdict"] for row in rows for part in row["parts"]}
    again = [session.record.disturbed(title) for title in {one["title"] for one in session.record.experiments}]
    again += [session.timed(name).disturbed() for name in session.plans]
    numbers = {(row["id"], name) for row in rows for name in row["numbers"]}
    withheld = {(identifier, name) for (identifier, name, _), answer in parts.items() if answer == WITHHELD}
    return {
        **line,
        "numbers": len(numbers),
        "withheld": len(withheld),
        "measured_again": sum(one[0] for one in again),
        "left_out": sum(one[1] for one in again),
        "units": sum(one[2] for one in again),
        "answers": parts,
    }


def summarise(index: Path) -> list[dict]:
    """Judge all runs of the index anew, keep and return a row for each load and chapter. Rows whose records are no more
    stay.

    compared, wrong: answers to parts that another, idle run has answered; and those of them that are opposite to most
    of these.
    """
    runs = [judged(json.loads(line)) for line in index.read_text().splitlines()]
    votes: dict = defaultdict(Counter)
    for run in runs:
        if run["load"] == "idle":
            for part, answer in run["answers"].items():
                votes[part][answer] += answer in DECIDED
    rows = kept.read_sessions(EVIDENCE)
    again = {(run["load"], run["chapter"], run["session"]) for run in runs}
    rows = [row for row in rows if not {(row["load"], row["chapter"], one) for one in row["sessions"]} & again]
    for load, chapter in sorted({(run["load"], run["chapter"]) for run in runs}):
        chosen = [run for run in runs if (run["load"], run["chapter"]) == (load, chapter)]
        judged_by = [
            (answer, most(votes[part], answer, load)) for run in chosen for part, answer in run["answers"].items()
        ]
        given = [pair for pair in judged_by if pair[0] in DECIDED]
        compared = [answer != usual for answer, usual in given if usual]
        sums = ("numbers", "withheld", "measured_again", "left_out", "units", "minutes")
        rows.append(
            {
                "load": load,
                "chapter": chapter,
                "runs": len(chosen),
                **{name: round(sum(run[name] for run in chosen), 2) for name in sums},
                "answered": len(given),
                "compared": len(compared),
                "wrong": sum(compared),
                "sessions": [run["session"] for run in chosen],
                "provenance": {
                    "command": COMMAND,
                    "budget": BUDGETS["quick"].name,
                    "commit": chosen[-1]["commit"],
                    "cpu": machine.facts()["cpu"],
                },
            }
        )
    rows.sort(key=lambda row: (list(LOADS).index(row["load"]), row["chapter"]))
    kept.write_sessions(EVIDENCE, rows)
    return rows


def most(votes: Counter, answer: str, load: str) -> str | None:
    """What most idle runs answered to a part, without the vote of the run that is asked; None where none did, or as
    many each."""
    others = votes - Counter([answer] if load == "idle" else [])
    yes, no = (others[one] for one in DECIDED)
    return None if yes == no else max(DECIDED, key=others.__getitem__)


def main(budget: str) -> None:
    """Measure further rounds, in a folder beside the reader's own pages."""
    own = ROOT / "_build" / "withholding"
    if own != BUILD:
        environment = {**os.environ, settings.BUILD: str(own), settings.BUDGET: budget}
        subprocess.run([sys.executable, "-m", __name__, "measure", budget], env=environment, cwd=ROOT, check=True)
        return
    index = BUILD / "runs.jsonl"
    index.parent.mkdir(parents=True, exist_ok=True)
    for number in range(ROUNDS):
        for load in ("idle", "editor", *["compiler"] * (number == 1)):
            say(f"round {number + 1} of {ROUNDS}: all chapters, {load}")
            measure(load, budget, index)


if __name__ == "__main__":
    what = sys.argv[1]
    {"editor": editor, "compiler": compiler}.get(what, lambda: main(sys.argv[2]))()
