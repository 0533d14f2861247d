"""Operating characteristics of the rules: how often which verdict is given, by what is true and how long is measured.

It simulates sessions in which a claim is exactly as published, has half the size, no effect, or the
wrong sign, and judges them on the path of every real session. `book/evidence/operating_characteristics.json` keeps the table.
"""

import json
import math
import operator
import os
from collections import Counter, defaultdict
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from ffilab.judge import claims, ledger, verdicts
from ffilab.judge.rules import NO, OPEN, YES
from ffilab.judge.simulation import TRUTHS, simulate
from ffilab.run import machine
from ffilab.run.paths import ROOT, read_json

EVIDENCE = ROOT / "book" / "evidence" / "operating_characteristics.json"
COMMAND = "python3 ffilab/bootstrap.py study characteristics"
# What readers run, and what decides most, beside each other.
BUDGETS = ("quick", "full")
RUNS = 200
# What a part is held to: in so many of its runs at most it says the opposite of what is right; and at `quick`, as published, in so
# many at least it says what is right, or says why not (`hard` in claims.toml).
MAX_WRONG, MIN_RIGHT = verdicts.ALPHA, 0.5
DECIDED = (YES, NO)
# What an endless run says is asked of the longest budget, without noise.
ENDLESS = "full"


def rows(chapter: str, truth: str, budget: str, seed: int, noise: float = 1) -> dict[str, dict]:
    """The ledger's rows of one simulated session, by claim; only of claims that are tested."""
    session = simulate(chapter, truth, budget, seed, noise)
    # What is simulated holds no controls: these rows are about the rules.
    return {
        row["id"]: row
        for row in ledger.judged(session, whatever_the_controls=True)
        if row["verdict"] in verdicts.TESTED
    }


def is_opposite(answer: str, right: str) -> bool:
    """Does an answer say the opposite of the right one? Open is never wrong."""
    return answer in DECIDED and right in DECIDED and answer != right


def simulated(chapter: str, truth: str, budget: str, seeds: list[int]) -> dict[str, list[dict]]:
    """Some sessions, one for each seed: of each claim what they say, and no more than the table needs."""
    said = defaultdict(list)
    for seed in seeds:
        for identifier, row in rows(chapter, truth, budget, seed).items():
            widths = {name: (high - low) / 2 for name, (low, high) in row["interval"].items()}
            answers = [(part["verdict"], widths.get(part["number"], math.nan)) for part in row["parts"]]
            said[identifier].append({"verdict": row["verdict"], "answers": answers})
    return said


def table(chapters: list[str], runs: int = RUNS, budgets: tuple[str, ...] = BUDGETS, seed: int = 0):
    """Yield the rows of a chapter, truth and budget, as each is done: one object for each claim, see `row_of`.

    It simulates on all cores, each chapter, truth and budget with seeds of its own.
    """
    with ProcessPoolExecutor(cores := len(os.sched_getaffinity(0))) as pool:
        for chapter in (name for name in chapters if claims.declared(name).claims):
            asked = {}
            for number, truth in enumerate(TRUTHS):
                for budget in budgets:
                    seeds = [seed + 10_000 * number + run + 1 for run in range(runs)]
                    shares = [seeds[part::cores] for part in range(cores)]
                    asked[truth, budget] = [
                        pool.submit(simulated, chapter, truth, budget, part) for part in shares if part
                    ]
            for (truth, budget), parts in asked.items():
                right = rows(chapter, truth, ENDLESS, seed, noise=0)
                found = [part.result() for part in parts]
                said = {identifier: [one for part in found for one in part[identifier]] for identifier in right}
                provenance = {"command": COMMAND, "commit": machine.commit(), "seed": seed}
                yield [
                    row_of(truth, budget, row, said[identifier]) | {"provenance": provenance}
                    for identifier, row in right.items()
                ]


def row_of(truth: str, budget: str, right: dict, said: list[dict]) -> dict:
    """What the sessions of one claim, truth and budget said: an object with

    claim, truth, budget, runs; verdicts: share of runs by word; right: the word of the same path without noise, which is what a
    run would reach in the long run; wrong: share of runs in which any part of the claim got the opposite of its right answer; open: share
    of runs in which no part was answered; parts: of each part, what it measures, its kind, its right answer, the shares of yes, no and
    open, and the median half-width of its interval (None if it has none).
    """
    runs, parts = len(said), []
    for number, part in enumerate(right["parts"]):
        answers = [one["answers"][number] for one in said]
        counted = Counter(answer for answer, _ in answers)
        widths = sorted(width for _, width in answers if math.isfinite(width))
        parts.append(
            {
                "number": part["number"],
                "kind": part["kind"],
                "right": part["verdict"],
                **{what: counted[what] / runs for what in (YES, NO, OPEN)},
                "half_width": float(f"{widths[len(widths) // 2]:.3g}") if widths else None,
            }
        )
    truths = [part["right"] for part in parts]
    wrong = sum(any(is_opposite(answer, of) for (answer, _), of in zip(one["answers"], truths)) for one in said)
    words = Counter(one["verdict"] for one in said)
    return {
        "claim": right["id"],
        "truth": truth,
        "budget": budget,
        "runs": runs,
        "verdicts": {word: count / runs for word, count in words.most_common()},
        "right": right["verdict"],
        "wrong": wrong / runs,
        "open": words[verdicts.OPEN] / runs,
        "parts": parts,
    }


# Which part of the table a row is.
key = operator.itemgetter("claim", "truth", "budget")


def right_share(row: dict) -> float:
    """The share of runs that give the right verdict."""
    return row["verdicts"].get(row["right"], 0.0)


def part_right(part: dict) -> float:
    """The share of runs that give a part its right answer."""
    return part[part["right"]] if part["right"] in (YES, NO, OPEN) else 0.0


def part_wrong(part: dict) -> float:
    """The share of runs that give a part the opposite of its right answer."""
    return sum(part[answer] for answer in DECIDED if is_opposite(answer, part["right"]))


def kept(path: Path = EVIDENCE) -> list[dict]:
    """The table as it was kept; without rows if there is none."""
    return read_json(path) if path.exists() else []


def keep(results: list[dict], path: Path = EVIDENCE) -> None:
    """Put rows into the table that is kept, in place of those of the same claim, truth and budget; the others stay.

    What a row replaces keeps its `before`: what the rules of an earlier version gave. Rows of claims that are no more are dropped.
    """
    rows = {key(row): row for row in kept(path)}
    for row in results:
        before = rows.get(key(row), {}).get("before")
        rows[key(row)] = row | ({"before": before} if before else {})
    known = {claim.id for claim in claims.all_claims() if claim.tests and not claim.not_measurable}
    lines = [json.dumps(row) for row in in_order([row for row in rows.values() if row["claim"] in known])]
    new = path.with_suffix(".new")
    new.write_text("[\n" + ",\n".join(lines) + "\n]\n")
    new.replace(path)


def in_order(results: list[dict]) -> list[dict]:
    """By claim, from the published effect to the wrong sign, and from `quick` to `full`."""
    return sorted(
        results, key=lambda row: (claims.place(row["claim"]), list(TRUTHS).index(row["truth"]), BUDGETS.index(row["budget"]))
    )  # fmt: skip


def report(results: list[dict]) -> str:
    """What the table is held to, and what falls short, in words."""
    parts = [(row, part) for row in in_order(results) for part in row["parts"]]
    wrong = [(row, part) for row, part in parts if part_wrong(part) > MAX_WRONG]
    usual = [(row, part) for row, part in parts if key(row)[1:] == ("as published", "quick") and part["kind"] != "size"]
    short = [(row, part) for row, part in usual if part_right(part) < MIN_RIGHT]
    lines = [
        f"{len(results)} rows, {len(parts)} parts; wrong in more than {MAX_WRONG:.0%} of the runs: {len(wrong)}; as published, at "
        f"`quick`, right in fewer than {MIN_RIGHT:.0%}: {len(short)}"
    ]
    lines += [
        f"  {row['claim']:4} {row['truth']}, {row['budget']}, {part['number']} ({part['kind']}): right is {part['right']!r}: "
        f"{part_right(part):.1%}; wrong {part_wrong(part):.1%}"
        for row, part in [*wrong, *(one for one in short if one not in wrong)]
    ]
    return "\n".join(lines)
