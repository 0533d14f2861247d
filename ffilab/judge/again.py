"""Judge a set of records anew, without measuring: `ffilab judge RECORDS`."""

from pathlib import Path

from ffilab.judge import claims, ledger
from ffilab.measure.foreign import NoSession, find
from ffilab.measure.reading import Reading
from ffilab.run.errors import UserError


def rows(folder: Path, whatever_the_controls: bool = False) -> list[dict]:
    """The ledger's rows for every chapter that has a session in this folder of records, in the order of the documents.

    whatever_the_controls: judge even what a run's own controls would withhold; for tests with records that were cut
    down.
    """
    judged_rows = []
    for chapter in claims.chapter_names():
        try:
            session = Reading(chapter, find(folder, chapter))
        except NoSession:
            continue
        judged_rows += ledger.judged(session, whatever_the_controls)
    return sorted(judged_rows, key=lambda row: claims.place(row["id"]))


def report(folder: Path, claim: str = "") -> str:
    """The ledger in words: each claim, or one by its id, with a line for each part. Raises UserError if there is
    none."""
    if not (ledger_rows := rows(folder)):
        raise UserError(f"There is no complete session of any chapter in {folder}.")
    if claim and not (ledger_rows := [row for row in ledger_rows if row["id"].lower() == claim.lower()]):
        raise UserError(f"No chapter that was measured in {folder} tests a claim {claim}.")
    lines = [line for row in ledger_rows for line in (*ledger.in_lines(row), "")]
    return "\n".join([*lines, ledger.trusted(ledger_rows)])
