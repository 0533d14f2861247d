"""What is built under native/, and what a build leaves alone."""

import ctypes
import re
import shutil
from pathlib import Path

import pytest

from ffilab.measure import case, runner
from ffilab.measure.plan import Arm, plan
from ffilab.run import machine, paths
from ffilab.run.budget import BUDGETS
from ffilab.run.errors import UserError
from ffilab.run.paths import BY_PRODUCTS, NATIVE, NOTEBOOKS
from ffilab.setup import installed, native
from ffilab.setup.catalogue import BY_LABEL, GIL
from ffilab.setup.chapters import with_uses
from tests.helpers.environment import script
from tests.helpers.tiny import library


def sources(folder: Path) -> dict[Path, bytes]:
    files = [path for path in folder.rglob("*") if path.is_file()]
    return {path: path.read_bytes() for path in files if not BY_PRODUCTS & set(path.relative_to(folder).parts)}


def test_a_build_leaves_the_sources_alone(tmp_path):
    """A page is stale if its native sources changed, so that a build must not write among them."""
    root = tmp_path / "native"
    for chapter in ("placement", "loaders", "convoy"):
        ignore = shutil.ignore_patterns("machine", "__pycache__", *BY_PRODUCTS)
        shutil.copytree(NATIVE / chapter, root / chapter, ignore=ignore)
    before = sources(root)
    native.build_all([], root, tmp_path / "out")
    assert (tmp_path / "out" / "loaders" / "libloaders.so").exists()
    assert sources(root) == before


def test_only_the_chapters_that_are_asked_for(tmp_path):
    for chapter in ("wanted", "other"):
        library(tmp_path / chapter)
    native.build_all([], tmp_path, tmp_path / "out", chapters=["wanted"])
    assert (tmp_path / "out" / "wanted" / "libtiny.so").exists()
    assert not (tmp_path / "out" / "other").exists()


def test_a_chapter_declares_whose_projects_it_loads(chapter):
    """`make chapter` builds its own chapter and those in `uses`: every other one is missing in a fresh clone."""
    texts = [path.read_text() for path in (NOTEBOOKS / chapter).glob("*.py") if path.stem not in ("contest", "levels")]
    loaded = set(re.findall(r"(?:\{BUILT\}/|NATIVE_OUT / \")(\w+)", "".join(texts)))
    assert loaded <= set(with_uses(chapter))


@pytest.mark.skipif(not shutil.which("gcc"), reason="the compiler that changes stands before gcc")
def test_another_compiler_builds_again_and_records_name_it(monkeypatch, tmp_path):
    library(tmp_path / "native" / "chapter")
    out, compiler = tmp_path / "out", tmp_path / "cc-of-mine"
    monkeypatch.setattr(machine, "NATIVE_OUT", out)
    monkeypatch.setenv("CC", str(compiler))
    times = []
    for version in ("1.0", "1.0", "2.0"):
        script(compiler, f'[ "$*" = --version ] && echo "mine {version}" && exit\nexec gcc "$@"')
        machine.version_of.cache_clear()
        native.build_all([], tmp_path / "native", out)
        times.append((out / "chapter" / "libtiny.so").stat().st_mtime_ns)
    assert times[0] == times[1] < times[2]
    monkeypatch.setenv("CC", "gcc")
    assert machine.facts("chapter")["compiler"] == "mine 2.0"
    machine.version_of.cache_clear()


def test_code_that_does_not_compile_is_named_with_its_error_and_costs_itself_alone(tmp_path):
    source, out = library(tmp_path / "chapter") / "tiny.c", tmp_path / "out"
    library(tmp_path / "other")
    right = source.read_text()
    source.write_text("int tiny( {\n")
    (failure,) = native.build_all([], tmp_path, out)
    assert re.search(r"native/chapter/library: make failed \(tiny\.c:1:\d+: error", failure)
    assert (out / "chapter" / "missing-library.txt").read_text() == failure
    assert not (out / "chapter" / "libtiny.so").exists()
    assert (out / "other" / "libtiny.so").exists()
    source.write_text(right)
    assert native.build_all([], tmp_path, out) == []
    assert not (out / "chapter" / "missing-library.txt").exists()


def test_half_a_library_is_made_again(monkeypatch, tmp_path):
    """Ctrl-C came in the middle of writing it, and make would take it for a whole one."""
    source, built = library(tmp_path / "chapter") / "tiny.c", tmp_path / "out" / "chapter" / "libtiny.so"
    native.build_all([], tmp_path, tmp_path / "out")
    source.write_text("int tiny(int x) { return x + 2; }\n")

    def stopped(*_):
        built.write_bytes(built.read_bytes()[:5000])
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(native, "_run", stopped)
        with pytest.raises(KeyboardInterrupt):
            native.build_all([], tmp_path, tmp_path / "out")
    assert native.build_all([], tmp_path, tmp_path / "out") == []
    assert ctypes.CDLL(str(built)).tiny(1) == 3


def test_without_a_c_compiler_nothing_is_begun(monkeypatch, tmp_path):
    library(tmp_path / "chapter")
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.setattr(shutil, "which", lambda name, *a, **k: None)
    with pytest.raises(UserError, match=r"no C compiler .*make doctor"):
        native.build_all([], tmp_path, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_what_holds_cxx_says_so_in_its_recipe():
    # The first one takes its sources from a neighbour.
    in_cxx = [NATIVE / "boundary" / "nanobind_lto", *(p for p in native.projects() if list(p.glob("*.cpp")))]
    assert [project for project in in_cxx if not native.has_cxx(project)] == []
    assert not any(native.has_cxx(NATIVE / name) for name in ("loaders/library", "objects/pyo3", "outside/panics"))


@pytest.mark.parametrize(
    ("hidden", "file", "recipe", "reason"),
    [
        ("cargo", "Cargo.toml", '[package]\nname = "x"\nversion = "0.1.0"\n', "written in Rust, and there is no cargo"),
        ("+", "Makefile", "all:\n\t$(CXX) tiny.cpp -o $(OUT)/tiny\n", "no C++ compiler"),
    ],
    ids=["Rust", "C++"],
)
def test_without_a_tool_its_projects_are_left_out_with_the_reason(monkeypatch, tmp_path, hidden, file, recipe, reason):
    (library(tmp_path / "chapter") / file).write_text(recipe)
    library(tmp_path / "other")
    which = shutil.which
    monkeypatch.setattr(shutil, "which", lambda name, *a, **k: None if hidden in name else which(name, *a, **k))
    (failure,) = native.build_all([], tmp_path, tmp_path / "out")
    assert reason in failure
    assert "make doctor" in failure
    assert (tmp_path / "out" / "chapter" / "missing-library.txt").read_text() == failure
    assert (tmp_path / "out" / "other" / "libtiny.so").exists()


def test_who_loads_a_library_that_was_not_built_shows_the_reason(monkeypatch, tmp_path):
    monkeypatch.setattr(paths, "NATIVE_OUT", tmp_path / "native")
    (tmp_path / "native" / "chapter").mkdir(parents=True)
    (tmp_path / "native" / "chapter" / "missing-library.txt").write_text("tiny.c does not compile.")
    lost = tmp_path / "layouts" / "3.14" / "native" / "chapter"
    arm = Arm("tiny", "f()", f"import ctypes; f = ctypes.CDLL({str(lost / 'libtiny.so')!r}).tiny")
    restart = runner.Restart(
        plan("trial", [arm], [GIL], BUDGETS["smoke"]), {GIL: installed.load(BY_LABEL[GIL])}, logs=tmp_path
    )
    restart.close()
    assert restart.missing[GIL]["tiny"].endswith("tiny.c does not compile.")
    with pytest.raises(UserError, match=r"no program tiny here: tiny\.c does not compile"):
        case.program([lost / "tiny"])
    (tmp_path / "native" / "chapter" / "libtiny.so").touch()
    assert paths.with_reason(f"OSError: {lost}/libtiny.so: not ELF") == f"OSError: {lost}/libtiny.so: not ELF"


def test_a_project_may_take_its_sources_from_a_neighbour(monkeypatch, tmp_path):
    base, other = tmp_path / "chapter" / "base", tmp_path / "chapter" / "other"
    for folder in (base, other):
        folder.mkdir(parents=True)
        (folder / "pyproject.toml").write_text('[project]\nname = "x"\n')
        (folder / "version").write_text(folder.name)
    (base / "code.c").write_text("int x;")
    (other / "pyproject.toml").write_text('[tool.hidden-corners]\nsources-of = "base"\n')
    built = []
    monkeypatch.setattr(
        native, "_run", lambda project, command, *_: built.append(Path(command[-1].removeprefix("file://")))
    )
    native.build(other, [installed.load(BY_LABEL["3.14"])], tmp_path / "out")
    assert (built[0] / "code.c").read_text() == "int x;"
    assert (built[0] / "version").read_text() == "other"


@pytest.mark.full
def test_changing_one_source_rebuilds_one_project(tmp_path):
    root, out, interpreter = tmp_path / "native", tmp_path / "out", installed.load(BY_LABEL["3.14"])
    ignore = shutil.ignore_patterns("build", "*.egg-info")
    project = shutil.copytree(NATIVE / "loaders" / "detach_attach", root / "chapter" / "detach_attach", ignore=ignore)
    library(root / "chapter")
    (source,), target = project.glob("*.c"), out / "chapter" / installed.soabi(interpreter)

    def times():
        assert native.build_all([interpreter], root, out) == []
        (module,) = target.glob("*.so")
        return [path.stat().st_mtime_ns for path in (module, out / "chapter" / "libtiny.so")]

    assert not native.is_built("chapter", [interpreter], root, out)
    first = times()
    assert native.is_built("chapter", [interpreter], root, out)
    source.write_text(source.read_text() + "\n")
    assert not native.is_built("chapter", [interpreter], root, out)
    second = times()
    assert first[0] < second[0]
    assert first[1] == second[1]
