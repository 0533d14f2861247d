"""Find the Pythons that a reader names: by a path, a name on PATH, the folder of a virtual environment, or a label of
the book."""

import json
import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from ffilab.run import settings
from ffilab.run.errors import UserError
from ffilab.run.paths import BUILT
from ffilab.setup import layouts
from ffilab.setup.catalogue import BY_LABEL, Interpreter
from ffilab.setup.installed import Installed, load
from ffilab.setup.layouts import AS_INSTALLED, Layout, Pool

OLDEST = (3, 9)
TIMEOUT_S = 30
LONGEST_SAID = 200
# It runs on whatever was named.
PROBE = """
import json, platform, sys, sysconfig
try:
    from importlib.metadata import distributions
    packages = {str(found.metadata["Name"]): found.version for found in distributions()}
except ImportError:
    packages = {}
print(json.dumps({
    "executable": sys.executable,
    "implementation": platform.python_implementation(),
    "release": list(sys.version_info[:3]),
    "version": sys.version,
    "free_threaded": bool(sysconfig.get_config_var("Py_GIL_DISABLED")),
    "config_args": sysconfig.get_config_var("CONFIG_ARGS") or "",
    "environment": sys.prefix if sys.prefix != getattr(sys, "base_prefix", sys.prefix) else "",
    "packages": packages,
}))
"""


@dataclass(frozen=True)
class Foreign(Installed):
    """A Python that is not the book's. called: how this run calls it."""

    called: str

    @property
    def label(self) -> str:
        return self.called

    name = label


def found(named) -> dict[str, Installed]:
    """Return what is named, by the label that it gets, in the order given. Raises UserError if one cannot be
    measured."""
    pythons: dict[str, Installed] = {}
    for word in map(str, named):
        if word in BY_LABEL and word not in pythons:
            try:
                pythons[word] = load(BY_LABEL[word])
                continue
            except UserError:
                pass  # it may still be a name on PATH
        python = executable(word)
        facts = probed(python, word)
        # What a script such as pyenv's leads to, so that tools see the process itself.
        python = Path(facts["executable"] or python)
        version = ".".join(map(str, facts["release"])) + ("t" if facts["free_threaded"] else "")
        folder = Path(word).expanduser()
        # Not where a link leads to: what was typed is its name.
        named = folder.absolute() if folder.is_dir() else Path(facts["environment"])
        # A virtual environment's name; its parent's, where it is called as they all are.
        named = named.parent if named.name in (".venv", "venv", "env", ".env") else named
        label = free(named.name or version, pythons)
        text = {name: plain(facts[name]) for name in ("version", "config_args")}
        packages = {plain(name): plain(release) for name, release in facts["packages"].items()}
        kind = Interpreter(".".join(map(str, facts["release"][:2])), facts["free_threaded"])
        described = {**text, "route": "named", "stamp": str(python), "packages": packages}
        pythons[label] = Foreign(kind, python, described, label)
    return pythons


def executable(word: str) -> Path:
    """The executable that a word names. Raises UserError if there is none."""
    path = Path(word).expanduser()
    try:
        # As it was typed: a Path drops the ./ that keeps it from being looked up on PATH.
        program = shutil.which(path / "bin" / "python" if path.is_dir() else os.path.expanduser(word))
    except PermissionError:
        raise UserError(f"--python names {word!r}, which this user may not read: name another one.") from None
    if program:
        return Path(program).absolute()
    what = "a folder without bin/python" if path.is_dir() else "neither a program nor a folder"
    if word in BY_LABEL:
        what += ", and not set up in this folder (`python3 ffilab/bootstrap.py kernels` does that in the book's clone)"
    raise UserError(
        f"--python names {word!r}, which is {what}: name an executable, one on PATH, or the folder of a virtual "
        "environment."
    )


def probed(python: Path, word: str) -> dict:
    """What a Python says of itself. Raises UserError if it is none that can be measured."""
    # -I: nothing of the folder where it is started, such as a json.py, is taken for a module of Python's.
    command, said = [python, "-I", "-c", PROBE], ""
    try:
        answer = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, stdin=subprocess.DEVNULL)
        said = answer.stderr.strip()
        facts = json.loads(answer.stdout)
    except (OSError, ValueError, subprocess.TimeoutExpired) as error:
        said = said.splitlines()[-1] if said else "" if isinstance(error, ValueError) else str(error)
        # What is no Python may say our own words back.
        because = f" ({said})" if 0 < len(said) < LONGEST_SAID else ""
        raise UserError(f"{word} does not answer as a Python does{because}: name another one with --python.") from None
    release = ".".join(map(str, facts["release"]))
    if facts["implementation"] != "CPython":
        raise UserError(f"{word} is {facts['implementation']}, and only CPython is measured: name a CPython.")
    if tuple(facts["release"]) < OLDEST:
        oldest = ".".join(map(str, OLDEST))
        raise UserError(f"{word} is Python {release}, and the oldest that is measured is {oldest}: name a newer one.")
    return facts


def free(label: str, taken) -> str:
    """The label, numbered if another Python has it already."""
    number = 2
    found = label
    while found in taken:
        found, number = f"{label} ({number})", number + 1
    return found


def plain(text: str) -> str:
    """On one line and without markup, as a record wants it."""
    return " ".join(str(text).translate(str.maketrans("<>`", "   ")).split())


def pool(pythons: dict[str, Installed]) -> Pool:
    """What each restart may draw: linked layouts of the book's own, where some are at hand, and one layout of any
    other."""
    at_hand = Path(settings.told("layouts") or layouts.OF_LAB)
    linked = layouts.read_pool(at_hand) if (at_hand / layouts.DESCRIPTION).exists() else {}
    found = {}
    for label, python in pythons.items():
        if isinstance(python, Foreign):
            # Its statements speak of no folder of ours.
            found[label] = [Layout(label, 0, AS_INSTALLED, 0, 1, str(python.python), BUILT)]
        else:
            found[label] = linked.get(label) or [layouts.as_installed(python)]
    return found
