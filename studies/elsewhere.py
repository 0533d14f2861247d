"""`python3 ffilab/bootstrap.py study elsewhere`: what the packs in book/machines say of each claim, for the pages to
show beside what a reader's run says. It measures nothing (book/evidence/elsewhere.json)
"""

import json
import math

from ffilab.atlas import tables
from ffilab.atlas.pack import opened
from ffilab.judge.claims import all_claims
from ffilab.page.elsewhere import KEPT
from ffilab.run.paths import ROOT

MACHINES = ROOT / "book" / "machines"


def said_by_packs() -> dict[str, dict]:
    """By claim its first number, and for each pack whose budget gives results: processor, day, verdict, and that number
    with its bounds (None where there is none)."""
    packs = [opened(path) for path in sorted(MACHINES.glob("*.tar.gz"))]
    found = {}
    for claim in all_claims():
        said = []
        for pack in packs:
            cell, row = tables.cell(pack, claim), pack.rows.get(claim.id)
            if row and tables.is_tested(cell) and pack.is_result(row):
                day = pack.facts["chapters"][claim.chapter]["date"][:10]
                said.append([pack.machine["cpu"], day, cell.verdict, *bounds(cell)])
        if said:
            found[claim.id] = {"number": tables.first_number(claim), "said": said}
    return found


def bounds(cell: tables.Cell) -> list[float | None]:
    """Value and bounds of a cell's number, to four digits."""
    number = cell.number.estimate.interval if cell.number and cell.number.estimate else None
    values = (number.value, number.low, number.high) if number else (math.nan,) * 3
    return [float(f"{value:.4g}") if math.isfinite(value) else None for value in values]


def main(budget: str) -> None:
    """Look at the packs and keep what they say. budget: of no use here."""
    lines = [f"{json.dumps(claim)}: {json.dumps(row)}" for claim, row in said_by_packs().items()]
    KEPT.write_text("{\n" + ",\n".join(lines) + "\n}\n")
