"""Sources, builds and environments: what goes wrong is one sentence, and nothing half-written stays."""

import contextlib
import hashlib
import json
import platform
import re
import sys
import tarfile
from pathlib import Path

import pytest

from ffilab import cli, doctor
from ffilab.run import settings
from ffilab.run.errors import UserError
from ffilab.run.paths import ROOT
from ffilab.run.subprocesses import logged
from ffilab.setup import build, installed, interpreters, sources
from ffilab.setup.catalogue import (
    ALL,
    BY_LABEL,
    CHAPTER_PAIR,
    COMPILED,
    GIL,
    PREBUILT,
    SOONEST,
    SOURCES,
    Request,
    parse,
)
from tests.helpers.environment import ran
from tests.helpers.fake_source import real

T314 = BY_LABEL["3.14t"]
pytestmark = pytest.mark.usefixtures("cache_home")


def test_disk_that_fills_up_in_a_child_is_a_sentence(tmp_path):
    with pytest.raises(UserError, match="full"):
        logged(["sh", "-c", "echo 'cc1: No space left on device'; exit 1"], tmp_path / "log")


def test_a_log_holds_each_line_as_soon_as_it_is_said(tmp_path):
    log, read = tmp_path / "log", []
    logged(["sh", "-c", "echo one; echo two"], log, on_line=lambda line: read.append(log.read_text()))
    assert read == ["one\n", "one\ntwo\n"]


def test_kernel_folder_without_environment(monkeypatch, tmp_path):
    monkeypatch.setattr(installed, "KERNELS", tmp_path)
    with pytest.raises(UserError, match=r"bootstrap\.py kernels --kernels 3\.14t"):
        installed.load(T314)
    (tmp_path / "cpython-3.14t" / ".venv").mkdir(parents=True)
    (tmp_path / "cpython-3.14t" / ".venv" / "ffilab.json").write_text('{"stamp": "x"}')
    with pytest.raises(UserError, match="no working environment"):
        installed.load(T314)


def test_named_interpreter_is_taken_first():
    own = str(installed.python(BY_LABEL["3.14"]))
    found, left_out = interpreters.find(Request({BY_LABEL["3.14"]: own}, (BY_LABEL["3.14"],), ()))
    assert [(f.route, f.executable) for f in found] == [("named", own)]
    assert not left_out


@pytest.fixture
def routes(monkeypatch):
    """What each route has, to be changed: nothing but a compiler."""
    has = {"uv": set(), "download": set(), "cache": set(), "compiler": True}

    def by(route, one):
        return interpreters.Found(one, "x", route) if one.label in has[route] else None

    monkeypatch.setattr(interpreters, "known_to_uv", lambda one: by("uv", one))
    monkeypatch.setattr(interpreters.Downloads, "install", lambda self, one, required: by("download", one))
    monkeypatch.setattr(interpreters, "source", lambda one: interpreters.Found(one, "x", "source"))
    monkeypatch.setattr(interpreters, "can_compile", lambda group: has["compiler"])
    monkeypatch.setattr(build, "built", lambda i: i.label in has["cache"])
    monkeypatch.setattr(build, "in_the_background", lambda others: contextlib.nullcontext())
    return has


PAIR = {one.label for one in CHAPTER_PAIR}


@pytest.mark.parametrize(
    ("pair", "has", "expected"),
    [
        # Compiled wherever that can be, whatever else is there.
        (COMPILED, {"uv": PAIR, "download": PAIR}, {"source"}),
        (COMPILED, {"uv": PAIR, "compiler": False}, {"uv"}),
        (COMPILED, {"download": PAIR, "compiler": False}, {"download"}),
        # Only one of the two is on the machine: both come another way, so that a comparison compares the GIL.
        (COMPILED, {"uv": {GIL}, "download": PAIR, "compiler": False}, {"download"}),
        (PREBUILT, {"uv": PAIR, "cache": PAIR}, {"uv"}),
        (PREBUILT, {"uv": {GIL}, "download": PAIR}, {"download"}),
        (PREBUILT, {"cache": PAIR}, {"source"}),
        (SOONEST, {"uv": PAIR, "cache": PAIR}, {"source"}),
        (SOONEST, {"download": PAIR}, {"download"}),
        (SOONEST, {}, {"source"}),
    ],
)
def test_two_builds_of_a_version_come_by_one_route(routes, pair, has, expected):
    routes |= has
    got, left_out = interpreters.find(Request({}, CHAPTER_PAIR, (BY_LABEL["3.13"],), pair))
    assert {f.route for f in got} == expected
    assert left_out == [BY_LABEL["3.13"]]


def test_prebuilt_interpreters_that_cannot_be_had_are_not_compiled(routes):
    with pytest.raises(UserError, match="leave KERNELS out to compile"):
        interpreters.find(Request({}, CHAPTER_PAIR, (), PREBUILT))


def test_a_source_that_cannot_be_had_is_named_before_other_routes_are_asked(monkeypatch, capsys):
    monkeypatch.setenv(settings.NO_DOWNLOADS, "1")
    assert not interpreters.can_compile([BY_LABEL[GIL]])
    assert settings.NO_DOWNLOADS in capsys.readouterr().err


@pytest.mark.parametrize(
    ("kernels", "budget", "pair"),
    [
        ("", "quick", COMPILED),
        ("", "room", SOONEST),
        ("prebuilt", "quick", PREBUILT),
        ("prebuilt", "room", PREBUILT),
        ("3.14 3.14t", "full", COMPILED),
    ],
)
def test_the_way_to_the_pair_follows_kernels_and_budget(kernels, budget, pair):
    assert parse(kernels, budget).pair == pair


@pytest.mark.parametrize(
    ("kernels", "compiles"),
    [
        ("", True),
        ("prebuilt", False),
        ("3.14=/a 3.14t=/b", False),
        ("3.14=/a,cpython-3.14t='/b c'", False),
        ("3.14=/a", False),
        ("3.14 3.14t", True),
    ],
)
def test_headers_are_needed_where_something_is_compiled(monkeypatch, kernels, compiles):
    monkeypatch.setattr(doctor, "header_present", lambda header: header != "ffi.h")
    monkeypatch.setattr(doctor, "present", lambda tool, commands: tool != "C++ compiler")
    refusal = doctor.refusal(kernels)
    assert "C++ compiler" in refusal
    assert ("libffi" in refusal) is compiles


@pytest.mark.parametrize(
    ("program", "command"),
    [
        ("apt-get", "apt-get install gcc g++ libffi-dev"),
        ("dnf", "dnf install gcc gcc-c++ libffi-devel"),
        ("pacman", "pacman -S --needed gcc libffi"),
        ("brew", "brew install gcc libffi"),
        ("none of these", "install the packages that Debian calls gcc g++ libffi-dev"),
    ],
)
def test_all_that_is_lacking_is_one_command(monkeypatch, program, command):
    monkeypatch.delenv("CONDA_PREFIX", raising=False)
    monkeypatch.setattr(doctor.shutil, "which", lambda name: name if name == program else None)
    monkeypatch.setattr(doctor.os, "geteuid", lambda: 0)
    tools, headers = doctor.KNOWN["tools"], doctor.KNOWN["headers"]
    packages = [tools["C compiler"][3], tools["C++ compiler"][3], headers["libffi headers"][3]]
    assert doctor.command(packages) == command
    monkeypatch.setattr(doctor.os, "geteuid", lambda: 1000)
    assert doctor.command(packages).removeprefix("as root: ") == command


@pytest.mark.tool("apt-get")
def test_the_mirror_of_apt_is_asked_where_its_lists_were_removed(monkeypatch, tmp_path):
    """As images of containers are: without the lists, and with their sources."""
    (tmp_path / "sources.list").write_text("deb [trusted=yes] https://mirror.example/debian stable main\n")
    places = {"Etc::sourcelist": "sources.list", "Etc::sourceparts": "none", "State::lists": "lists"}
    lines = [f'Dir::{name} "{tmp_path / place}";\n' for name, place in places.items()]
    (tmp_path / "apt.conf").write_text("".join(lines))
    monkeypatch.setenv("APT_CONFIG", str(tmp_path / "apt.conf"))
    monkeypatch.delenv(settings.SOURCE_MIRROR, raising=False)
    _, *mirrors = sources.candidate_urls(SOURCES["3.14"])
    assert [url.partition("/pool/")[0] for url in mirrors] == ["https://mirror.example/debian"]


def test_readme_and_container_have_the_packages_that_are_needed():
    needed = [*doctor.KNOWN["tools"].values(), *doctor.KNOWN["headers"].values()]
    names = " ".join(dict.fromkeys(of_it[3]["apt"] for of_it in needed if of_it[0]))
    assert f"sudo apt-get install {names}\n" in (ROOT / "README.md").read_text()
    assert f" ca-certificates {names} " in (ROOT / "Containerfile").read_text()


def test_each_step_of_the_container_finds_what_it_names():
    containerfile, devcontainer = (
        (ROOT / name).read_text() for name in ("Containerfile", ".devcontainer/devcontainer.json")
    )
    asked = re.findall(r"bootstrap\.py (\w+)", containerfile + devcontainer)
    assert {"kernels", "native", "lab"} <= set(asked) <= set(cli.verbs.commands)
    assert all((ROOT / path).exists() for path in re.findall(r"^COPY --chown=reader (\S+)", containerfile, re.M))
    # Those of the system's administrator are not lost: useradd, for one.
    assert re.search(r"^ENV .*PATH=\S*:\$PATH\b", containerfile, re.M)


def test_pair_was_built_alike():
    one, other = installed.pair()
    assert one.facts["route"] == other.facts["route"]
    assert installed.same_build(one.facts, other.facts)


def archive_of(label, folder):
    """Our own interpreter packed as uv expects one, and its entry in a list of downloads."""
    interpreter = installed.load(BY_LABEL[label])
    if interpreter.facts["route"] != "source":
        pytest.skip("only an interpreter that was compiled here has a folder of its own")
    home, release = Path(real(label)).parents[1], SOURCES[BY_LABEL[label].version].release
    major, minor, patch = map(int, release.split("."))
    path = folder / f"cpython-{label}.tar.gz"

    def wanted(member):
        left_out = {"test", "__pycache__", "objects"} & set(Path(member.name).parts) or member.name.endswith(".a")
        return None if left_out else member

    with tarfile.open(path, "w:gz", compresslevel=1) as archive:
        archive.add(home, "python", filter=wanted)
    machine = {"arm64": "aarch64"}.get(platform.machine(), platform.machine())
    name = f"cpython-{release}{'+freethreaded' if label.endswith('t') else ''}-linux-{machine}-gnu"
    return name, {
        "name": "cpython",
        "arch": {"family": machine, "variant": None},
        "os": "linux",
        "libc": "gnu",
        **{"major": major, "minor": minor, "patch": patch, "prerelease": ""},
        "url": path.as_uri(),
        "sha256": hashlib.sha256(path.read_bytes()).hexdigest(),
        "variant": "freethreaded" if label.endswith("t") else None,
        "build": "20260101",
    }


@pytest.mark.full
@pytest.mark.skipif(sys.platform != "linux", reason="the archive is made for Linux")
def test_interpreters_that_uv_downloads(monkeypatch, tmp_path, capsys):
    """From a local mirror and a local list: the pair comes by one route, runs, and gets an environment."""
    known = dict(archive_of(label, tmp_path) for label in ("3.14", "3.14t"))
    listing = tmp_path / "list.json"
    listing.write_text(json.dumps(known))
    monkeypatch.setenv("UV_PYTHON_DOWNLOADS_JSON_URL", str(listing))
    monkeypatch.setenv("UV_PYTHON_INSTALL_DIR", str(tmp_path / "installed"))
    # An interpreter of the reader's own would be found first.
    monkeypatch.setenv("UV_PYTHON_PREFERENCE", "only-managed")
    pair = (BY_LABEL["3.14"], T314)
    found, left_out = interpreters.find(Request({}, pair, (), PREBUILT))
    assert [(one.interpreter, one.route) for one in found] == [(each, "download") for each in pair]
    assert not left_out
    assert all(Path(one.executable).is_relative_to(tmp_path) for one in found)
    assert all(interpreters.suits(interpreters.probe(one.executable), one.interpreter) for one in found)
    # The next time they are there, and nothing is fetched.
    listing.write_text("{}")
    assert [one.route for one in interpreters.find(Request({}, pair, (), PREBUILT))[0]] == ["uv", "uv"]


NAMES = ["python", "python3", "python{label}"]


@pytest.mark.parametrize(
    ("label", "name"),
    [*((label, name) for label in ("3.14", "3.14t") for name in NAMES), ("3.14t", "python3.14-nogil")],
)
def test_what_a_package_manager_put_on_path_is_found(monkeypatch, tmp_path, label, name):
    """conda's environments have `python`, Fedora `python3.14t`, Ubuntu's deadsnakes `python3.14-nogil`; all are asked
    what they are."""
    on_path = tmp_path / "bin"
    on_path.mkdir()
    (on_path / name.format(label=label)).symlink_to(real(label))
    monkeypatch.setenv("PATH", str(on_path))
    monkeypatch.setenv("UV_PYTHON_INSTALL_DIR", str(tmp_path / "none"))
    found = interpreters.known_to_uv(BY_LABEL[label])
    assert found is not None
    assert Path(found.executable).is_relative_to(tmp_path)
    other = {"3.14": "3.14t", "3.14t": "3.14"}[label]
    assert interpreters.known_to_uv(BY_LABEL[other]) is None


def touch(path):
    path.parent.mkdir(parents=True)
    path.touch()


def test_doctor_knows_what_is_set_up_and_what_the_cache_holds(monkeypatch, tmp_path):
    monkeypatch.setattr(doctor, "ROOT", tmp_path)
    kernels = tmp_path / "kernels" / "kernels"
    kernels.mkdir(parents=True)
    assert tuple(one.label for one in CHAPTER_PAIR) == doctor.PAIR
    assert "uv python install 3.14 3.14t" in doctor.about_interpreters()
    for label in doctor.PAIR:
        touch(build.executable(BY_LABEL[label]))
    text = doctor.about_interpreters()
    assert text.endswith("none yet.\n3.14 and 3.14t are in the cache: nothing to compile.")
    touch(kernels / f"cpython-{GIL}" / ".venv" / "ffilab.json")
    assert doctor.about_interpreters().endswith("here: 3.14.\n3.14t is in the cache: nothing to compile.")
    touch(kernels / f"cpython-{T314.label}" / ".venv" / "ffilab.json")
    assert doctor.about_interpreters() == "Interpreters set up here: 3.14, 3.14t."


def test_doctor_needs_the_standard_library_only():
    """It runs before anything is installed: -S leaves out what is."""
    check = "import sys; sys.path[:0] = ['ffilab']; import doctor; doctor.about_interpreters(); import ffilab.run.quota"
    done = ran(sys.executable, "-S", "-I", "-c", check, cwd=ROOT)
    assert done.returncode == 0, done.stderr


def test_why_uv_could_not_download_is_one_line_without_an_address():
    said = "error: Failed to install cpython\n  cause: Failed to download `https://a.example/b`\n  cause: dns error\n"
    assert interpreters.reason(said) == "Failed to download"
    assert interpreters.reason("error: no space left\n") == "error: no space left"
    assert interpreters.reason("") == "it says nothing"


# ---- what a reader may ask for ----


@pytest.mark.parametrize(
    ("given", "named", "required", "optional"),
    [
        ("", {}, CHAPTER_PAIR, set(ALL) - set(CHAPTER_PAIR)),
        ("all", {}, ALL, set()),
        ("3.14='/opt/a é/python', cpython-3.14t 3.14t", {BY_LABEL["3.14"]: "/opt/a é/python"}, CHAPTER_PAIR, set()),
    ],
)
def test_what_is_asked_for(given, named, required, optional):
    request = parse(given)
    assert request.named == named
    assert request.required == required
    assert set(request.optional) == optional


def test_every_interpreter_has_a_kernel_folder_and_a_lock():
    for interpreter in ALL:
        assert (installed.folder(interpreter) / "kernel.json").exists()
        assert "--hash=sha256:" in (installed.folder(interpreter) / "requirements.txt").read_text()
