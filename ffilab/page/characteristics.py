"""The page on what the rules say where the truth is known, from the table that `study characteristics` keeps."""

import operator

from ffilab.judge import claims, verdicts
from ffilab.judge.estimates import Share
from ffilab.judge.rules import NO, YES
from ffilab.page.templates import filled

# What readers run, and what decides most, beside each other.
BUDGETS = ("quick", "full")
# What a part is held to: in so many of its runs at most it says the opposite of what is right; and at `quick`, as
# published, in so many at least it says what is right, or says why not (`hard` in claims.toml).
MAX_WRONG, MIN_RIGHT = verdicts.ALPHA, 0.5
DECIDED = (YES, NO)
# Which part of the table a row is.
key = operator.itemgetter("claim", "truth", "budget")


def is_opposite(answer: str, right: str) -> bool:
    """Does an answer say the opposite of the right one? Open is never wrong."""
    return answer in DECIDED and right in DECIDED and answer != right


def right_share(row: dict) -> float:
    """The share of runs that give the right verdict."""
    return row["verdicts"].get(row["right"], 0.0)


def part_wrong(part: dict) -> float:
    """The share of runs that give a part the opposite of its right answer."""
    return sum(part[answer] for answer in DECIDED if is_opposite(answer, part["right"]))


def tested() -> list[claims.Claim]:
    """The claims that are measured, in the order of the documents."""
    return [claim for claim in claims.all_claims() if claim.tests and verdicts.kind(claim) == verdicts.MEASURED]


def page(rows: list[dict], known: list[dict]) -> str:
    """Show the operating characteristics: a row for each claim and truth, with what each budget gives.

    known: the kept estimates that they were made from.
    """
    found, shown = {key(row): row for row in rows}, list(dict.fromkeys(row["claim"] for row in rows))
    budgets, lacking = {}, {}
    for budget in BUDGETS:
        usual = [found[claim, "as published", budget] for claim in shown if (claim, "as published", budget) in found]
        parts = [part_wrong(part) for row in rows if row["budget"] == budget for part in row["parts"]]
        often = sum(right_share(row) >= MIN_RIGHT for row in usual)
        budgets[budget] = {"usual": len(usual), "often": often, "worst": max(parts, default=0)}
        lacking = {row["claim"]: sum(part["right"] == verdicts.NO_NUMBER for part in row["parts"]) for row in usual}
    fewest = min(row["runs"] for row in rows)
    return filled(
        "characteristics.md",
        fewest=fewest,
        room=Share(0, fewest).at().high,
        commits=sorted({row["provenance"]["commit"] for row in rows}),
        runs=sorted(
            {(one["date"][:10], one["cpu"], one["cores_usable"]) for one in (row["provenance"] for row in known)}
        ),
        budgets=budgets,
        left_out=[claim.id for claim in tested() if claim.id not in shown],
        lacking={claim: count for claim, count in lacking.items() if count},
        min_right=MIN_RIGHT,
        right_share=right_share,
        table={
            (claim, truth): [found.get((claim, truth, budget)) for budget in budgets]
            for claim, truth in dict.fromkeys(key(row)[:2] for row in rows)
        },
    )
