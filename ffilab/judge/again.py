"""Judge a set of records anew, without measuring: `ffilab judge RECORDS`."""

from pathlib import Path

from ffilab.bench.session import Reading, find
from ffilab.errors import UserError
from ffilab.judge import claims, ledger


def rows(folder: Path) -> list[dict]:
    """The ledger's rows for every corner that has a session in this folder of records, in the order of the documents."""
    found = []
    for corner in claims.corners():
        try:
            session = Reading(corner, find(folder, corner))
        except UserError:
            continue
        handed = ledger.measured(session)
        found += [row for _, row in ledger.rows_of(handed, session.provenance)]
    return sorted(found, key=lambda row: claims.place(row["id"]))


def report(folder: Path) -> str:
    """The same in words, one line for each claim. Raises UserError if no corner has a session there."""
    if not (found := rows(folder)):
        raise UserError(f"There is no complete session of any chapter in {folder}.")
    return "\n".join(f"{row['id']:4} {row['verdict']}: {row['reason']}" for row in found)
