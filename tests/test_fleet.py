"""A fleet: workers on loopback that stand for machines, a clone whose verbs take no time; over SSH in `test-all`."""

import asyncio
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from pathlib import Path

import psutil
import pytest

from ffilab.run.errors import UserError
from ffilab.setup import environments

fleet = pytest.importorskip("ffilab.atlas.fleet")
on_machine = fleet.on_machine

# What the clone of a test has as its bootstrap: `book` fails where WANTED asks for it; `pack` keeps what it was told.
BOOTSTRAP = """
import json, os, pathlib, sys, time
verb = sys.argv[1]
folder = pathlib.Path("_build")
print(f"works on {verb}")
wanted = os.environ.get("BUDGET")
if verb == "book":
    if wanted != "no records":
        (folder / "records").mkdir(parents=True)
    if wanted == "slow" and not pathlib.Path("../begun").exists():
        pathlib.Path("../begun").write_text(str(os.getpid()))
        time.sleep(600)
    if wanted != "smoke" and wanted != "slow":
        sys.exit("ffilab: loaders failed: see its page.")
elif (folder / "records").exists():
    (folder / "packs").mkdir()
    (folder / "packs" / "new.tar.gz").write_text(json.dumps({"words": sys.argv[1:], "environment": dict(os.environ)}))
else:
    sys.exit("ffilab: there are no records.")
"""


@pytest.fixture(autouse=True)
def no_loop_of_others():
    """The browser of other tests leaves a loop running in this thread, beside which no other may start."""
    running = asyncio._get_running_loop()
    asyncio._set_running_loop(None)
    yield
    asyncio._set_running_loop(running)


@pytest.fixture(scope="module", autouse=True)
def library():
    """Dask is in no reader's environment: it comes with the first fleet."""
    try:
        environments.install_extra("distributed")
    except UserError as why:
        pytest.skip(str(why))


def git(folder, *words):
    who = {f"GIT_{role}_{part}": "nobody@localhost" for role in ("AUTHOR", "COMMITTER") for part in ("NAME", "EMAIL")}
    subprocess.run(["git", *words], cwd=folder, check=True, capture_output=True, env={**os.environ, **who})


@pytest.fixture
def commit(tmp_path, monkeypatch):
    """A clone to be sent, whose verbs take no time; its commit."""
    clone = tmp_path / "clone"
    (clone / "ffilab").mkdir(parents=True)
    (clone / "ffilab" / "bootstrap.py").write_text(BOOTSTRAP)
    git(clone, "init", "-q")
    git(clone, "add", "-A")
    git(clone, "commit", "-q", "-m", "all")
    monkeypatch.setattr(fleet, "ROOT", clone)
    monkeypatch.setattr(fleet, "FOLDER", tmp_path / "fleet")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "fleet" / "packs").mkdir(parents=True)
    return fleet.bundle(tmp_path / "fleet")


@asynccontextmanager
async def cluster(workers=2, **options):
    import dask
    from distributed import LocalCluster

    options = {"resources": {fleet.RESOURCE: 1}, "threads_per_worker": 1, "dashboard_address": None, **options}
    # On a busy machine a killed worker takes long to come back.
    with dask.config.set({"distributed.deploy.lost-worker-timeout": "5 minutes"}):
        async with LocalCluster(host="127.0.0.1", n_workers=workers, asynchronous=True, **options) as there:
            yield there


def joined(work, **options):
    """The machines after this work on workers of a scheduler that is there."""

    async def all_of_it():
        async with cluster(**options) as there:
            return await fleet.joined(there.scheduler_address, work)

    return asyncio.run(all_of_it())


def packs(machines):
    return {machine.name: json.loads(machine.pack.read_bytes()) for machine in machines if machine.pack}


# ---- what is asked of a machine ----


def test_a_machine_brings_its_pack_and_its_verbs_see_nothing_of_dask(commit):
    machines = joined([on_machine.measured, commit, ["book"], {"BUDGET": "smoke"}])
    # Both are this machine, in one folder: they waited for each other there.
    assert set(packs(machines)) == {"0", "1"}
    for pack in packs(machines).values():
        assert pack["words"] == ["pack"]
        assert pack["environment"]["BUDGET"] == "smoke"
        told = {"MALLOC_TRIM_THRESHOLD_", "PYTHONHASHSEED", "OMP_NUM_THREADS", "DASK_INTERNAL_INHERIT_CONFIG"}
        assert not told & set(pack["environment"])
    log = (fleet.FOLDER / "0.log").read_text()
    assert "works on book" in log


def test_what_failed_of_a_book_costs_itself_alone_and_a_machine_without_records_drops_out(commit, capsys):
    (machine,) = joined([on_machine.measured, commit, ["book"], {"BUDGET": "partly"}], workers=1)
    assert machine.pack
    assert machine.why == "loaders failed: see its page."
    (machine,) = joined([on_machine.measured, commit, ["book"], {"BUDGET": "no records"}], workers=1)
    assert not machine.pack
    assert machine.why == "loaders failed: see its page."
    assert "drops out: loaders failed" in capsys.readouterr().err
    (machine,) = joined([on_machine.measured, commit, ["pack"], {"BUDGET": "no records"}], workers=1)
    assert machine.why == "there are no records."


def test_what_a_killed_worker_left_behind_ends(tmp_path):
    """A worker that is killed takes the command with it that it had started."""
    script = (
        f"import sys; sys.path.insert(0, {str(fleet.CARRIED.parent)!r}); import on_machine, pathlib\n"
        "work = on_machine.Work(pathlib.Path('.'), {'PATH': '/usr/bin:/bin'}, print, sys.stdout.fileno())\n"
        "work.run('sh', '-c', 'echo $$ >begun; exec sleep 600')"
    )
    worker = subprocess.Popen([sys.executable, "-c", script], cwd=tmp_path, stdout=subprocess.DEVNULL)
    begun = tmp_path / "begun"
    wait_for(lambda: begun.exists() and begun.read_text())
    child = psutil.Process(int(begun.read_text()))
    worker.kill()
    worker.wait()
    psutil.wait_procs([child], timeout=30)
    assert not child.is_running()


def test_a_full_disk_is_one_sentence(tmp_path):
    work = on_machine.Work(tmp_path, dict(os.environ), lambda line: None, 1)
    with pytest.raises(on_machine.Failed, match=r"disk that holds .* is full: free some space there$"):
        work.run("sh", "-c", "echo 'error: No space left on device (os error 28)'; echo more; exit 2")


def wait_for(condition, seconds=60):
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until, "it did not come"
        time.sleep(0.1)


# ---- the fleet ----


def killed_at_first(name, called, folder):
    """A step that kills its worker the first time, on one machine; on another one every time."""
    times = len(list(Path(folder).glob(f"{name}-*")))
    (Path(folder) / f"{name}-{times}").touch()
    if (name == "1" and not times) or name == "2":
        os.kill(os.getpid(), signal.SIGKILL)
    return name.encode(), ""


def test_what_was_lost_with_its_worker_is_tried_again_and_who_never_comes_back_is_named(
    commit, tmp_path, monkeypatch, capsys
):
    begun = tmp_path / "begun"
    begun.mkdir()
    monkeypatch.setattr(fleet, "WORKER_S", 300)
    machines = {machine.name: machine for machine in joined([killed_at_first, str(begun)], workers=3)}
    assert {name for name, machine in machines.items() if machine.pack} == {"0", "1"}
    assert len(list(begun.glob("1-*"))) == 2
    assert len(list(begun.glob("2-*"))) == fleet.ATTEMPTS
    assert machines["2"].why == f"lost its worker {fleet.ATTEMPTS} times"
    said = capsys.readouterr().err
    assert "measures anew, 2 of 3" in said


def alone(name, called, folder):
    """A step that refuses company."""
    (Path(folder) / "here").mkdir()
    time.sleep(0.3)
    (Path(folder) / "here").rmdir()
    return b"alone", ""


def test_two_runs_never_meet_on_one_machine(commit, tmp_path):
    async def twice():
        from distributed import Client

        async with cluster(1, threads_per_worker=4) as there, Client(there, asynchronous=True) as client:
            machines = [fleet.Machine("0"), fleet.Machine("0")]
            await fleet.run(client, machines, alone, str(tmp_path))
            return machines

    assert [machine.why for machine in asyncio.run(twice())] == ["", ""]


def test_a_worker_that_does_not_say_that_it_is_a_machine_is_refused(commit):
    with pytest.raises(UserError, match=r"0 lacks the resource machine.*--resources machine=1"):
        joined([alone], workers=1, resources={})
    with pytest.raises(UserError, match=r"there is none, and each needs the resource"):
        joined([alone], workers=0)


@pytest.mark.parametrize("address", ["tls://127.0.0.1:9", "what://127.0.0.1:9"])
def test_a_scheduler_that_cannot_be_joined_is_a_sentence(address):
    with pytest.raises(UserError, match=r"No Dask scheduler answers at .* set distributed\.comm\.tls"):
        asyncio.run(fleet.joined(address, []))
    with pytest.raises(UserError, match="give one of the two"):
        fleet.packs(["rack"], address, "127.0.0.1", "", "", {})


@pytest.mark.tool("ssh")
def test_a_machine_that_could_not_find_the_scheduler_is_named_at_once(tmp_path):
    """Kept for documentation: it is nobody's address."""
    (tmp_path / "config").write_text("Host rack\n  HostName 192.0.2.1\nHost here\n  HostName 127.0.0.1\n")
    here, rack = fleet.hosts(["here", "rack"])
    fleet.can_be_reached([here], "127.0.0.1", str(tmp_path / "config"))
    fleet.can_be_reached([rack], "192.0.2.7", str(tmp_path / "config"))
    with pytest.raises(UserError, match=r"rack could not find the scheduler, which listens on 127\.0\.0\.1.* LISTEN="):
        fleet.can_be_reached([here, rack], "127.0.0.1", str(tmp_path / "config"))


def test_no_scheduler_is_a_sentence(monkeypatch):
    monkeypatch.setattr(fleet, "ANSWER_S", 1)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        with pytest.raises(UserError, match="No Dask scheduler answers at"):
            asyncio.run(fleet.joined(f"tcp://127.0.0.1:{silent.getsockname()[1]}", []))


@pytest.mark.parametrize(
    ("word", "name", "address", "called", "options"),
    [
        ("rack", "rack", "rack", "", {}),
        ("me@10.0.0.7:2201", "me@10.0.0.7:2201", "10.0.0.7", "", {"username": "me", "port": 2201}),
        ("old=me@rack", "old", "rack", "old", {"username": "me"}),
        ("::1", "::1", "::1", "", {}),
        ("me@[::1]:2201", "me@[::1]:2201", "::1", "", {"username": "me", "port": 2201}),
    ],
)
def test_a_machine_is_named_as_ssh_names_it(word, name, address, called, options):
    assert fleet.Host.of(word) == fleet.Host(name, address, called, options)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "Name the machines"),
        (["me@"], "no machine"),
        (["rack:ssh"], "no machine"),
        (["rack:99999"], "no machine"),
        (["a", "b", "a"], "named twice"),
        (["x=a", "y=a"], "named twice"),
        (["<x>=a"], "no name for a pack"),
    ],
)
def test_what_names_no_fleet_is_refused(words, said):
    with pytest.raises(UserError, match=said):
        fleet.hosts(words)


def test_an_address_of_another_machine_cannot_be_listened_on(commit):
    # Kept for documentation: it is nobody's.
    with pytest.raises(UserError, match=r"cannot listen on 192\.0\.2\.1"):
        asyncio.run(fleet.over_ssh([], "192.0.2.1", "", []))


# ---- over SSH ----

SSHD = shutil.which("sshd", path=f"{os.environ['PATH']}:/usr/sbin:/sbin")


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


class Machines:
    """Servers of SSH on loopback, each with a home of its own, for the user who runs the tests; their keys are made
    here, and nothing of the user's own is read."""

    def __init__(self, folder):
        self.folder, self.servers, self.config = folder, [], folder / "config"
        for key in ("key", "host"):
            self.call("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / key))
        # What sshd asks for when root starts it.
        if not os.geteuid():
            Path("/run/sshd").mkdir(exist_ok=True)

    def call(self, *words):
        subprocess.run(words, check=True, capture_output=True)

    def add(self, name, home=None):
        """Start the server of a machine; returns its home."""
        home, port = home or self.folder / name, free_port()
        home.mkdir(exist_ok=True)
        lent = ("PATH", "PIP_CERT", "PIP_INDEX_URL", "SSL_CERT_FILE")
        told = {"XDG_CACHE_HOME": home, **{key: os.environ[key] for key in lent if key in os.environ}}
        settings = {
            "ListenAddress": "127.0.0.1",
            "Port": port,
            "HostKey": self.folder / "host",
            "AuthorizedKeysFile": self.folder / "key.pub",
            "StrictModes": "no",
            "UsePAM": "no",
            "PidFile": "none",
            "SetEnv": " ".join(f"{key}={value}" for key, value in told.items()),
        }
        (self.folder / f"{name}.sshd").write_text("".join(f"{key} {value}\n" for key, value in settings.items()))
        self.servers.append(subprocess.Popen([SSHD, "-D", "-f", str(self.folder / f"{name}.sshd")]))
        self.name(name, port)
        return home

    def name(self, name, port):
        with (self.folder / "known").open("a") as known:
            known.write(f"[127.0.0.1]:{port} {(self.folder / 'host.pub').read_text()}")
        with self.config.open("a") as config:
            config.write(
                f"Host {name}\n  HostName 127.0.0.1\n  Port {port}\n  IdentityFile {self.folder / 'key'}\n"
                f"  IdentitiesOnly yes\n  UserKnownHostsFile {self.folder / 'known'}\n"
            )


@pytest.fixture
def machines(tmp_path):
    if not SSHD or not shutil.which("ssh-keygen"):
        pytest.skip("there is no sshd here, which stands for other machines")
    (tmp_path / "machines").mkdir()
    there = Machines(tmp_path / "machines")
    yield there
    for server in there.servers:
        server.kill()
        server.wait()


@pytest.fixture
def full_disk(tmp_path):
    """A folder on a disk of its own that has next to no room."""
    folder = tmp_path / "full"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(folder)]
    if os.geteuid() or subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("a disk without room needs root and mounts")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


def measured_on(names, config, commit, budget):
    """The machines of these names after the work."""
    hosts = fleet.hosts(names)
    work = [on_machine.measured, commit, ["book"], {"BUDGET": budget}]
    return {machine.name: machine for machine in asyncio.run(fleet.over_ssh(hosts, "127.0.0.1", config, work))}


@pytest.mark.full
@pytest.mark.timeout(1200)
def test_over_ssh_a_killed_worker_is_replaced_and_a_silent_machine_named(commit, machines, monkeypatch, capsys):
    """Its lock is the real one, and the environments there are made from it."""
    monkeypatch.setattr(fleet, "ANSWER_S", 5)
    homes = {name: machines.add(name) for name in ("old", "new")}
    begun = homes["new"] / "ffi-hidden-corners" / "fleet" / "begun"

    def kill():
        """The worker of the machine `new`, while its book is at work."""
        wait_for(lambda: begun.exists() and begun.read_text(), 600)
        book = psutil.Process(int(begun.read_text()))
        worker = book.parents()[1]
        assert "spawn_main" in " ".join(worker.cmdline())
        worker.kill()

    with socket.create_server(("127.0.0.1", 0)) as silent, ThreadPoolExecutor() as pool:
        machines.name("silent", silent.getsockname()[1])
        killing = pool.submit(kill)
        (homes["old"] / "ffi-hidden-corners" / "fleet").mkdir(parents=True)
        (homes["old"] / "ffi-hidden-corners" / "fleet" / "begun").touch()
        came = measured_on(["old", "new", "silent"], str(machines.config), commit, "slow")
        killing.result()
    assert {name for name, machine in came.items() if machine.pack} == {"old", "new"}
    assert came["silent"].why == "does not answer within 5 s"
    said = capsys.readouterr().err
    assert "its worker was lost" in said
    assert "measures anew, 2 of 3" in said


@pytest.mark.full
def test_over_ssh_a_full_disk_is_named(commit, machines, full_disk):
    machines.add("full", full_disk)
    came = measured_on(["full"], str(machines.config), commit, "smoke")
    assert came["full"].why == "its disk is full: free some space there"
