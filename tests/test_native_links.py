"""Shared objects of native projects are linked again: other order and place, the same symbols, the same answers."""

import ctypes
import json
import random
import shutil
import subprocess
import sys

import pytest

from ffilab.run.machine import compiler_command
from ffilab.run.paths import NATIVE, NATIVE_OUT
from ffilab.setup import installed, layout_pool, link_recorder, linker, native, native_links, relink
from ffilab.setup.catalogue import BY_LABEL, GIL
from tests.helpers.environment import order_of, ran
from tests.helpers.tiny import library

needs_linker = pytest.mark.skipif(linker.find() is None, reason="no linker here orders functions")

COUNT = 24
TAG = "no-such-soabi"


def source(count=COUNT):
    return "".join(f"int f{n}(int x) {{ return x * {n + 2} + {n}; }}\n" for n in range(count))


def expected(n, x):
    return x * (n + 2) + n


@pytest.fixture
def tiny(tmp_path):
    """A chapter with a plain library of many functions, built: its output folder."""
    native.build(library(tmp_path / "native" / "chapter", source()), [], tmp_path / "built" / "chapter")
    return tmp_path / "built" / "chapter"


def record_of(chapter):
    return native_links.records_of(chapter, "library") / "tiny"


def recorded_link(folder, *arguments):
    """Run the recorder in a folder as a build tool would; the folder of its records."""
    links = folder / "links"
    command = [sys.executable, "-I", link_recorder.__file__, *compiler_command(), "--", *arguments]
    environment = {**native_links.os.environ, link_recorder.LINKS: str(links)}
    subprocess.run(command, cwd=folder, env=environment, check=True, capture_output=True)
    return links


def test_a_link_is_recorded(tiny):
    record = record_of(tiny)
    described = json.loads((record / link_recorder.DESCRIPTION).read_text())
    assert not any(str(tiny) in word or word.endswith(".c") for word in described["arguments"])
    symbols = [symbol for symbol, _ in json.loads((record / native_links.FUNCTIONS).read_text())]
    assert sorted(symbols) == sorted(f"f{n}" for n in range(COUNT))
    assert ctypes.CDLL(str(tiny / "libtiny.so")).f3(10) == expected(3, 10)


@needs_linker
def test_what_was_optimised_at_link_time_is_linked_again(tmp_path):
    """From the objects that the optimisation made. Called by a function that it inlines, one stays a function for
    others."""
    says = ran(*compiler_command(), "--version").stdout
    if "Free Software Foundation" not in says:
        pytest.skip("only gcc's objects are looked into")
    (tmp_path / "tiny.c").write_text(source() + "int g(int x);\nint h(int x) { return g(x) + f3(x); }\n")
    (tmp_path / "apart.c").write_text("int g(int x) { return x + 1; }\n")
    for name, flag in (("tiny", "-flto"), ("apart", "-fno-lto")):
        recorded_link(tmp_path, flag, "-O2", "-fPIC", "-c", f"{name}.c", "-o", f"{name}.o")
    record = (
        recorded_link(tmp_path, "-flto", "-O2", "-fPIC", "-shared", "tiny.o", "apart.o", "-o", "libtiny.so") / "tiny"
    )
    native_links.settle(record.parent)
    assert [path.name for path in record.glob("*apart.o")]
    assert not [path.name for path in record.glob("*tiny.o")]
    made = [native_links.link(record, tmp_path / f"{n}.so", random.Random(n)) for n in range(2)]
    orders = [[name for name in order_of(one) if name in ("g", "h") or name[0] == "f"] for one in made]
    assert orders[0] != orders[1]
    assert {"g", "h", "f3"} <= set(orders[0])
    assert ctypes.CDLL(str(made[0])).h(10) == 11 + expected(3, 10)


@needs_linker
def test_links_differ_in_order_and_place_and_in_nothing_else(tiny, tmp_path):
    made = [native_links.link(record_of(tiny), tmp_path / f"{n}.so", random.Random(n)) for n in range(2)]
    orders = [[name for name in order_of(one) if name.startswith("f")] for one in made]
    assert orders[0] != orders[1]
    assert sorted(orders[0]) == sorted(orders[1])
    exported = native_links.symbols(tiny / "libtiny.so", "--dynamic")
    assert {f"f{n}" for n in range(COUNT)} <= exported
    for one in made:
        assert native_links.symbols(one, "--dynamic") == exported
        library = ctypes.CDLL(str(one))
        assert [getattr(library, f"f{n}")(7) for n in range(COUNT)] == [expected(n, 7) for n in range(COUNT)]


@needs_linker
def test_one_seed_is_one_link(tiny, tmp_path):
    made = [native_links.link(record_of(tiny), tmp_path / f"{n}.so", random.Random(5)) for n in range(2)]
    assert made[0].read_bytes() == made[1].read_bytes()


@needs_linker
def test_scripts_and_archives_are_kept_and_the_pad_is_not_collected(tmp_path):
    """As rustc links: a version script and an archive in folders that are gone afterwards, unused sections left out."""
    work = tmp_path / "work"
    work.mkdir()
    (work / "main.c").write_text(
        "int inner(int); int outer(int x) { return inner(x) + 1; } int hidden(void) { return 0; }\n"
    )
    (work / "inner.c").write_text("int inner(int x) { return 2 * x; }\n")
    (work / "list").write_text("{ global: outer; local: *; };\n")
    recorded_link(work, "-O2", "-fPIC", "-c", "inner.c", "-o", "inner.o")
    subprocess.run(["ar", "rc", "libinner.a", "inner.o"], cwd=work, check=True)
    script = f"-Wl,--version-script={work / 'list'}"
    links = recorded_link(
        work, script, "-fPIC", "main.c", "-linner", "-L", ".", "-Wl,--gc-sections", "-shared", "-o", "m.so"
    )
    kept = tmp_path / "kept"
    links.rename(kept)
    shutil.rmtree(work)
    native_links.settle(kept)
    again = native_links.link(kept / "m", tmp_path / "m.so", random.Random(1))
    assert native_links.symbols(again, "--dynamic") == {"outer"}
    assert ctypes.CDLL(str(again)).outer(20) == 41
    assert relink.PAD in order_of(again)


def test_programs_macros_and_sanitizers_are_not_recorded(tmp_path):
    (tmp_path / "main.c").write_text("int main(void) { return 0; }\n")
    recorded_link(tmp_path, "main.c", "-o", "program")
    recorded_link(tmp_path, "-shared", "-fPIC", "main.c", "-o", "libmacros-0123456789abcdef.so")
    assert (tmp_path / "program").exists()
    command = [*compiler_command(), "-fsanitize=undefined", "-fPIC", "-shared", "main.c", "-o", "checked.so"]
    if subprocess.run(command, cwd=tmp_path, capture_output=True).returncode == 0:
        recorded_link(tmp_path, *command[len(compiler_command()) :])
    assert not (tmp_path / "links").exists()


def test_a_failing_compiler_fails(tmp_path):
    (tmp_path / "broken.c").write_text("#error no\n")
    with pytest.raises(subprocess.CalledProcessError):
        recorded_link(tmp_path, "-shared", "-fPIC", "broken.c", "-o", "broken.so")
    assert not (tmp_path / "links").exists()


def test_a_link_without_functions_to_order_is_forgotten(tmp_path):
    """Data only; what link-time optimisation hands to the linker looks alike."""
    (tmp_path / "data.c").write_text("int data = 1;\n")
    links = recorded_link(tmp_path, "-shared", "-fPIC", "data.c", "-o", "libdata.so")
    assert (links / "data").exists()
    native_links.settle(links)
    assert not (links / "data").exists()


def test_other_compilers_build_everything_once(tiny, tmp_path, monkeypatch):
    project, library = tmp_path / "native" / "chapter" / "library", tiny / "libtiny.so"
    first = library.stat().st_mtime_ns
    native.build(project, [], tiny)
    assert library.stat().st_mtime_ns == first
    monkeypatch.setattr(native_links, "digest", lambda: "another")
    native.build(project, [], tiny)
    second = library.stat().st_mtime_ns
    assert second != first
    native.build(project, [], tiny)
    assert library.stat().st_mtime_ns == second


@needs_linker
def test_a_layout_has_links_of_its_own(tiny, tmp_path):
    (tiny / "libunknown.so").write_bytes((tiny / "libtiny.so").read_bytes())
    copied = [layout_pool.native(TAG, tmp_path / str(n), random.Random(n), tiny.parent) for n in range(2)]
    assert copied == [["chapter/libunknown.so"]] * 2
    names = ("0", "1", "built")
    assert len({(tmp_path / name / "chapter" / "libtiny.so").read_bytes() for name in names}) == 3
    assert len({(tmp_path / name / "chapter" / "libunknown.so").read_bytes() for name in names}) == 1
    assert not (tmp_path / "0" / "chapter" / "libunknown.so").is_symlink()


def test_without_a_linker_everything_is_a_fresh_copy(tiny, tmp_path, monkeypatch):
    monkeypatch.setattr(linker, "find", lambda: None)
    assert layout_pool.native(TAG, tmp_path / "layout", random.Random(0), tiny.parent) == ["chapter/libtiny.so"]
    copy = tmp_path / "layout" / "chapter" / "libtiny.so"
    assert copy.read_bytes() == (tiny / "libtiny.so").read_bytes()
    assert not copy.is_symlink()


# Evaluates one expression on each binding: interpreter's side of the next test.
EVALUATE = """
import json, runpy, sys
evaluate = runpy.run_path(sys.argv[1])["evaluate"]
print(json.dumps([evaluate(sys.argv[2], binding=name, expression=sys.argv[3]) for name in sys.argv[4:]]))
"""
BINDINGS = ["C API", "nanobind", "PyO3", "ctypes CDLL", "cffi API"]
EXPRESSION = (
    "[m.add_one(41), m.halve(5.0), m.code_points('mind the gap'), m.dot(m.Point(3.0, 4.0)), m.Counter(5).add(2)]"
)


@needs_linker
@pytest.mark.full
def test_bindings_linked_again_answer_alike(tmp_path):
    interpreter = installed.load(BY_LABEL[GIL])
    tag = installed.soabi(interpreter)
    copied = layout_pool.native(tag, tmp_path / "layout", random.Random(3))
    modules = native_links.recorded(NATIVE_OUT / "boundary", tag)
    linked = {link_recorder.name_of(path.name) for path, record in modules.items() if record}
    assert {"boundary_c_api", "boundary_nanobind", "boundary_pyo3", "boundary"} <= linked
    assert not any(f"boundary/{path}" in copied for path, record in modules.items() if record)
    answers = []
    for built in (NATIVE_OUT, tmp_path / "layout"):
        command = [interpreter.python, "-I", "-c", EVALUATE, NATIVE / "boundary" / "evaluate.py", built / "boundary"]
        done = ran(*command, EXPRESSION, *BINDINGS, check=True)
        answers.append(json.loads(done.stdout))
    assert answers == [[{"value": "[42, 2.5, 12, 25.0, 7]"}] * len(BINDINGS)] * 2
    for path, record in modules.items():
        if record:
            here, there = (folder / "boundary" / path for folder in (NATIVE_OUT, tmp_path / "layout"))
            assert native_links.symbols(here, "--dynamic") == native_links.symbols(there, "--dynamic"), path
