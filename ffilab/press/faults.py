"""The appendix on faults: what was done to the project, what was expected of it, and what was seen (tests/faults).

Keep what the tests left in `_build/results`, with date, commit and command: `python -m ffilab.press.faults`.
"""

import json
from pathlib import Path

from ffilab import machine
from ffilab.errors import UserError
from ffilab.paths import ROOT, read_json, without_paths
from ffilab.press.evidence import FOLDER

FRESH = ROOT / "_build" / "results" / "faults.json"
KEPT = FOLDER / "faults.json"
COMMAND = "FFILAB_FAULTS=_build/results/faults.json python -m pytest tests/faults && python -m ffilab.press.faults"


def keep(fresh: Path = FRESH, kept: Path = KEPT) -> dict:
    """Put the results of the tests beside the other evidence, and return what is kept. Raises UserError if a fault failed."""
    faults = sorted(json.loads(fresh.read_text()), key=lambda one: (one["area"], one["id"]))
    if failed := [one["id"] for one in faults if not one["passed"]]:
        raise UserError(
            f"Not kept, as these faults did not pass: {', '.join(failed)}. Mend them and run the tests again."
        )
    for one in faults:
        one["seen"] = without_paths(one["seen"])
    facts = machine.facts()
    found = {"date": facts["date"][:10], "commit": facts["commit"], "command": COMMAND, "faults": faults}
    kept.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n")
    return found


def read(kept: Path = KEPT) -> dict:
    """What is kept; nothing if the tests were never kept."""
    return read_json(kept) if kept.exists() else {}


def page(found: dict) -> str:
    """The table by areas: fault, what is expected, what was seen."""
    if not found:
        return f"No faults were kept yet: `{COMMAND}`.\n"
    areas = dict.fromkeys(one["area"] for one in found["faults"])
    lines = [
        f"{len(found['faults'])} faults, in these areas: {', '.join(areas)}. All passed, on {found['date']}, commit {found['commit']}. "
        f"Each is a test; this makes the table again: `{found['command']}`."
    ]
    for area in areas:
        rows = [one for one in found["faults"] if one["area"] == area]
        lines += [
            "",
            f"## {area[0].upper()}{area[1:]}",
            "",
            f"| {len(rows)} faults | What is expected | What was seen |",
            "|---|---|---|",
        ]
        lines += [f"| {cell(one['fault'])} | {cell(one['expected'])} | {cell(one['seen'])} |" for one in rows]
    return "\n".join(lines) + "\n"


def cell(text: str) -> str:
    """A text in a table, whatever it holds."""
    for sign in "\\*_`<>[]|$~{}#":
        text = text.replace(sign, f"\\{sign}")
    return " ".join(text.split())


if __name__ == "__main__":
    keep()
