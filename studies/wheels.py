"""`python3 ffilab/bootstrap.py study wheels`: a wheel against the same wheel with 1 % more instructions in its one C
function, and against a copy of itself: how often is which called different, and in how many seconds? By `ffilab time`,
and by hyperfine and pyperf as their manuals say (book/evidence/wheels.json).
"""

import json
import random
import secrets
import shutil
import subprocess
import tempfile
import time
import zipfile
from pathlib import Path

from scipy import stats

from ffilab.judge.estimates import Share
from ffilab.measure import instructions
from ffilab.measure.plan import Arm
from ffilab.page.evidence import WHEELS_LEVEL, tools
from ffilab.run import machine
from ffilab.run.budget import BUDGETS
from ffilab.run.errors import UserError
from ffilab.run.progress import say, step
from ffilab.setup.catalogue import BY_LABEL, GIL
from ffilab.setup.installed import Installed, load, soabi
from ffilab.setup.interpreters import uv
from ffilab.yours.comparing import compare
from studies import kept

# [wheel]
SOURCE = """
#include <Python.h>
static PyObject *mix(PyObject *module, PyObject *nothing) {
    unsigned long hash = 14695981039346656037UL;
    for (int step = 0; step < STEPS; step++) hash = (hash ^ (unsigned long)step) * 1099511628211UL;
    return PyLong_FromUnsignedLong(hash);
}
static PyMethodDef methods[] = {{"mix", mix, METH_NOARGS, ""}, {0}};
static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "mixing", "", -1, methods};
PyMODINIT_FUNC PyInit_mixing(void) { return PyModule_Create(&module); }
"""
STEPS = {"plain": 1000, "copy": 1000, "more": 1011}


def wheel(folder: Path, python: Installed, steps: int) -> Path:
    """Compile the extension and pack it. Equal steps make equal bytes."""
    folder.mkdir(parents=True)
    asked = "import sysconfig; print(sysconfig.get_path('include'))"
    include = subprocess.check_output([python.python, "-c", asked], text=True).strip()
    (folder / "mixing.c").write_text(SOURCE)
    built = folder / f"mixing.{soabi(python)}.so"
    options = ["-O2", "-shared", "-fPIC", f"-DSTEPS={steps}", f"-I{include}", "-o", built.name, "mixing.c"]
    subprocess.run([*machine.compiler_command(), *options], cwd=folder, check=True)
    path, about = folder / "mixing-1-py3-none-any.whl", "mixing-1.dist-info"
    with zipfile.ZipFile(path, "w") as packed:
        packed.write(built, built.name)
        packed.writestr(f"{about}/METADATA", "Metadata-Version: 2.1\nName: mixing\nVersion: 1\n")
        packed.writestr(f"{about}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        packed.writestr(f"{about}/RECORD", "")
    return path


# [/wheel]


def environments(folder: Path, python: Installed) -> None:
    """A fresh environment for each wheel, with the wheel in it and pyperf beside it: other pages of memory in each
    round."""
    (pyperf,) = python.python.parent.parent.glob("lib/python*/site-packages/pyperf")
    for name, steps in STEPS.items():
        packed = wheel(folder / "wheels" / name, python, steps)
        made = folder / name
        subprocess.run([uv(), "venv", "--quiet", "--python", python.python.resolve(), made], check=True)
        subprocess.run([uv(), "pip", "install", "--quiet", "--no-index", "--python", made, packed], check=True)
        (site,) = made.glob("lib/python*/site-packages")
        shutil.copytree(pyperf, site / "pyperf")
        shutil.copytree(next(pyperf.parent.glob("psutil")), site / "psutil")


def counted(folder: Path) -> dict[str, float]:
    """Instructions of a call, by wheel, where callgrind can count them: how much more is "1 % more"?"""
    if instructions.available():
        return {}
    arms = [
        Arm(
            name,
            "mix()",
            f"import sys\nsys.path.insert(0, {str(folder / 'wheels' / name)!r})\nfrom mixing import mix",
            group=name,
        )
        for name in STEPS
    ]
    return {name: count for (_, name), count in instructions.per_call([GIL], arms).items()}


# [rows]
SETUP, CALL = "from mixing import mix", "mix()"
# hyperfine times programs: this one calls for some tenths of a second.
PROGRAM = "from mixing import mix\nfor _ in range(200_000): mix()"


def ours(folder: Path, other: str, is_result: bool) -> str:
    """`ffilab time --to 0.4% --time 2m`, whose verdict is that the interval does not hold 1."""
    pythons = [folder / "plain", folder / other]
    result = compare([Arm(CALL, CALL, SETUP)], pythons, to=0.004, seconds=120 if is_result else 0, quiet=True)
    ((found),) = result.ratios.values()
    return verdict(found.excludes(1), found.value > 1)


def pyperf(folder: Path, other: str, is_result: bool) -> str:
    """`pyperf timeit` in each environment, then `pyperf compare_to`, whose verdict is its own."""
    files = []
    for name in ("plain", other):
        files.append(folder / f"pyperf-{name}-{secrets.token_hex(4)}.json")
        fast = [] if is_result else ["--fast"]
        answer(
            [
                folder / name / "bin/python",
                "-m",
                "pyperf",
                "timeit",
                "--quiet",
                *fast,
                "-s",
                SETUP,
                CALL,
                "-o",
                files[-1],
            ]
        )
    said = answer([folder / "plain/bin/python", "-m", "pyperf", "compare_to", *files])
    return verdict("not significant" not in said.lower(), "slower" in said)


def hyperfine(folder: Path, other: str, is_result: bool) -> str:
    """`hyperfine --warmup 3` with both programs; the verdict is that of its script for a test, Welch's t at 5 %."""
    out = folder / f"hyperfine-{secrets.token_hex(4)}.json"
    programs = [f"{folder / name / 'bin/python'} -c '{PROGRAM}'" for name in ("plain", other)]
    answer(["hyperfine", "--warmup", "3", *([] if is_result else ["--runs", "2"]), "--export-json", out, *programs])
    plain, another = (run["times"] for run in json.loads(out.read_text())["results"])
    p = stats.ttest_ind(another, plain, equal_var=False).pvalue
    return verdict(p < 0.05, sum(another) / len(another) > sum(plain) / len(plain))


def verdict(differs: bool, slower: bool) -> str:
    return ("slower" if slower else "faster") if differs else "no difference"


# [/rows]


def answer(command: list) -> str:
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise UserError(f"{command[0]} failed: {done.stderr.strip()[-200:]}")
    return done.stdout


def round_of(folder: Path, draw: random.Random, is_result: bool, rows: dict) -> list[dict]:
    """Every tool on both pairs, in random order, in environments of this round."""
    runs = []
    for row, other in draw.sample([(row, other) for row in rows for other in ("copy", "more")], 2 * len(rows)):
        began = time.monotonic()
        with step(f"{row}: {other}"):
            said = rows[row](folder, other, is_result)
        runs.append({"row": row, "other": other, "said": said, "seconds": round(time.monotonic() - began, 1)})
    return runs


def report(rounds: list[dict]) -> str:
    """Of each tool: how often the slower wheel was found, how often the copy was called different, and the seconds of a
    run."""
    return "\n".join(
        f"{tool['name']}: 1 % more found in {events(tool['right'])}, the copy called different in "
        f"{events(tool['wrong'])}; "
        f"{tool['seconds']:.0f} s a run"
        for tool in tools(rounds)
    )


def events(share: Share) -> str:
    interval = share.at(WHEELS_LEVEL)
    return f"{share.events} of {share.trials} runs [{interval.low:.0%}, {interval.high:.0%}]"


def main(budget: str, sessions: int = 1) -> None:
    """Add rounds to those that are kept."""
    rows = {"ffilab time": ours, "pyperf": pyperf, "hyperfine": hyperfine}
    if not shutil.which("hyperfine"):
        say("  hyperfine is not on PATH, and is left out")
        del rows["hyperfine"]
    path, python, is_result = kept.file("wheels", budget), load(BY_LABEL[GIL]), BUDGETS[budget].is_result
    for number in range(sessions):
        say(f"  round {number + 1} of {sessions}")
        draw = random.Random(secrets.randbits(32))
        with tempfile.TemporaryDirectory() as scratch:
            environments(Path(scratch), python)
            facts = {"machine": machine.facts(), "instructions": counted(Path(scratch))}
            runs = round_of(Path(scratch), draw, is_result, rows)
        kept.write_sessions(path, [*kept.read_sessions(path), {**facts, "runs": runs}])
    say(report(kept.read_sessions(path)))
