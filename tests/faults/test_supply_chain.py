"""What is fetched is pinned and hashed, what listens listens here only, and no input becomes a command of a shell."""

import ast
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
from conftest import clean_environment

from faults import small
from ffilab import cli, layout_pool
from ffilab.paths import KERNELS, NATIVE, ROOT
from ffilab.provision import installed, interpreters
from ffilab.provision.catalogue import BY_LABEL, SOURCES

PIN = re.compile(r"^([A-Za-z0-9][\w.\-]*)(?:\[[\w,\-]+\])?==([^\s;\\]+)", re.M)


def wheel_locks():
    inputs = [*ROOT.glob("requirements/*.in"), *KERNELS.glob("*/requirements.in"), *NATIVE.rglob("requirements.in")]
    return [path.with_suffix(".txt") for path in inputs if "target" not in path.parts]


def crate_locks():
    return [path for path in NATIVE.rglob("crates.lock") if "target" not in path.parts]


def blocks(text):
    """The requirements of a lock, each with the lines of its hashes."""
    return re.split(r"\n(?=\S)", re.sub(r"^\s*#.*\n", "", text, flags=re.M))


def unpinned(text):
    """What a lock of wheels leaves open."""
    found = []
    for block in filter(str.strip, blocks(text)):
        hashes = re.findall(r"--hash=(\S+)", block)
        if not PIN.match(block) or not hashes or not all(re.fullmatch("sha256:[0-9a-f]{64}", one) for one in hashes):
            found.append(block.splitlines()[0])
    return found


def unhashed(text, name):
    """Crates of a lock that have no checksum and are not the project itself."""
    known = tomllib.loads(text)["package"]
    return [f"{name}: {one['name']}" for one in known if not re.fullmatch("[0-9a-f]{64}", one.get("checksum", ""))]


@pytest.mark.fault(
    "supply chain", "A wheel of a lock has no hash or no exact version", "The tests name it; no lock has one"
)
def test_wheels_are_pinned(seen):
    locks = wheel_locks()
    assert len(locks) >= 7
    assert {lock: unpinned(lock.read_text()) for lock in locks} == {lock: [] for lock in locks}
    good = "a==1.0 \\\n    --hash=sha256:" + "0" * 64 + "\n"
    assert unpinned(good) == []
    for bad in ("a==1.0\n", good.replace("==", ">="), good.replace("sha256", "md5"), "a @ file:///a.whl\n"):
        assert unpinned(good + bad) != []
    seen(f"{len(locks)} locks, {sum(len(PIN.findall(lock.read_text())) for lock in locks)} pins, each with its hash")


@pytest.mark.fault("supply chain", "A crate of a lock has no checksum", "The tests name it; only our own have none")
def test_crates_are_pinned(seen):
    count = 0
    manifests = [path for path in NATIVE.rglob("Cargo.toml") if not {"target", "build"} & set(path.parts)]
    for manifest in manifests:
        said = tomllib.loads(manifest.read_text())
        needs = any("dependencies" in key for key in (*said, *(k for t in said.get("target", {}).values() for k in t)))
        lock = manifest.with_name("crates.lock")
        assert lock.exists() or not needs, f"{manifest} needs crates and has no lock"
        if lock.exists():
            own = said["package"]["name"]
            left = unhashed(lock.read_text(), manifest.parent.name)
            assert left == [f"{manifest.parent.name}: {own}"]
            count += len(tomllib.loads(lock.read_text())["package"]) - 1
    assert count
    assert unhashed('[[package]]\nname = "a"\nversion = "1"\nchecksum = "12"\n', "x") == ["x: a"]
    seen(f"{count} crates, each with its checksum")


@pytest.mark.fault(
    "supply chain", "A source of CPython has no hash", "Each of the catalogue has one, and an address with TLS"
)
def test_sources_are_pinned(seen):
    for source in SOURCES.values():
        assert re.fullmatch("[0-9a-f]{64}", source.sha256)
        assert source.python_org.startswith("https://")
    seen(f"{len(SOURCES)} sources, each with its SHA-256")


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


@pytest.mark.slow
@pytest.mark.parametrize("tool", ["uv", "pip"])
@pytest.mark.parametrize(
    ("fault", "lock", "says"),
    [
        ("other bytes than the pinned ones", "ffilab-probe==1.0 --hash=sha256:" + "0" * 64, "hash"),
        ("no hash in the lock", "ffilab-probe==1.0", "hash"),
    ],
    ids=["other_bytes", "no_hash"],
)
@pytest.mark.fault("supply chain", "A wheel has {fault} ({tool})", "It is refused and not installed")
def test_wheel_is_refused(tmp_path, seen, tool, fault, lock, says):
    path = wheel(tmp_path)
    text, target = tmp_path / "lock.txt", tmp_path / "target"
    text.write_text(lock + "\n")
    front = [interpreters.uv(), "pip", "install", "--no-config", "--python", sys.executable]
    if tool == "pip":
        front = [sys.executable, "-m", "pip", "install", "--isolated"]
    more = ["--no-index", "--find-links", tmp_path, "--require-hashes", "--target", target, "-r", text]
    answer = subprocess.run([*front, *more], capture_output=True, text=True, env=clean_environment())
    assert answer.returncode != 0
    assert says in answer.stderr.lower()
    assert not (target / "ffilab_probe.py").exists()
    # With its own hash it is taken: the refusal was for the hash.
    text.write_text(f"ffilab-probe==1.0 --hash=sha256:{hashlib.sha256(path.read_bytes()).hexdigest()}\n")
    assert subprocess.run([*front, *more], capture_output=True, env=clean_environment()).returncode == 0
    assert (target / "ffilab_probe.py").exists()
    seen("refused: " + next(line for line in answer.stderr.splitlines() if says in line.lower()).strip()[:100])


@pytest.mark.fault(
    "supply chain", "An installer is called without asking for hashes", "The tests name the place; none is"
)
def test_installers_ask_for_hashes(seen):
    found = []
    for path in (ROOT / "ffilab").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.List | ast.Tuple):
                words = {one.value for one in node.elts if isinstance(one, ast.Constant)}
                if "pip" in words and words & {"install", "sync"} and not words & {"--require-hashes", "--no-index"}:
                    found.append(f"{path.name}:{node.lineno}")
    assert found == []
    seen("every call has --require-hashes, or --no-index for our own projects")


def normal(name):
    return re.sub(r"[-_.]+", "-", name).lower()


@pytest.mark.fault("supply chain", "What is installed is not what the lock says", "The tests name it; all is as locked")
def test_installed_is_locked(seen):
    locked = {}
    for name, version in PIN.findall((ROOT / "requirements" / "book.txt").read_text()):
        locked.setdefault(normal(name), set()).add(version)
    here = {normal(one.metadata["Name"]): one.version for one in metadata.distributions()}
    wrong = {name: here[name] for name in locked if name in here and here[name] not in locked[name]}
    assert wrong == {}
    for label in ("3.14", "3.14t"):
        one = installed.load(BY_LABEL[label])
        lock = (installed.folder(one.interpreter) / "requirements.txt").read_text()
        known = {(normal(name), version) for name, version in PIN.findall(lock)}
        assert {(normal(name), version) for name, version in one.facts["packages"].items()} <= known
    seen("the environments of the book and of the chapter pair are as locked")


@pytest.mark.fault(
    "supply chain", "A package comes without saying under which licence", "The tests name it; each says it"
)
def test_licences(seen):
    without, found = [], set()
    for one in metadata.distributions():
        said = one.metadata
        classifiers = [text for text in said.get_all("Classifier", []) if text.startswith("License")]
        licence = said.get("License-Expression") or said.get("License") or "".join(classifiers)
        found.add(licence)
        files = [file for file in one.files or () if "LICEN" in file.name.upper() or "COPYING" in file.name.upper()]
        if not licence and not files:
            without.append(said["Name"])
    assert without == []
    seen(f"{len(found)} licences are named, and no package is without one")


def python_files():
    for folder in ("ffilab", "notebooks", "native", "tests"):
        yield from (
            path for path in (ROOT / folder).rglob("*.py") if not {"target", "build", ".venv"} & set(path.parts)
        )


def shells(tree):
    """Calls that hand a text to a shell."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            name = ast.unparse(node.func)
            if name in ("os.system", "os.popen", "subprocess.getoutput", "subprocess.getstatusoutput"):
                yield node.lineno
            if name.endswith("create_subprocess_shell"):
                yield node.lineno
            for word in node.keywords:
                if word.arg == "shell" and not (isinstance(word.value, ast.Constant) and not word.value.value):
                    yield node.lineno


@pytest.mark.fault(
    "supply chain", "A text made from input is run by a shell", "The tests name the place; nothing does it"
)
def test_no_shell(seen):
    count = 0
    for path in python_files():
        assert list(shells(ast.parse(path.read_text()))) == [], path
        count += 1
    for bad in ("os.system('x')", "subprocess.run(x, shell=True)", "subprocess.Popen(x, shell=y)", "os.popen(x)"):
        assert list(shells(ast.parse(bad))) == [1]
    makefile = (ROOT / "Makefile").read_text()
    assert not re.findall(r"^\t.*\$\((?!run\b|MAKEFILE_LIST)\w+\)", makefile, re.M)
    seen(f"{count} files call no shell, and no recipe of the Makefile holds what a reader gave")


def listening(tree):
    """Hosts that servers of a file are bound to, as it writes them."""
    constants = {
        node.targets[0].id: node.value.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign)
        and isinstance(node.targets[0], ast.Name)
        and isinstance(node.value, ast.Constant)
    }
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        name = ast.unparse(node.func).rpartition(".")[2]
        if name in ("create_server", "bind", "start_server", "HTTPServer", "ThreadingHTTPServer", "ThreadingTCPServer"):
            if any(word.arg == "sock" for word in node.keywords):
                continue
            if name == "start_server":
                host = next((word.value for word in node.keywords if word.arg == "host"), (*node.args, None, None)[1])
            else:
                host = node.args[0] if node.args else None
            if isinstance(host, ast.Tuple):
                host = host.elts[0]
            if name == "bind" and not isinstance(node.args[0] if node.args else None, ast.Tuple):
                continue
            found = constants.get(host.id, host.id) if isinstance(host, ast.Name) else getattr(host, "value", host)
            yield node.lineno, found


@pytest.mark.fault("supply chain", "A server of an experiment or a test listens beyond this machine", "None does")
def test_servers_are_on_loopback(seen):
    count = 0
    for path in python_files():
        for line, host in listening(ast.parse(path.read_text())):
            assert host in ("127.0.0.1", "::1", "localhost"), f"{path}:{line} listens on {host}"
            count += 1
    assert count >= 2
    for bad in ("socket.create_server(('', 0))", "s.bind(('0.0.0.0', 1))", "H = ''\nHTTPServer((H, 0), X)"):
        assert next(host for _, host in listening(ast.parse(bad))) not in ("127.0.0.1", "localhost")
    seen(f"{count} servers, all on loopback")


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    """Starts what `make lab` starts, with the JupyterLab of its lock; gives the process, and what it says of itself."""
    ran = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cli.environments, "provision", lambda request: [])
        patch.setattr(layout_pool, "make", lambda *words: None)
        patch.setattr(os, "execve", lambda *words: ran.append(words))
        cli.lab.callback(kernels="pair")
    ((_, command, _),) = ran
    folder = tmp_path_factory.mktemp("lab")
    started = []

    def start():
        runtime = folder / f"runtime{len(started)}"
        home = clean_environment(
            HOME=str(folder),
            JUPYTER_PATH=str(KERNELS.parent),
            JUPYTER_RUNTIME_DIR=str(runtime),
        )
        # Under nohup it would be deaf to SIGHUP, as its children are of whoever runs the tests.
        before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
        process = psutil.Popen(
            [*command, "--no-browser", "--port=0"], env=home, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        signal.signal(signal.SIGHUP, before)
        started.append(process)
        said = small.wait_for(lambda: [one for one in runtime.glob("jpserver-*.json") if one.read_text()], 60)
        assert said, process.poll()
        about = json.loads(said[0].read_text())
        assert small.wait_for(
            lambda: [one for one in process.net_connections() if one.status == psutil.CONN_LISTEN], 60
        )
        return process, about, runtime

    start.command = command
    yield start
    for process in started:
        if process.is_running():
            process.kill()
        process.wait()


@pytest.mark.slow
@pytest.mark.fault(
    "supply chain", "A stranger on this machine opens JupyterLab", "Without the token nothing is answered"
)
def test_lab_asks_for_its_token(lab, seen):
    """With the options of `make lab`, and the JupyterLab of its lock."""
    options = lab.command[3:]
    assert "--ip=127.0.0.1" in options
    assert not [word for word in options if "token" in word.lower() or "password" in word.lower()]
    process, about, _ = lab()
    ports = [one for one in process.net_connections() if one.status == psutil.CONN_LISTEN]
    assert {one.laddr.ip for one in ports} <= {"127.0.0.1", "::1"}
    with pytest.raises((HTTPError, URLError)) as caught:
        urlopen(f"http://127.0.0.1:{about['port']}/api/contents", timeout=20)
    process.kill()
    assert caught.value.code == 403
    seen("on 127.0.0.1 only; without the token: 403")


@pytest.mark.slow
@pytest.mark.parametrize("sent", ["SIGTERM", "SIGHUP", "SIGKILL"])
@pytest.mark.fault(
    "runs", "{sent} to JupyterLab, of which a kernel works on", "The server and the kernel end, and nothing is left"
)
def test_lab_ends(lab, seen, sent):
    process, about, runtime = lab()
    order = Request(
        f"http://127.0.0.1:{about['port']}/api/kernels",
        data=json.dumps({"name": "cpython-3.14"}).encode(),
        headers={"Authorization": f"token {about['token']}", "Content-Type": "application/json"},
    )
    urlopen(order, timeout=60).read()
    (kernel,) = small.wait_for(lambda: process.children())
    process.send_signal(getattr(signal, sent))
    assert small.wait_for(lambda: not (process.is_running() and process.poll() is None), 20)
    gone = small.wait_for(lambda: not kernel.is_running() or kernel.status() == psutil.STATUS_ZOMBIE, 20)
    if not gone:
        kernel.kill()
    assert gone
    left = [one.name for one in runtime.glob("*.json")]
    assert sent != "SIGTERM" or not left
    seen("both ended" + (f"; {len(left)} files with addresses of what is gone stayed" if left else "; no file stayed"))
