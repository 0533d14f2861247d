"""`python3 ffilab/bootstrap.py study scale`: planted statements, of which it is known what holds threads back: does
`ffilab scale` say it, in how many seconds, and what does it say beside a busy loop? (book/evidence/scale.json)
"""

import math
import os
import subprocess
import sys
import tempfile
import tomllib
from contextlib import contextmanager
from pathlib import Path

from ffilab.judge.rules import OPEN
from ffilab.run import machine
from ffilab.run.errors import UserError
from ffilab.run.paths import NATIVE_OUT, ROOT
from ffilab.run.progress import say
from ffilab.setup.catalogue import BY_LABEL, FREE_THREADED
from ffilab.setup.installed import Installed, load, soabi
from ffilab.yours.scale.diagnosing import scale
from ffilab.yours.scale.result import Scaling
from ffilab.yours.scale.rules import UNSEEN
from studies import kept

SPECIMENS = ROOT / "studies" / "scale_specimens.toml"
# Runs of statements with nothing to find, in which no name is right.
SILENT_RUNS = 40
# A module in C that does not say that it can do without the GIL.
UNDECLARED = """
#include <Python.h>
static PyModuleDef definition = {PyModuleDef_HEAD_INIT, .m_name = "undeclared"};
PyMODINIT_FUNC PyInit_undeclared(void) { return PyModuleDef_Init(&definition); }
"""


def specimens() -> list[dict]:
    return tomllib.loads(SPECIMENS.read_text())["specimen"]


def compiled(folder: Path, python: Installed) -> None:
    """Build the module that turns the GIL on."""
    asked = "import sysconfig; print(sysconfig.get_path('include'))"
    include = subprocess.check_output([python.python, "-c", asked], text=True).strip()
    (folder / "undeclared.c").write_text(UNDECLARED)
    options = ["-shared", "-fPIC", f"-I{include}", "undeclared.c", "-o", f"undeclared.{soabi(python)}.so"]
    subprocess.run([*machine.compiler().split(), *options], cwd=folder, check=True)


def matches(wanted: str | list[str], name: str) -> bool:
    """Is it this name, or one of its spellings?"""
    return name in ([wanted] if isinstance(wanted, str) else wanted)


def judged(specimen: dict, found: Scaling) -> dict:
    """What it said of a specimen: is it right, is it open, and which names are false?"""
    names, wanted = [one.name for one in found.culprits], specimen.get("names", [])
    complete = all(any(matches(each, name) for name in names) for each in wanted)
    false = [name for name in names if not any(matches(each, name) for each in wanted)]
    # It says of these that there are more, and names none.
    false = [name for name in false if name not in (UNSEEN, *specimen.get("may", []))]
    right = found.verdict == specimen["verdict"] and complete and not false
    right = right and found.gil_by == specimen.get("gil_by", "")
    if kinds := specimen.get("kinds"):
        right = right and set(found.kinds) == set(kinds)
    ratio, ceiling = found.ratio, found.ceiling
    return {
        "name": specimen["name"],
        "after_rules": bool(specimen.get("after_rules")),
        "verdict": found.verdict,
        "kinds": found.kinds,
        "culprits": [[one.name, one.kind] for one in found.culprits],
        "cures": [[cure.how, round(cure.ratio.value, 3), cure.is_enough] for cure in found.cures],
        "ratio": [round(each, 3) for each in (ratio.value, ratio.low, ratio.high)],
        "ceiling": round(ceiling.value, 3) if math.isfinite(ceiling.value) else None,
        "left_out": round(found.left_out, 3),
        "seconds": round(found.seconds, 1),
        "right": right,
        "open": found.verdict == OPEN,
        "false": false,
    }


def asked(specimen: dict, python: Installed, folder: Path) -> dict:
    """One diagnosis, judged."""
    places = {"{built}": str(NATIVE_OUT / "boundary" / soabi(python)), "{undeclared}": str(folder)}
    setup = specimen.get("setup", "")
    for word, place in places.items():
        setup = setup.replace(word, place)
    try:
        found = judged(specimen, scale(specimen["statement"], setup, python=python.python, quiet=True))
    except UserError as error:
        found = {"name": specimen["name"], "refused": kept.without_folders(str(error)), "right": False, "open": False}
    say(f"  {specimen['name']}: {found.get('verdict', 'refused')} {found.get('kinds')} {found.get('culprits')}")
    return found


@contextmanager
def busy_loop():
    """A process that computes on any core while the body runs."""
    process = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        yield
    finally:
        process.kill()
        process.wait()


def report(run: dict) -> str:
    """In how many it was right, false or open, and how long it took."""
    rows, times = run["runs"], sorted(row["seconds"] for row in run["runs"] if "seconds" in row)
    later = [row for row in rows if row.get("after_rules")]
    told = [
        f"{run['part']}: right in {sum(row['right'] for row in rows)} of {len(rows)}",
        f"of {len(later)} written after the rules, in {sum(row['right'] for row in later)}",
        f"open in {sum(row['open'] for row in rows)}",
        f"false names in {sum(bool(row.get('false')) for row in rows)}",
    ]
    if times:
        told.append(f"{times[len(times) // 2]} s in the median, {times[-1]} s at most")
    return ", ".join(told)


def main(budget: str, part: str = "idle") -> None:
    """Ask of every specimen (idle), of those with nothing to find (silent), or of every one beside a busy loop
    (loaded); add the session to those that are kept. Raises UserError for another part."""
    if part not in ("idle", "silent", "loaded"):
        raise UserError(f"--part is {part!r}: say idle, silent or loaded.")
    python, those, path = load(BY_LABEL[FREE_THREADED]), specimens(), kept.file("scale", budget)
    if part == "silent":
        silent = [specimen for specimen in those if specimen["verdict"] == "scales"]
        those = [silent[number % len(silent)] for number in range(SILENT_RUNS)]
    with tempfile.TemporaryDirectory() as scratch:
        compiled(Path(scratch), python)
        session = {"part": part, "machine": machine.facts(), "load": os.getloadavg()[0], "runs": []}
        for specimen in those:
            if part == "loaded":
                with busy_loop():
                    row = asked(specimen, python, Path(scratch))
            else:
                row = asked(specimen, python, Path(scratch))
            session["runs"].append(row)
    kept.write_sessions(path, [*kept.read_sessions(path), session])
    say(report(session))
