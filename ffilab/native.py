"""Build every project under native/ with its own canonical tool.

What a project is built with is read off its files: a Makefile with a plain
library, a pyproject.toml with a Python extension (once per kernel), a
Cargo.toml without pyproject.toml with a Rust library.

Outputs: `_build/native/<corner>/` for libraries, and for extensions
`_build/native/<corner>/<SOABI>/`, the tag that keeps interpreters apart.
"""

import hashlib
import os
import shutil
import subprocess
from pathlib import Path

from ffilab.errors import UserError
from ffilab.kernels import Kernel
from ffilab.paths import LOGS, NATIVE, NATIVE_OUT
from ffilab.progress import say, step
from ffilab.provision.build import compiler
from ffilab.provision.interpreters import uv
from ffilab.subprocesses import explain_os_errors, logged, tail


def projects(root: Path = NATIVE) -> list[Path]:
    """Folders that hold a project, sorted."""
    markers = ("Makefile", "pyproject.toml", "Cargo.toml")
    return sorted({marker.parent for name in markers for marker in root.rglob(name) if "build" not in marker.parts})


def build_all(kernels: list[Kernel], root: Path = NATIVE, out: Path = NATIVE_OUT) -> None:
    """Build what has changed. Raises UserError naming the missing tool or the failed project."""
    with explain_os_errors(str(out)), step("native projects") as bar:
        found = projects(root)
        for number, project in enumerate(found):
            bar.update(number / len(found), str(project.relative_to(root)))
            build(project, kernels, out / project.relative_to(root).parts[0])


def build(project: Path, kernels: list[Kernel], out: Path) -> None:
    """Build one project into `out`."""
    if (project / "pyproject.toml").exists():
        need_compiler_and_rust(project)
        for kernel in kernels:
            _extension(project, kernel, out)
    elif (project / "Cargo.toml").exists():
        need_compiler_and_rust(project)
        _run(project, ["cargo", "build", "--release", "--locked", "--target-dir", str(out / "cargo")], "cargo")
    else:
        _run(project, ["make", "--no-print-directory", f"OUT={out}", f"CC={compiler()}"], "make")


def need_compiler_and_rust(project: Path) -> None:
    """Raises UserError if the project needs a compiler that this machine lacks."""
    compiler()
    if (project / "Cargo.toml").exists() and not shutil.which("cargo"):
        raise UserError(
            f"{project.name} is written in Rust, and there is no cargo here: run `make doctor` for the command."
        )


def _extension(project: Path, kernel: Kernel, out: Path) -> None:
    abi = subprocess.run(
        [kernel.python, "-I", "-c", "import sysconfig; print(sysconfig.get_config_var('SOABI'))"],
        capture_output=True, text=True, check=True,
    ).stdout.strip()  # fmt: skip
    target = out / abi
    digest = hashlib.sha256(kernel.facts["stamp"].encode())
    for source in sorted(p for p in project.rglob("*") if p.is_file() and "build" not in p.parts):
        digest.update(source.read_bytes())
    stamp = target / f".{project.name}-{digest.hexdigest()[:16]}"
    if stamp.exists():
        return
    for old in target.glob(f".{project.name}-*"):
        old.unlink()
    # Built from a copy: setuptools and its like write into the folder that they build.
    copy = out / "source" / f"{project.name}-{kernel.name}"
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(project, copy)
    _run(
        project,
        [uv(), "pip", "install", "--no-config", "--no-deps", "--no-build-isolation", "--no-index", "--reinstall",
         "--python", str(kernel.python), "--target", str(target), str(copy)],
        f"the build for {kernel.name}",
    )  # fmt: skip
    stamp.touch()


def _run(project: Path, command: list[str], what: str) -> None:
    log = LOGS / f"native-{project.name}.log"
    # Whoever calls us may be a make; its flags are not ours.
    environment = {k: v for k, v in os.environ.items() if k not in ("MAKEFLAGS", "MAKELEVEL", "MFLAGS")}
    if logged(command, log, cwd=project, env=environment):
        raise UserError(f"native/{project.parent.name}/{project.name}: {what} failed ({tail(log)}); read {log}.")
    say(f"    {project.parent.name}/{project.name}: {what}")
