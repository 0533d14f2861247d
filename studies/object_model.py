"""`python3 ffilab/bootstrap.py study object_model`: what the bindings of native/objects do with classes, and how long
that takes; and which further tools there are for the same interpreter (book/evidence/object_model.json, made anew by
each run).
"""

import json
import os
import runpy
import subprocess
import tempfile
import tomllib
from pathlib import Path

from ffilab.measure.plan import Arm
from ffilab.run import machine
from ffilab.run.budget import BUDGETS
from ffilab.run.errors import UserError
from ffilab.run.paths import BUILT, NATIVE, NATIVE_OUT, ROOT
from ffilab.run.progress import step
from ffilab.setup.catalogue import BY_LABEL, CHAPTER_PAIR, GIL
from ffilab.setup.installed import Installed, load, soabi
from ffilab.setup.interpreters import uv
from ffilab.setup.native import last_error
from ffilab.yours.comparing import compare
from studies import kept

OBJECTS = NATIVE / "objects"
MODEL = runpy.run_path(str(OBJECTS / "model.py"))
TOOLS, CALLS = MODEL["tools"](), MODEL["CALLS"]
# Seconds that the calls are measured for, those of one further tool, and how long a process may take to answer.
TIMES_S, TRIED_S, ANSWERS_S = 300, 30, 60


def asked(python: Path, source: str, *arguments: str) -> str:
    return subprocess.check_output([python, "-c", source, *arguments], text=True).strip()


# [answers]
def answers(label: str, tool: str) -> list[list[str]]:
    """Topic, question and answer, from a process of this interpreter; the last one says how it ended, if it did so
    early."""
    command = [load(BY_LABEL[label]).python, "-s", "-P", OBJECTS / "model.py", NATIVE_OUT / "objects", tool]
    done = subprocess.run(command, capture_output=True, text=True, timeout=ANSWERS_S)
    given = [json.loads(line) for line in done.stdout.splitlines()]
    left = str("leak" in done.stderr)
    given = [[topic, asked, left if asked == MODEL["LEFT"] else answer] for topic, asked, answer in given]
    return given if done.returncode == 0 else [*given, ["", "the process", f"ended with {done.returncode}"]]


# [/answers]


# [times]
USES = f"import sys\nsys.path.insert(0, {str(OBJECTS)!r})\nfrom model import load, overriding\n"


def arms() -> list[Arm]:
    """Each call through each tool that has it."""
    return [
        Arm(f"{tool}: {name}", statement, f"m = load('{BUILT}/objects', {tool!r}); {setup}", USES)
        for topic, calls in CALLS.items()
        for name, (statement, setup) in calls.items()
        for tool in TOOLS
        if topic not in TOOLS[tool]["not-here"]
    ]


def times(arms: list[Arm], pythons: list, seconds: float) -> dict[str, dict]:
    """Nanoseconds of each call, the empty loop included, with their interval, by Python and tool: all in turns, in one
    run."""
    result = compare(arms, pythons, to=0, seconds=seconds, quiet=True)
    found: dict[str, dict] = {}
    for (label, name), time in zip(result.cells, result.times.values()):
        tool, _, call = name.partition(": ")
        interval = [round(value, 3) for value in (time.value, time.low, time.high)]
        found.setdefault(label, {}).setdefault(tool, {})[call] = interval
    return found


# [/times]


def versions(python: Path) -> dict[str, str]:
    """The version of each tool, as it is installed; PyO3's as its project asks for it."""
    source = "import importlib.metadata as m, json, sys; print(json.dumps({n: m.version(n) for n in sys.argv[1:]}))"
    crate = tomllib.loads((OBJECTS / "pyo3" / "Cargo.toml").read_text())["dependencies"]["pyo3"]
    return {**json.loads(asked(python, source, "nanobind", "pybind11", "Cython")), "PyO3": crate.strip("=")}


# [tried]
def tried() -> list[dict]:
    """Each further tool: its version and the times of its calls, beside those of hand-written C in the same run; or
    what stopped it."""
    tools = tomllib.loads((ROOT / "studies" / "tried.toml").read_text())["tool"]
    return [about(tool) | (made(tool) if "packages" in tool else {}) for tool in tools]


def about(tool: dict) -> dict[str, str]:
    return {name: tool.get(name, "") for name in ("title", "released", "said", "version", "stopped")}


def made(tool: dict) -> dict:
    """What came of installing and building a tool, in an environment of its own."""
    python = load(BY_LABEL[GIL])
    with tempfile.TemporaryDirectory() as scratch, step(tool["title"]):
        folder, log = Path(scratch) / tool["title"], Path(scratch) / "log"
        places = {
            "boundary": NATIVE / "boundary" / "library",
            "built": NATIVE_OUT,
            "include": asked(python.python, "import sysconfig; print(sysconfig.get_path('include'))"),
        }
        for name, text in tool.get("files", {}).items():
            Path(scratch, name).write_text(text.replace("{boundary}", str(places["boundary"])))
        for command in (
            [uv(), "venv", "--quiet", "--python", python.python.resolve(), folder],
            [uv(), "pip", "install", "--quiet", "--python", folder, *tool["packages"]],
            *(command.format(**places).split() for command in tool.get("commands", ())),
        ):
            environment = {**os.environ, "PATH": f"{folder / 'bin'}:{os.environ['PATH']}"}
            with log.open("w") as sink:
                done = subprocess.run(command, cwd=scratch, env=environment, stdout=sink, stderr=subprocess.STDOUT)
            if done.returncode:
                return {"stopped": kept.without_folders(last_error(log))[:200]}
        try:
            (found,) = times(calls(tool, python, scratch), [folder], TRIED_S).values()
        except UserError as error:
            return {"stopped": kept.without_folders(str(error))[:200]}
        release = asked(
            folder / "bin" / "python", f"import importlib.metadata as m; print(m.version({tool['packages'][0]!r}))"
        )
        return {"version": release, "times": found}


def calls(tool: dict, python: Installed, scratch: str) -> list[Arm]:
    """Two calls in hand-written C, and the same in the tool."""
    start = "import sys\nsys.path.insert(0, {!r})\n"
    setups = {
        "C API": start.format(str(NATIVE_OUT / "boundary" / soabi(python)))
        + "from boundary_c_api import noop, add_one",
        tool["title"]: start.format(scratch) + tool["setup"].replace("{built}", str(NATIVE_OUT)),
    }
    found = [
        Arm(f"{title}: {name}", call, setup, group=title)
        for name, call in (("noop", "noop()"), ("add_one", "add_one(7)"))
        for title, setup in setups.items()
    ]
    inside = f"{tool['title']}: add_one in C, called from compiled Python"
    if "inside" in tool:
        found.append(Arm(inside, tool["inside"], setups[tool["title"]], group=tool["title"], own_loop=True))
    return found


# [/tried]


def main(budget: str) -> None:
    """Make the evidence anew."""
    labels, is_result = [one.label for one in CHAPTER_PAIR], BUDGETS[budget].is_result
    found = {"machine": machine.facts("objects"), "versions": versions(load(BY_LABEL[GIL]).python)}
    found["tools"] = {tool: {name: said[name] for name in ("not-here", "by-hand")} for tool, said in TOOLS.items()}
    found |= {kind: {topic: list(one) for topic, one in MODEL[kind.upper()].items()} for kind in ("calls", "questions")}
    with step("answers"):
        found["answers"] = {label: {tool: answers(label, tool) for tool in TOOLS} for label in labels}
    with step("times"):
        found["times"] = times(arms(), labels, TIMES_S if is_result else 0)
    found["tried"] = tried() if is_result else []
    kept.write_sessions(kept.file("object_model", budget), [found])
