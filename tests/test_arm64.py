"""arm64, as far as another machine can show it: native/ compiles for it without a warning, its programs start, and what
needs no interpreter of the book passes on an emulated machine (tests/arm64)."""

import json
import os
import re
import shutil
import subprocess

import pytest

from ffilab.run.paths import BY_PRODUCTS, NATIVE, ROOT
from ffilab.setup.installed import pair

C, CXX, EMULATOR = "aarch64-linux-gnu-gcc", "aarch64-linux-gnu-g++", "qemu-aarch64-static"
# Where Debian's cross compilers have the loader and the C library.
SYSTEM = "/usr/aarch64-linux-gnu"
COMPILERS = {".c": [C], ".cpp": [CXX, "-std=c++17"]}
# As its setup.py says; of 3.14t there is no such form.
LIMITED, DEFINED = "c_api_limited", "-DPy_LIMITED_API=0x030D0000"
PROJECTS = [path.parent for path in sorted(NATIVE.rglob("Makefile")) if "$(OUT)" in path.read_text(encoding="utf-8")]
SOURCES = [
    path
    for path in sorted(NATIVE.rglob("*"))
    if path.suffix in COMPILERS and not BY_PRODUCTS & set(path.relative_to(NATIVE).parts)
]
pytestmark = [
    pytest.mark.full,
    pytest.mark.skipif(
        not all(map(shutil.which, (C, CXX))),
        reason="no compiler for arm64 is here (on Debian: gcc-aarch64-linux-gnu g++-aarch64-linux-gnu)",
    ),
]


def name(path) -> str:
    return str(path.relative_to(NATIVE))


def said(command, **options) -> str:
    """What a command that must end well said."""
    answer = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **options)
    assert answer.returncode == 0, answer.stdout
    return answer.stdout


@pytest.mark.parametrize("source", SOURCES, ids=name)
def test_it_compiles_without_a_warning(source, tmp_path):
    """For both builds of CPython. Their headers are those of this machine: of 64 bits, little-endian, as arm64 is."""
    project = source.parent
    for python in pair()[:1] if project.name == LIMITED else pair():
        asked = "import sysconfig; print(sysconfig.get_path('include'), sysconfig.get_path('purelib'))"
        include, packages = said([python.python, "-I", "-c", asked]).split()
        folders = [project, *(project.parent / beside for beside in ("library", "c_api"))]
        # Others' headers may warn.
        theirs = [include, *(f"{packages}/{tool}/include" for tool in ("numpy/_core", "pybind11", "nanobind"))]
        command = [*COMPILERS[source.suffix], "-c", "-O2", "-fPIC", "-fvisibility=hidden", "-pthread"]
        command += ["-Wall", "-Wextra", "-Wno-unused-parameter", "-Wno-missing-field-initializers"]
        command += [DEFINED] if project.name == LIMITED else []
        command += [word for folder in folders for word in ("-I", folder)]
        command += [word for folder in theirs for word in ("-isystem", folder)]
        assert said([*command, "-o", tmp_path / "object.o", source]) == ""


@pytest.mark.parametrize("project", PROJECTS, ids=name)
def test_its_makefile_builds_for_arm64(project, tmp_path):
    told = said(["make", "-C", project, f"OUT={tmp_path}", f"CC={C}", f"CXX={CXX}"])
    assert "warning" not in told
    made = [path for path in tmp_path.iterdir() if path.stat().st_size]
    assert made
    for path in made:
        # The processor of an ELF file.
        assert path.read_bytes()[18:20] == b"\xb7\0", path.name


@pytest.mark.skipif(not shutil.which(EMULATOR), reason="no emulator of arm64 is here (on Debian: qemu-user-static)")
def test_the_programs_of_placement_run_under_emulation(tmp_path):
    """They place instructions by hand, in the words of each processor."""
    said(["make", "-C", NATIVE / "placement" / "programs", f"OUT={tmp_path}", f"CC={C}"])
    environment = {**os.environ, "QEMU_LD_PREFIX": SYSTEM}
    said([EMULATOR, tmp_path / "functions", "run", "64", "16", "1000"], env=environment)
    (times,) = re.findall(r"\[.*\]", said([EMULATOR, tmp_path / "loops", "time", "1"], env=environment), re.S)
    assert {row["offset"] for row in json.loads(times)} == set(range(64))


# Files whose tests measure nothing and need no interpreter of the book, as far as they were seen to pass there.
PURE = (
    *("ledger", "pack", "rules", "verdicts", "sentences", "reasons", "groups", "wording"),
    *("runs", "statistics", "controls", "evidence", "spelling", "processes"),
)
NEEDED = ("mmdebstrap", "unshare", "apt-get", EMULATOR)


@pytest.mark.timeout(2 * 3600)
@pytest.mark.skipif(
    os.geteuid() or not all(map(shutil.which, NEEDED)),
    reason=f"an emulated machine needs root, {', '.join(NEEDED)}",
)
def test_what_needs_no_interpreter_passes_on_an_emulated_machine(tmp_path):
    command = [ROOT / "tests" / "arm64", tmp_path / "machine", ".venv/bin/python", "-m", "pytest", "-m", "not full"]
    try:
        assert " passed" in said([*command, *(f"tests/test_{name}.py" for name in PURE)])
    finally:
        shutil.rmtree(tmp_path)
