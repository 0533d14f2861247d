"""The worked example of the page *Yours*: measured when the book is, and read from its record."""

import sys

from ffilab.run.errors import UserError
from ffilab.run.paths import RECORDS, ROOT
from ffilab.run.progress import say
from ffilab.setup.catalogue import GIL
from ffilab.yours.result import Result

EXAMPLE = ROOT / "ffilab" / "yours" / "example.py"
RECORD = RECORDS / "yours" / "ways.jsonl"
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
    RECORD.parent.mkdir(parents=True, exist_ok=True)
    result.save(RECORD)


def page() -> str:
    """What came out, for the page to include."""
    if not RECORD.exists():
        return "The example was not measured in this copy of the book.\n"
    return f"When this book was made, the example was measured with it:\n\n```text\n{Result.read(RECORD)}\n```\n"
