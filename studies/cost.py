"""`python3 ffilab/bootstrap.py study cost`: what a wheel costs whoever makes it. Seconds to compile, clean and after
one changed line, memory of the compiler, bytes; by tool, form and number of bound functions. And which wheel loads
where (book/evidence/cost.json; the page shows wheel_cost.json, which is made of it).

The functions are those of nanobind's benchmark: six arguments, of six types in every order. Each project in `bound` is
built as its tool's manual says, by the hook that pip calls (PEP 517). The benchmark's own commands are run beside.
"""

import itertools
import json
import os
import random
import secrets
import shutil
import subprocess
import tempfile
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import jinja2

from ffilab.run import machine
from ffilab.run.budget import BUDGETS
from ffilab.run.errors import UserError
from ffilab.run.paths import LOGS
from ffilab.run.progress import say, step
from ffilab.run.subprocesses import group
from ffilab.setup.catalogue import BY_LABEL, GIL
from ffilab.setup.installed import Installed, load, present
from ffilab.setup.interpreters import uv
from ffilab.setup.native import CRATES, last_error, restore_cargo_lock
from notebooks.boundary.looks import stripped
from studies import kept
from studies.cost_results import SIZES, table
from studies.kept import without_folders

PROJECTS = Path(__file__).with_name("bound")
TYPES = {"uint16_t": "u16", "int32_t": "i32", "uint32_t": "u32", "int64_t": "i64", "uint64_t": "u64", "float": "f32"}
# Of what its own benchmark binds: all functions, and of the classes as many as its loop reaches.
PUBLISHED = {"functions": 720, "classes": 252}
FORMS_OF = 100  # functions of a form that is compared with its tool's usual one
LIMIT_S = 1800
# Of the first function for 1 to 6, before its line was changed and after.
ANSWERS = ["21.0", "22.0"]


@dataclass(frozen=True)
class Row:
    """A way to build one of the projects: options of its backend and variables, for a build with the GIL and for one
    without."""

    project: str
    options: dict = field(default_factory=dict)
    options_t: dict | None = None
    oldest: str = ""

    def settings(self, python: Installed) -> dict:
        is_other = python.interpreter.free_threaded and self.options_t is not None
        return self.options_t if is_other else self.options

    def variables(self, python: Installed) -> dict[str, str]:
        """Where files that several versions can load are asked for: the first of them. Before 3.15t there are none
        without the GIL."""
        if not self.oldest or python.label in ("3.13t", "3.14t"):
            return {}
        return {"OLDEST": "cp315" if python.interpreter.free_threaded else self.oldest}


def cmake(form: str, py_api: str) -> dict:
    return {"cmake.define.FORM": form, "wheel.py-api": py_api}


SPLIT = "BACKEND_MODULE;nanobind_backend"
USUAL = {
    "C API": Row("c_api"),
    "cffi": Row("cffi"),
    "Cython": Row("cython"),
    "nanobind": Row("nanobind"),
    "pybind11": Row("pybind11"),
    "PyO3": Row("pyo3"),
}
STABLE = {
    "C API, stable ABI": Row("c_api", oldest="cp313"),
    "cffi, stable ABI": Row("cffi", oldest="cp313"),
    "Cython, stable ABI": Row("cython", oldest="cp313"),
    "nanobind, stable ABI": Row("nanobind", cmake("STABLE_ABI", "cp312"), {}),
    "nanobind, split": Row("nanobind", cmake(SPLIT, "cp313"), cmake(SPLIT, "cp315t")),
    "PyO3, stable ABI": Row("pyo3", {"build-args": "--features abi3"}, {"build-args": "--features abi3t"}),
}
OTHERS = {
    "nanobind, for speed": Row("nanobind", cmake("NOMINSIZE", "")),
    "pybind11, without LTO": Row("pybind11", {"cmake.define.FORM": "NO_EXTRAS"}),
    "PyO3, fat LTO": Row("pyo3", {"build-args": "--profile fat"}),
}
# Does it compile? It has no form for this.
REFUSED = {"pybind11, stable ABI": Row("pybind11", {"cmake.define.CMAKE_CXX_FLAGS": "-DPy_LIMITED_API=0x030D0000"})}
ROWS = USUAL | STABLE | OTHERS | REFUSED


def functions(count: int, is_changed: bool) -> list[dict]:
    """The functions, in the order of the benchmark. is_changed: the first one adds one more."""
    made = []
    for number, types in enumerate(itertools.islice(itertools.permutations(TYPES), count)):
        arguments = list(zip(types, "abcdef"))
        rust = [(TYPES[type], name) for type, name in arguments]
        more = " + 1" if is_changed and not number else ""
        made.append(
            {
                "name": f"test_{number:04}",
                "arguments": arguments,
                "sum": " + ".join("abcdef") + more,
                "rust": rust,
                "rust_sum": " + ".join(f"{name} as f32" for _, name in rust) + more.replace("1", "1.0"),
            }
        )
    return made


def write(project: str, folder: Path, count: int, is_changed: bool = False, **values) -> None:
    """Fill the templates of a project. What is the same as before is left alone, as by an editor."""
    shutil.copytree(PROJECTS / project, folder, ignore=shutil.ignore_patterns("*.j2"), dirs_exist_ok=True)
    loader = jinja2.FileSystemLoader(PROJECTS / project)
    templates = jinja2.Environment(loader=loader, trim_blocks=True, undefined=jinja2.StrictUndefined)
    for name in templates.list_templates(["j2"]):
        path = folder / name.removesuffix(".j2")
        text = templates.get_template(name).render(functions=functions(count, is_changed), **values)
        if not path.exists() or path.read_text() != text:
            path.write_text(text)


# [measured]
MEASURED = """
import json, resource, sys, time
began = time.monotonic()
{statement}
seconds = time.monotonic() - began
spent = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
unit = 1 if sys.platform == "darwin" else 1024
print(json.dumps({{
    "seconds": round(seconds, 2),
    "processor": round(sum(one.ru_utime + one.ru_stime for one in spent), 2),
    "mib": round(max(one.ru_maxrss for one in spent) * unit / 2**20),
}}))
"""


def measured(python: Installed, statement: str, folder: Path, variables: dict[str, str]) -> dict:
    """Run Python source in a fresh process. Seconds; seconds of processors; MiB of the largest of its processes."""
    log = LOGS / "study-cost.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    path = f"{python.python.parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, **variables}
    # Started by a small shell: Linux counts the memory of who starts a process as its own (exec keeps the high-water
    # mark).
    shell = ["sh", "-c", '"$@"; exit $?', "sh"]
    command = [*shell, python.python, "-P", "-c", MEASURED.format(statement=statement)]
    options = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True, "errors": "replace"}
    with group(command, cwd=folder, env=environment, **options) as process:
        said, _ = process.communicate(timeout=LIMIT_S)
    log.write_text(said)
    if process.returncode:
        raise UserError(without_folders(last_error(log)))
    return json.loads(said.splitlines()[-1])


# [/measured]


def make(row: str, python: Installed, folder: Path, **variables) -> dict:
    """Build a wheel in a folder that may hold the last build, by the hook of its backend."""
    backend = {"pyo3": "maturin", "nanobind": "scikit_build_core.build", "pybind11": "scikit_build_core.build"}
    hook = f"from {backend.get(ROWS[row].project, 'setuptools.build_meta')} import build_wheel"
    variables |= ROWS[row].variables(python)
    (folder / "dist").mkdir(exist_ok=True)
    if (folder / CRATES).exists():
        restore_cargo_lock(folder)
        subprocess.run(["cargo", "fetch", "--quiet", "--locked"], cwd=folder, check=True)
        variables |= {"MATURIN_PEP517_ARGS": "--locked"}
    statement = f"{hook}\nbuild_wheel('dist', {ROWS[row].settings(python)!r})"
    return measured(python, statement, folder, variables)


def module_of(folder: Path) -> Path:
    """Unpack the newest wheel of `dist` into `loaded`; return the module in it."""
    wheel = max((folder / "dist").glob("*.whl"), key=lambda path: path.stat().st_mtime)
    with zipfile.ZipFile(wheel) as packed:
        packed.extractall(folder / "loaded")
    (module,) = (folder / "loaded").rglob("*.so")
    return module


def answer(row: str, python: Installed, folder: Path) -> str:
    """What the first function of a module in `folder` adds up, or the last line of what went wrong."""
    module = "bound.lib" if ROWS[row].project == "cffi" else "bound"
    source = (
        f"import sys; sys.path.insert(0, {str(folder)!r}); import bound; print({module}.test_0000(1, 2, 3, 4, 5, 6))"
    )
    done = subprocess.run([python.python, "-I", "-c", source], capture_output=True, text=True, timeout=60)
    return (done.stdout or done.stderr or f"exit {done.returncode}").strip().splitlines()[-1]


def one(row: str, count: int, python: Installed, folder: Path) -> dict:
    """Build a wheel clean, change a line, build it again; look into it, and call it both times."""
    write(ROWS[row].project, folder, count)
    clean = make(row, python, folder)
    module = module_of(folder)
    found = {
        "row": row,
        "functions": count,
        "clean": clean,
        "built": module.stat().st_size,
        "stripped": stripped(module),
    }
    is_split = row == "nanobind, split"  # its library may not be here, and is not what is measured
    said = [answer(row, python, folder / "loaded")]
    write(ROWS[row].project, folder, count, is_changed=True)
    found["again"] = make(row, python, folder)
    module_of(folder)
    said.append(answer(row, python, folder / "loaded"))
    if said != ANSWERS and not is_split:
        raise UserError(f"{row}, {count} functions: {ANSWERS} were to come out, and {said} did.")
    return found


def published(tool: str, kind: str, count: int, python: Installed, folder: Path) -> dict:
    """Compile functions or classes by the commands of nanobind's benchmark, to the smallest size, with this machine's
    compiler."""
    asked = (
        "import sysconfig, nanobind, pybind11; "
        "print(sysconfig.get_path('include'), nanobind.include_dir(), pybind11.get_include(), sep='\\n')"
    )
    folders = subprocess.check_output([python.python, "-c", asked], text=True).split("\n")[:3]
    write("published", folder, count, library=tool, classes=kind == "classes")
    compiler = os.environ.get("CXX", "c++")
    options = [
        "-march=native",
        "-shared",
        "-std=c++17",
        "-Wno-deprecated-declarations",
        "-fPIC",
        "-fno-stack-protector",
        "-Os",
        "-g0",
    ]
    source = "made.cpp" if tool == "Cython" else "bound.cpp"
    commands = [[compiler, *options, *(f"-I{one}" for one in folders), "-DNB_SHARED", source, "-o", "bound.so"]]
    if tool == "Cython":
        commands.insert(0, ["cython", "-3", "--cplus", "bound.pyx", "-o", source])
    statement = f"import subprocess\nfor command in {commands!r}: subprocess.run(command, check=True)"
    spent = measured(python, statement, folder, {})
    return {"row": tool, "kind": kind, "count": count, **spent, "stripped": stripped(folder / "bound.so")}


def tried(interpreters: list[Installed], rows: dict[str, Row], scratch: Path) -> Iterator[dict]:
    """Build a wheel of each row on each interpreter, and let each of them install and call it."""
    for builder, row in itertools.product(interpreters, rows):
        with step(f"a wheel: {row}, {builder.label}"):
            folder = scratch / f"{row}-{builder.label}"
            write(rows[row].project, folder, SIZES[0])
            found = {"row": row, "on": builder.label, "wheel": "", "loads": []}
            try:
                make(row, builder, folder, CARGO_TARGET_DIR=str(scratch / "cargo"))
            except UserError as error:
                yield {**found, "why": str(error)}
                continue
            (wheel,) = (folder / "dist").glob("*.whl")
            found["wheel"] = "-".join(wheel.stem.split("-")[2:4])
            for user in interpreters:
                target = folder / user.label
                put = [uv(), "pip", "install", "--quiet", "--no-config", "--no-deps", "--no-index"]
                command = [*put, "--python", user.python, "--target", target, wheel]
                if subprocess.run(command, capture_output=True).returncode:
                    continue
                said = answer(row, user, target)
                if said == ANSWERS[0]:
                    found["loads"].append(user.label)
                else:
                    found["why"] = without_folders(said)
            yield found


def session(python: Installed, draw: random.Random, is_result: bool, scratch: Path) -> Iterator[tuple[str, dict]]:
    """Everything once, in random order, in fresh folders: what was measured, and where it is kept. A smoke test: the
    least of each."""
    usual = USUAL if is_result else dict(list(USUAL.items())[:2])
    jobs = [(one, row, count) for row in usual for count in (SIZES if is_result else SIZES[:1])]
    jobs += [(one, row, FORMS_OF) for row in (STABLE | OTHERS if is_result else {}) if row != "cffi, stable ABI"]
    tools = ("nanobind", "pybind11", "Cython") if is_result else ("nanobind",)
    jobs += [(published, tool, kind, PUBLISHED[kind] if is_result else 2) for tool in tools for kind in PUBLISHED]
    for number, (measure, *what) in enumerate(draw.sample(jobs, len(jobs))):
        with step(f"{number + 1} of {len(jobs)}: {' '.join(map(str, what))}"):
            folder, before = scratch / str(number), {"load": round(os.getloadavg()[0], 2)}
            yield "published" if measure is published else "runs", {**measure(*what, python, folder), **before}
            shutil.rmtree(folder)


def main(budget: str, sessions: int = 1) -> None:
    """Add sessions to those that are kept; what is measured is kept as soon as it is there."""
    path, python, is_result = kept.file("cost", budget), load(BY_LABEL[GIL]), BUDGETS[budget].is_result
    packages = {
        name: python.facts["packages"].get(name) for name in ("cffi", "cython", "maturin", "nanobind", "pybind11")
    }
    for number in range(sessions):
        say(f"  session {number + 1} of {sessions}")
        before, draw = kept.read_sessions(path), random.Random(secrets.randbits(32))
        found = {"machine": machine.facts(), "packages": packages, "runs": [], "published": []}
        with tempfile.TemporaryDirectory() as scratch:
            for place, measured_one in session(python, draw, is_result, Path(scratch)):
                found[place].append(measured_one)
                kept.write_sessions(path, [*before, found])
            if not number:
                rows = USUAL | STABLE | REFUSED if is_result else dict(list(USUAL.items())[:2])
                found["wheels"] = []
                for wheel in tried(present() if is_result else [python], rows, Path(scratch)):
                    found["wheels"].append(wheel)
                    kept.write_sessions(path, [*before, found])
    kept.file("wheel_cost", budget).write_text(json.dumps(table(kept.read_sessions(path)), indent=1) + "\n")
