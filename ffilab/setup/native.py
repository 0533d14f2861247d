"""Build every project under native/ with its own canonical tool.

What a project is built with is read off its files: a Makefile with a plain
library, a pyproject.toml with a Python extension (once per interpreter), a
Cargo.toml without pyproject.toml with a Rust library.

Outputs: `_build/native/<chapter>/` for libraries, and for extensions
`_build/native/<chapter>/<SOABI>/`, the tag that keeps interpreters apart; and in
`links` beside them how each shared object was linked (`native_links.py`).

Without a C compiler nothing can be built. What fails, or what its tool does not support on an interpreter, is left out:
`missing-<project>.txt` beside the others says why, and whoever loads it shows that reason.
"""

import hashlib
import os
import re
import shutil
import tomllib
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

from ffilab.run.errors import UserError
from ffilab.run.machine import COMPILER, compiler, compiler_version
from ffilab.run.paths import BY_PRODUCTS, LOGS, NATIVE, NATIVE_OUT, ROOT, has_space
from ffilab.run.progress import say, step
from ffilab.run.subprocesses import end_leftovers, explain_os_errors, logged, tail, without_make
from ffilab.setup import native_links
from ffilab.setup.installed import Installed, soabi
from ffilab.setup.interpreters import uv

# What a project is left out for where that is no failure: the README says so.
NO_CARGO = "is written in Rust, and there is no cargo here"


def projects(root: Path = NATIVE) -> list[Path]:
    """Folders that hold a project, sorted."""
    markers = ("Makefile", "pyproject.toml", "Cargo.toml")
    found = {marker for name in markers for marker in root.rglob(name)}
    return sorted({one.parent for one in found if not BY_PRODUCTS & set(one.relative_to(root).parts)})


def build_all(
    interpreters: list[Installed],
    root: Path = NATIVE,
    out: Path = NATIVE_OUT,
    chapters: list[str] | None = None,
    slow: bool = True,
) -> list[str]:
    """Build what has changed, on all cores; return one line for each project that failed.

    chapters: the folders of `root` to build; all of them, if None. slow: also what says that it is slow to build.
    Raises UserError without a C compiler.
    """
    compiler()
    chosen = []
    for project in projects(root):
        # A sample that a chapter copies and builds itself: its Makefile would build in the source folder.
        makefile = project / "Makefile"
        is_sample = makefile.exists() and "$(OUT)" not in makefile.read_text()
        is_asked_for = chapters is None or project.relative_to(root).parts[0] in chapters
        if is_asked_for and not is_sample and (slow or not ours(project).get("slow-to-build")):
            chosen.append(project)
    work = [(project, []) for project in chosen if not is_extension(project)]
    work += [(project, [interpreter]) for interpreter in interpreters for project in chosen if is_extension(project)]
    failures = []
    with (
        explain_os_errors(str(out)),
        step("native projects") as bar,
        ThreadPoolExecutor(os.cpu_count()) as pool,
    ):
        builds = {
            pool.submit(build, project, wanted, out / project.relative_to(root).parts[0]): (project, wanted)
            for project, wanted in work
        }
        try:
            for number, done in enumerate(as_completed(builds), 1):
                failures += done.result()
                project, wanted = builds[done]
                name = " ".join([str(project.relative_to(root)), *(interpreter.label for interpreter in wanted)])
                bar.update(number / len(work), name)
        except BaseException:
            # The other builds end with a full disk, and with Ctrl-C.
            pool.shutdown(wait=False, cancel_futures=True)
            end_leftovers()
            raise
    for failure in failures:
        say(f"    left out: {failure}")
    return failures


def is_extension(project: Path) -> bool:
    """Is the project built for each interpreter?"""
    return (project / "pyproject.toml").exists()


def build(project: Path, interpreters: list[Installed], out: Path) -> list[str]:
    """Build one project into `out`; returns one line for each interpreter on which an extension failed, or for what is
    none."""
    make_plain = _crate if (project / "Cargo.toml").exists() else _libraries
    failures = []
    for interpreter in interpreters if is_extension(project) else [None]:
        target = out / soabi(interpreter) if interpreter else out
        target.mkdir(parents=True, exist_ok=True)
        note = target / f"missing-{project.name}.txt"
        try:
            if interpreter is None:
                make_plain(project, out)
            elif reason := unsupported(project, interpreter):
                note.write_text(reason)
                continue
            else:
                _extension(project, interpreter, out, target)
            # For the records of what is measured with it.
            (out / COMPILER).write_text(compiler_version())
            note.unlink(missing_ok=True)
        except UserError as error:
            note.write_text(str(error))
            failures.append(str(error))
    return failures


def _libraries(project: Path, out: Path) -> None:
    """Build a project with a Makefile: all of it, if other compilers than the last time are used."""
    need_compilers(project)
    records = native_links.records_of(out, project.name)
    environment = native_links.environment(out, records)
    stamp = Path(environment["CC"]).parent / f".{project.name}"
    # Seen from the project, its outputs have no space in their path unless the reader put one between the two.
    shown_out = os.path.relpath(out, project) if has_space(out) else out
    command = ["make", "--no-print-directory", f"OUT={shown_out}", f"CC={environment['CC']}"]
    command += [] if stamp.exists() else ["--always-make"]
    # What is killed may leave half a library, which make takes for a whole one: the next run makes all anew.
    stamp.unlink(missing_ok=True)
    _run(project, command, "make", environment)
    native_links.settle(records)
    stamp.touch()


def _crate(project: Path, out: Path) -> None:
    """Build a library or program in Rust into `out/cargo/<project>/release`."""
    need_compilers(project)
    if (project / CRATES).exists():
        restore_cargo_lock(project)
    records = native_links.records_of(out, project.name)
    command = ["cargo", "build", "--release", "--locked", "--target-dir", str(out / "cargo" / project.name)]
    _run(project, command, "cargo", native_links.environment(out, records))
    native_links.settle(records)


# In a file that says how a project is built: there is C++ to compile.
RECIPES = ("Makefile", "CMakeLists.txt", "setup.py", "build_library.py", "Cargo.toml", "build.rs")
SAYS_CXX = re.compile(r"\bc\+\+|\.cpp\b|cxx", re.IGNORECASE)


def has_cxx(project: Path) -> bool:
    """Is a part of the project written in C++?"""
    recipes = [layer / name for layer in layers(project) for name in RECIPES]
    return any(SAYS_CXX.search(recipe.read_text()) for recipe in recipes if recipe.exists())


def need_compilers(project: Path) -> None:
    """Raises UserError if the project needs a compiler that this machine lacks."""
    compiler()
    if has_cxx(project) and not shutil.which(native_links.cxx()[0]):
        raise UserError(
            f"{project.name} has parts in C++, and there is no C++ compiler (c++, g++ or clang++) here: "
            "run `make doctor` for the command."
        )
    if (project / "Cargo.toml").exists() and not shutil.which("cargo"):
        raise UserError(f"{project.name} {NO_CARGO}: run `make doctor` for the command.")


def ours(project: Path) -> dict:
    """Read a project's settings for this book: `tool.hidden-corners` in pyproject.toml, else
    `package.metadata.hidden-corners` in Cargo.toml."""
    if is_extension(project):
        return tomllib.loads((project / "pyproject.toml").read_text()).get("tool", {}).get("hidden-corners", {})
    if (project / "Cargo.toml").exists():
        package = tomllib.loads((project / "Cargo.toml").read_text()).get("package", {})
        return package.get("metadata", {}).get("hidden-corners", {})
    return {}


def layers(project: Path) -> list[Path]:
    """The folders that a project is made of. It may be another one with some files of its own (`sources-of`), for
    instance another version of its tool."""
    return [project.parent / name for name in filter(None, [ours(project).get("sources-of")])] + [project]


def distribution(project: Path) -> str:
    """Return the name of a project from its pyproject.toml."""
    return tomllib.loads((project / "pyproject.toml").read_text()).get("project", {}).get("name", project.name)


def unsupported(project: Path, interpreter: Installed) -> str | None:
    """Why the project's tool does not serve this interpreter, as its pyproject.toml states it; None if it does."""
    declared = ours(project)
    if "only" in declared and interpreter.label not in declared["only"]:
        return f"made for {' '.join(declared['only'])} only"
    return declared.get("unsupported", {}).get(interpreter.label)


def stamp_of(project: Path, interpreter: Installed, target: Path) -> Path:
    """The file that is there while an extension in `target` is of these sources, this interpreter and these tools."""
    digest = hashlib.sha256(interpreter.facts["stamp"].encode() + native_links.digest().encode())
    # Sources that a project shares with its neighbours lie beside it, in `library`.
    for source in (p for folder in (project.parent / "library", *layers(project)) for p in sorted(folder.rglob("*"))):
        if source.is_file() and not BY_PRODUCTS & set(source.relative_to(project.parent).parts):
            digest.update(source.read_bytes())
    return target / f".{project.name}-{digest.hexdigest()[:16]}"


def is_built(chapter: str, interpreters: list[Installed], root: Path = NATIVE, out: Path = NATIVE_OUT) -> bool:
    """Was a chapter's native code built for these interpreters, of its sources as they are now? What could not be built
    counts as built."""
    extensions = filter(is_extension, projects(root / chapter))
    targets = [(interpreter, out / chapter / soabi(interpreter)) for interpreter in interpreters]
    return (out / chapter).exists() and all(
        stamp_of(project, interpreter, target).exists() or (target / f"missing-{project.name}.txt").exists()
        for project in extensions
        for interpreter, target in targets
    )


def _extension(project: Path, interpreter: Installed, out: Path, target: Path) -> None:
    library = project.parent / "library"
    stamp = stamp_of(project, interpreter, target)
    if stamp.exists():
        return
    need_compilers(project)
    for old in target.glob(f".{project.name}-*"):
        old.unlink()
    # Built from a copy: setuptools and its like write into the folder that they build.
    copy = out / "source" / f"{project.name}-{interpreter.name}"
    shutil.rmtree(copy, ignore_errors=True)
    ignore = shutil.ignore_patterns(*BY_PRODUCTS)
    for layer in layers(project):
        shutil.copytree(layer, copy / project.name, ignore=ignore, dirs_exist_ok=True)
    if library.exists():
        shutil.copytree(library, copy / library.name, ignore=ignore)
    environment = {"CARGO_TARGET_DIR": str(out / "cargo" / f"{project.name}-{interpreter.name}")}
    records = native_links.records_of(out, distribution(project), target.name)
    if not (project / "Cargo.toml").exists():
        # cargo links only what has changed, the other tools everything.
        shutil.rmtree(records, ignore_errors=True)
    environment |= native_links.environment(out, records)
    if (project / CRATES).exists():
        restore_cargo_lock(copy / project.name)
        environment["MATURIN_PEP517_ARGS"] = "--locked"
    command = [uv(), "pip", "install", "--no-config", "--no-deps", "--no-build-isolation", "--no-index", "--reinstall"]
    # As an address: uv would read more than a path into one with a semicolon.
    command += ["--python", str(interpreter.python), "--target", str(target), (copy / project.name).as_uri()]
    _run(project, command, f"the build for {interpreter.name}", environment)
    native_links.settle(records)
    stamp.touch()


# A Cargo.lock without the address of the registry in it.
CRATES = "crates.lock"


def restore_cargo_lock(project: Path) -> None:
    """Make Cargo.lock out of crates.lock. The checksums stay ours, the registry is the one that cargo here uses.

    Raises UserError if cargo cannot say which that is.
    """
    path = project / "Cargo.lock"
    ours = (project / CRATES).read_text()
    if path.exists() and re.sub(r"^source = .*\n", "", path.read_text(), flags=re.M) == ours:
        return
    log = LOGS / f"native-{project.name}-lock.log"
    command = ["cargo", "generate-lockfile"]
    if logged(command, log, cwd=project) and logged([*command, "--offline"], log, cwd=project):
        raise UserError(f"cargo cannot resolve the crates of {project.name} ({tail(log, 1)}): check the connection.")
    if source := re.search(r"^source = .*$", path.read_text(), re.M):
        ours = re.sub(r"^(?=checksum = )", source.group(0) + "\n", ours, flags=re.M)
    path.write_text(ours)


# What an error line of a build looks like, most telling first: gcc and clang, rustc, anything else.
ERROR_LINES = (
    re.compile(r":\d+: (fatal )?error: "),
    re.compile(r"^error(\[E\d+\])?: (?!Command|could not compile|subprocess)"),
    re.compile(r"\b(\w*Error|error)\b"),
)


def last_error(log: Path) -> str:
    """The last error line of a build log, else its last line."""
    lines = [line.strip() for line in log.read_text(errors="replace").splitlines() if line.strip()]
    for pattern in ERROR_LINES:
        if matching := [line for line in lines if pattern.search(line)]:
            return matching[-1]
    return (lines or ["no output"])[-1]


# What make and cargo say where nothing has changed.
UP_TO_DATE = re.compile(r"Nothing to be done|\A\s*Finished ")


def log_of(project: Path) -> Path:
    """The file that has what its build said."""
    return LOGS / f"native-{project.parent.name}-{project.name}.log"


def _run(project: Path, command: list[str], what: str, environment: dict[str, str]) -> None:
    log = log_of(project)
    log.unlink(missing_ok=True)
    if logged(command, log, cwd=project, env={**without_make(), **environment}):
        name = project.relative_to(ROOT) if project.is_relative_to(ROOT) else Path(NATIVE.name, *project.parts[-2:])
        raise UserError(f"{name}: {what} failed ({last_error(log)}); read {log}.")
    if not UP_TO_DATE.search(log.read_text(errors="replace")):
        say(f"    {project.parent.name}/{project.name}: {what}")
