"""What is fetched is pinned and hashed, and JupyterLab listens here only, behind its token."""

import hashlib
import json
import os
import re
import signal
import subprocess
import sys
import tomllib
import zipfile
from importlib import metadata
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

import psutil
import pytest

from ffilab import cli
from ffilab.run.paths import KERNELS, NATIVE, ROOT
from ffilab.run.subprocesses import group
from ffilab.setup import installed, interpreters, layout_pool
from ffilab.setup.catalogue import CHAPTER_PAIR, SOURCES
from tests.helpers import small
from tests.helpers.environment import clean_environment, ran

PIN = re.compile(r"^([A-Za-z0-9][\w.\-]*)(?:\[[\w,\-]+\])?==([^\s;\\]+)", re.M)


def normal(name):
    return re.sub(r"[-_.]+", "-", name).lower()


def pins(lock):
    return {(normal(name), version) for name, version in PIN.findall(lock.read_text())}


def test_crates_are_pinned_with_a_checksum():
    """Wheels: tests/test_tree.py."""
    crates = 0
    for manifest in NATIVE.rglob("Cargo.toml"):
        if {"target", "build"} & set(manifest.parts):
            continue
        project, lock = tomllib.loads(manifest.read_text()), manifest.with_name("crates.lock")
        assert lock.exists() or not any("dependencies" in key for key in project), manifest
        if lock.exists():
            packages = tomllib.loads(lock.read_text())["package"]
            assert [one["name"] for one in packages if "checksum" not in one] == [project["package"]["name"]], lock
            assert all(re.fullmatch("[0-9a-f]{64}", one.get("checksum", "0" * 64)) for one in packages), lock
            crates += len(packages) - 1
    assert crates


def test_sources_of_cpython_are_pinned():
    for source in SOURCES.values():
        assert re.fullmatch("[0-9a-f]{64}", source.sha256)
        assert source.python_org.startswith("https://")


def wheel(folder):
    """A package that no registry has."""
    path = folder / "ffilab_probe-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("ffilab_probe.py", "x = 1\n")
        info = "ffilab_probe-1.0.dist-info"
        archive.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: ffilab-probe\nVersion: 1.0\n")
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{info}/RECORD", "")
    return path


@pytest.mark.parametrize("tool", ["uv", "pip"])
def test_a_wheel_with_other_bytes_than_the_locked_ones_is_refused(tmp_path, tool):
    path, text, target = wheel(tmp_path), tmp_path / "lock.txt", tmp_path / "target"
    front = [interpreters.uv(), "pip", "install", "--no-config", "--python", sys.executable]
    if tool == "pip":
        front = [sys.executable, "-m", "pip", "install", "--isolated"]
    more = ["--no-index", "--find-links", tmp_path, "--require-hashes", "--target", target, "-r", text]

    def install(lock):
        text.write_text(f"{lock}\n")
        return ran(*front, *more, env=clean_environment())

    for lock in ("ffilab-probe==1.0 --hash=sha256:" + "0" * 64, "ffilab-probe==1.0"):
        answer = install(lock)
        assert answer.returncode != 0
        assert "hash" in answer.stderr.lower()
        assert not (target / "ffilab_probe.py").exists()
    # With its own hash it is taken: the refusal was for the hash.
    assert install(f"ffilab-probe==1.0 --hash=sha256:{hashlib.sha256(path.read_bytes()).hexdigest()}").returncode == 0
    assert (target / "ffilab_probe.py").exists()


@pytest.mark.parametrize("path", ["bootstrap.py", "setup/native.py", "setup/environments.py"])
def test_installers_ask_for_hashes(path):
    """Or take nothing from a registry: our own projects."""
    text = (ROOT / "ffilab" / path).read_text()
    calls = re.findall(r"\"pip\",\s+\"(?:install|sync)\"[^\])]*", text)
    assert calls
    assert all("--require-hashes" in call or "--no-index" in call for call in calls)


def test_what_is_installed_is_locked():
    locked = pins(ROOT / "requirements" / "book.txt")
    here = {(normal(one.metadata["Name"]), one.version) for one in metadata.distributions()}
    assert not {name for name, _ in here - locked} & {name for name, _ in locked}
    for interpreter in CHAPTER_PAIR:
        packages = installed.load(interpreter).facts["packages"].items()
        lock = installed.folder(interpreter) / "requirements.txt"
        assert {(normal(name), version) for name, version in packages} <= pins(lock)


@pytest.fixture
def lab(tmp_path):
    """What `make lab` starts, as it listens: its command, its process and its own facts."""
    ran = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(layout_pool, "ready", lambda *words: None)
        patch.setattr(os, "execve", lambda *words: ran.append(words))
        cli.lab.callback(name="", kernels="pair", budget="room", source="", listen="127.0.0.1")
    ((_, command, _),) = ran
    runtime = tmp_path / "runtime"
    home = clean_environment(HOME=str(tmp_path), JUPYTER_PATH=str(KERNELS.parent), JUPYTER_RUNTIME_DIR=str(runtime))
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    with group([*command, "--no-browser", "--port=0"], env=home, **quiet) as started:
        process = psutil.Process(started.pid)
        files = small.wait_for(lambda: [one for one in runtime.glob("jpserver-*.json") if one.read_text()])
        assert files, started.poll()
        assert small.wait_for(lambda: listening(process))
        yield command, process, json.loads(files[0].read_text())


def ended(process):
    return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE


def listening(process):
    """The addresses on which a process listens."""
    return [one.laddr.ip for one in process.net_connections() if one.status == psutil.CONN_LISTEN]


@pytest.mark.full
def test_lab_is_on_loopback_and_asks_for_its_token(lab):
    command, process, about = lab
    assert "--ip=127.0.0.1" in command
    assert not [word for word in command[3:] if "token" in word.lower() or "password" in word.lower()]
    assert set(listening(process)) <= {"127.0.0.1", "::1"}
    with pytest.raises((HTTPError, URLError)) as caught:
        urlopen(f"http://127.0.0.1:{about['port']}/api/contents", timeout=20)
    assert caught.value.code == 403


@pytest.mark.full
def test_lab_ends_with_its_kernels(lab):
    _, process, about = lab
    order = Request(
        f"http://127.0.0.1:{about['port']}/api/kernels",
        data=json.dumps({"name": "cpython-3.14"}).encode(),
        headers={"Authorization": f"token {about['token']}", "Content-Type": "application/json"},
    )
    urlopen(order, timeout=60).read()
    (kernel,) = small.wait_for(lambda: [one for one in process.children() if "ipykernel_launcher" in one.cmdline()])
    process.send_signal(signal.SIGTERM)
    assert small.wait_for(lambda: ended(process), 20)
    assert small.wait_for(lambda: ended(kernel), 20)
