"""The library that all bindings call is the same code in each of them, and none of them inlines it."""

import re
import shutil
from collections import Counter

import pytest

from ffilab.run.paths import NATIVE, NATIVE_OUT
from ffilab.setup.catalogue import BY_LABEL
from ffilab.setup.installed import load, soabi
from ffilab.setup.native import distribution
from notebooks.boundary.looks import notes
from tests.helpers.environment import python_of, ran

pytestmark = pytest.mark.skipif(not shutil.which("objdump"), reason="needs objdump")

HEADER = (NATIVE / "boundary" / "library" / "boundary.h").read_text()
FUNCTIONS = set(re.findall(r"^BOUNDARY_API .*?\b(\w+)\(", HEADER, re.M))
LIBRARY = re.compile(r"\d+-(lib)?(boundary|counter)(\.c|\.cpp)?\.(o|a)")


def disassembled(path):
    """Functions in an object file: mnemonics, counted, without what only aligns."""
    listing = ran("objdump", "-d", "--no-show-raw-insn", path, check=True)
    found, here = {}, None
    for line in listing.stdout.splitlines():
        if named := re.match(r"[0-9a-f]+ <(.+)>:$", line):
            here = found.setdefault(named[1], Counter())
        elif here is not None and (instruction := re.match(r"\s+[0-9a-f]+:\s+(?!nop|cs|data16|xchg)(\S+)", line)):
            here[instruction[1]] += 1
    return found


def functions_of(project):
    """The library's functions as they were compiled for one project, from the objects that its link was made of."""
    found = {}
    for path in project.rglob("*"):
        if LIBRARY.fullmatch(path.name):
            found |= disassembled(path)
    return found


def projects(label):
    """The records of links of all bindings on an interpreter, by project."""
    root = NATIVE_OUT / "boundary" / "links" / soabi(load(BY_LABEL[label]))
    return {project.name: functions_of(project) for project in sorted(root.iterdir()) if any(project.iterdir())}


def test_every_binding_calls_the_same_code(labels):
    assert len(FUNCTIONS) >= 17
    for label in labels:
        found = projects(label)
        everywhere = [path.parent for path in NATIVE.glob("boundary/*/pyproject.toml")]
        here = {distribution(one) for one in everywhere if one.name not in notes(label)}
        assert set(found) == here, label
        # 3.15 asks setuptools for frame pointers, of functions that call others; nobody asks CMake and cargo.
        flags = "import sysconfig; print(sysconfig.get_config_var('CFLAGS'))"
        framed = "-fno-omit-frame-pointer" in ran(python_of(label), "-c", flags, check=True).stdout
        for function in [*sorted(FUNCTIONS), "_ZN7Counter3addEl", "_ZNK7Counter5valueEv"]:
            if framed and any("call" in functions[function] for functions in found.values()):
                continue
            forms = {tuple(sorted(functions[function].items())) for functions in found.values()}
            assert len(forms) == 1, (label, function, [(name, each.get(function)) for name, each in found.items()])


def test_no_module_calls_the_library_through_a_table(labels):
    """Calls within a module are direct; ctypes and cffi's ABI mode look the functions up once, when they load the
    library."""
    for label in labels:
        folder = NATIVE_OUT / "boundary" / soabi(load(BY_LABEL[label]))
        modules = [path for path in folder.rglob("*.so") if path.name != "libboundary.so"]
        assert len(modules) >= 5
        for module in modules:
            listing = ran("objdump", "-d", module, check=True).stdout
            called = set(re.findall(r"<(\w+)@plt>$", listing, re.M))
            assert not called & (FUNCTIONS | {"_ZN7Counter3addEl"}), module.name
