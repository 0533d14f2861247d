"""The worked example of the page *Yours*: measured when the book is, and read from its record."""

import shutil
import sys
from pathlib import Path

from ffilab.measure.foreign import check
from ffilab.run.errors import UserError
from ffilab.run.paths import EXECUTED, RECORDS, ROOT
from ffilab.run.progress import say
from ffilab.setup.catalogue import GIL
from ffilab.yours.result import Result

EXAMPLE = ROOT / "ffilab" / "yours" / "example.py"
RECORD = Path("yours", "ways.jsonl")
# The record that the page shows: measured with this book, or among those that its pages were made from.
SHOWN = EXECUTED / RECORD
SECONDS = {"smoke": 0, "room": 10, "quick": 30, "full": 120}


def measure(budget: str) -> None:
    """Measure the example; where that fails, say why, as the book is worth printing without it."""
    from ffilab.yours.benchmarks import arms_of
    from ffilab.yours.comparing import compare

    try:
        result = compare(
            arms_of((), "", str(EXAMPLE), ()), [GIL], to=0, seconds=SECONDS[budget], quiet=not sys.stderr.isatty()
        )
    except UserError as error:
        say(f"  the example of `ffilab time` was not measured: {error}")
        return
    (RECORDS / RECORD).parent.mkdir(parents=True, exist_ok=True)
    result.save(RECORDS / RECORD)
    show(RECORDS)


def show(records: Path) -> None:
    """Show the example of a folder of records, if it holds one. Raises UserError if it is damaged."""
    if (records / RECORD).exists():
        check(records / RECORD)
        SHOWN.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(records / RECORD, SHOWN)


def page() -> str:
    """What came out, for the page to include."""
    if not SHOWN.exists():
        return "The example was not measured in this copy of the book.\n"
    result = Result.read(SHOWN)
    machine = result.record.run["machine"]
    where = f"{machine['cpu']}, {machine['cores']} cores, {machine['date'][:10]}"
    return f"This came out when it was measured for these pages ({where}):\n\n```text\n{result}\n```\n"
