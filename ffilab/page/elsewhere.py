"""What our own runs on other machines, and on other days, said of a claim: a reader sees whether the machine at hand is
odd. Kept by `study elsewhere` from the packs in book/machines."""

import functools
import math

from ffilab.judge.estimates import Interval
from ffilab.judge.wording import text
from ffilab.run.paths import ROOT, read_json

KEPT = ROOT / "book" / "evidence" / "elsewhere.json"


def told(claim: str) -> str:
    """`NUMBER: AMD EPYC, 2026-11-24, holds, 0.42 [0.40, 0.44]; …`; empty where no other run has a verdict."""
    kept = runs().get(claim)
    if not kept:
        return ""
    each = []
    for processor, day, verdict, *bounds in kept["said"]:
        value, low, high = (math.nan if bound is None else bound for bound in bounds)
        each.append(
            f"{processor}, {day}, {verdict}" + ("" if math.isnan(value) else f", {text(Interval(value, low, high))}")
        )
    return f"{kept['number']}: {'; '.join(each)}"


@functools.cache
def runs() -> dict[str, dict]:
    return read_json(KEPT) if KEPT.exists() else {}
