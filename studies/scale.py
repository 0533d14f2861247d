"""`python3 ffilab/bootstrap.py study scale`: planted statements, of which it is known what holds threads back: does
`ffilab scale` say it, in how many seconds, and what does it say beside a busy loop? (book/evidence/scale.json)
"""

import math
import os
import subprocess
import sys
import tempfile
import tomllib
from contextlib import contextmanager, nullcontext
from functools import partial
from pathlib import Path

from ffilab.judge.rules import OPEN
from ffilab.page.evidence import SCALE_PARTS
from ffilab.run import machine
from ffilab.run.errors import UserError
from ffilab.run.paths import NATIVE_OUT, ROOT
from ffilab.run.progress import say
from ffilab.setup import interpreters
from ffilab.setup.catalogue import BY_LABEL, FREE_THREADED
from ffilab.setup.installed import Installed, load, soabi
from ffilab.yours.scale.diagnosing import scale
from ffilab.yours.scale.result import Scaling
from ffilab.yours.scale.rules import UNKNOWN, UNSEEN
from studies import kept

SPECIMENS = ROOT / "studies" / "scale_specimens.toml"
# Runs of statements with nothing to find, in which no name is right.
SILENT_RUNS = 40
UNDECLARED = """
#include <Python.h>
static PyModuleDef definition = {{PyModuleDef_HEAD_INIT, .m_name = "{name}"}};
PyMODINIT_FUNC PyInit_{name}(void) {{ return PyModuleDef_Init(&definition); }}
"""


def specimens(kind: str = "specimen") -> list[dict]:
    return tomllib.loads(SPECIMENS.read_text())[kind]


def undeclared(folder: Path, name: str) -> str:
    """Compile into a folder, for the free-threaded build of the chapter pair, a module in C that does not say that it
    can do without the GIL: importing it turns the GIL on. Return that Python."""
    python = str(load(BY_LABEL[FREE_THREADED]).python)
    include = interpreters.probe(python)["include"]
    (folder / f"{name}.c").write_text(UNDECLARED.format(name=name))
    options = ["-shared", "-fPIC", f"-I{include}", f"{name}.c", "-o", f"{name}.so"]
    subprocess.run([*machine.compiler_command(), *options], cwd=folder, check=True)
    return python


def matches(wanted: str | list[str], name: str) -> bool:
    """Is it this name, or one of its spellings?"""
    return name in ([wanted] if isinstance(wanted, str) else wanted)


def judged(specimen: dict, found: Scaling) -> dict:
    """What it said of a specimen: is it right, is it open, and which names are false?"""
    # What it cannot name is no name, and it is not right either.
    names = [one.name for one in found.culprits if one.kind != UNKNOWN]
    wanted = specimen.get("names", [])
    complete = all(any(matches(each, name) for name in names) for each in wanted)
    false = [name for name in names if not any(matches(each, name) for each in wanted)]
    # It says of these that there are more, and names none.
    false = [name for name in false if name not in (UNSEEN, *specimen.get("may", []))]
    right = found.verdict == specimen["verdict"] and complete and not false
    right = right and found.gil_by == specimen.get("gil_by", "")
    if kinds := specimen.get("kinds"):
        told = {one.kind for one in found.culprits if one.name not in specimen.get("may", [])}
        right = right and (told or set(found.kinds)) == set(kinds)
    ratio, ceiling = found.ratio, found.ceiling
    return {
        "name": specimen["name"],
        "after_rules": bool(specimen.get("after_rules")),
        "mended_truth": bool(specimen.get("mended_truth")),
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


def asked(specimen: dict, python: Installed, folder: Path, hurry: bool = True) -> dict:
    """One diagnosis, judged. hurry: as of `scale`."""
    built = {f"{{{chapter}}}": str(NATIVE_OUT / chapter / soabi(python)) for chapter in ("boundary", "sharing")}
    places = {**built, "{undeclared}": str(folder)}
    setup = specimen.get("setup", "")
    for word, place in places.items():
        setup = setup.replace(word, place)
    try:
        found = judged(specimen, scale(specimen["statement"], setup, python=python.python, quiet=True, hurry=hurry))
    except UserError as error:
        found = {"name": specimen["name"], "after_rules": bool(specimen.get("after_rules")), "verdict": "refused"}
        found |= {
            "mended_truth": False,
            "kinds": [],
            "culprits": [],
            "cures": [],
            "ratio": None,
            "ceiling": None,
            "left_out": 0.0,
        }
        found |= {"seconds": 0.0, "right": False, "open": False, "false": []}
        found["refused"] = kept.without_folders(str(error))
    say(f"  {specimen['name']}: {found.get('verdict', 'refused')} {found.get('kinds')} {found.get('culprits')}")
    return found


def cured(case: dict, python: Installed, folder: Path) -> dict:
    """A public case: what it says of it, and what two threads do with the cure that it names."""
    here = asked({**case, "verdict": "held back"}, python, folder)
    there = asked({**case, "statement": case["cured"], "verdict": "scales"}, python, folder)
    told = {"where": case.get("where", ""), "cure": case["cure"], "cured": there["ratio"]}
    return {**here, **told, "cures": here["cures"]}


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
    rows, times = run["runs"], sorted(row["seconds"] for row in run["runs"])
    later = [row for row in rows if row["after_rules"]]
    told = [
        f"{run['part']}: right in {sum(row['right'] for row in rows)} of {len(rows)}",
        f"of {len(later)} written after the rules, in {sum(row['right'] for row in later)}",
        f"open in {sum(row['open'] for row in rows)}",
        f"false names in {sum(bool(row['false']) for row in rows)}",
    ]
    return f"{', '.join(told)}, {times[len(times) // 2]} s in the median, {times[-1]} s at most"


def main(budget: str, part: str = "idle") -> None:
    """Ask of every specimen (idle), of those that were written after the rules (blind), of those with nothing to find
    (silent), of every fourth one beside a busy loop, at the priority that everybody has (loaded), or of the public
    cases, with and without their cure; add the session to those that are kept. Raises UserError for another part."""
    if part not in SCALE_PARTS:
        raise UserError(f"--part is {part!r}: say {', '.join(SCALE_PARTS)}.")
    python, those, path = load(BY_LABEL[FREE_THREADED]), specimens(), kept.file("scale", budget)
    one = asked
    if part == "blind":
        those = [specimen for specimen in those if specimen.get("after_rules")]
    elif part == "silent":
        silent = [specimen for specimen in those if specimen["verdict"] == "scales"]
        those = [silent[number % len(silent)] for number in range(SILENT_RUNS)]
    elif part == "loaded":
        one, those = partial(asked, hurry=False), those[::4]
    elif part == "cases":
        one, those = cured, specimens("case")
    with tempfile.TemporaryDirectory() as scratch, busy_loop() if part == "loaded" else nullcontext():
        undeclared(Path(scratch), "undeclared")
        session = {"part": part, "machine": machine.facts(), "load": os.getloadavg()[0], "runs": []}
        for specimen in those:
            session["runs"].append(one(specimen, python, Path(scratch)))
    kept.write_sessions(path, [*kept.read_sessions(path), session])
    say(report(session))
