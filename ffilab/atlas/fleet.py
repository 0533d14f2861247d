"""A fleet: the same book measured on many machines, by Dask, and the atlas of their packs.

The scheduler runs here. On each machine that answers over SSH, the small environment of requirements/fleet.txt is made
and one worker of Dask's own SSHCluster started; with a scheduler that is there already, the machines are its workers.
Each worker offers the resource `machine`, and each run takes it, so that two of them never meet on one.
"""

import asyncio
import ipaddress
import logging
import shlex
import socket
import subprocess
import sys
import time
import warnings
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field
from importlib.util import module_from_spec, spec_from_file_location
from os.path import relpath
from pathlib import Path
from typing import Any

from ffilab.atlas.pack import Refused, valid
from ffilab.run import system
from ffilab.run.errors import UserError
from ffilab.run.paths import BUILD, ROOT
from ffilab.run.progress import LOG_INTERVAL_S, console, minutes, say
from ffilab.setup.environments import install_extra

CARRIED = Path(__file__).with_name("on_machine.py")


def carried_module():
    """on_machine.py, imported by the name that it has on the machines, where Dask looks for what it is to call."""
    spec = spec_from_file_location("on_machine", CARRIED)
    assert spec
    assert spec.loader
    module = sys.modules[spec.name] = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


on_machine = carried_module()
LOCK = ROOT / "requirements" / "fleet.txt"
FOLDER = BUILD / "fleet"
RESOURCE = "machine"
# How often a run is started on a machine whose worker was lost, and how long one is waited for.
ATTEMPTS = 3
WORKER_S = 90
# How long a machine may take to answer, and after how long a silent one is given up.
ANSWER_S, SILENT_S = 20, 15
POLL_S = 1.0
# A worker that only waits shall disturb nobody: no samples of stacks, no look at memory, a slow clock.
QUIET = {
    "distributed.worker.profile.enabled": False,
    "distributed.worker.memory.monitor-interval": "1 hour",
    "distributed.admin.system-monitor.interval": "10 s",
    "distributed.admin.tick.interval": "1 s",
    "distributed.admin.tick.limit": "1 minute",
    "distributed.nanny.pre-spawn-environ": {},
    # A book's environment is compiled, and its interpreters, by all cores.
    "distributed.scheduler.worker-ttl": "15 minutes",
}
# Dask's own web pages know neither keys nor passwords.
LOOPBACK_PAGE = {"dashboard": False, "dashboard_address": "127.0.0.1:0"}
# On the machine: the environment from its lock (standard input), made once; says where it is.
SET_UP = """
set -e
umask 077
folder=${XDG_CACHE_HOME:-$HOME/.cache}/ffi-hidden-corners/fleet
mkdir -p "$folder/dask"
cd "$folder"
# Not every tool that fails for lack of room says so.
trap 'code=$?; [ $code = 0 ] || head -c 5000000 /dev/zero 2>&1 >room; rm -f room; exit $code' EXIT
cat >asked.txt
command -v git >/dev/null || { echo "there is no git: install it there" >&2; exit 1; }
python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
    { echo "its python3 is missing or older than 3.11: install a newer one there" >&2; exit 1; }
if ! cmp -s asked.txt env/ready.txt; then
    python3 -m venv --clear env >&2
    env/bin/python -m pip install -q --disable-pip-version-check --require-hashes -r asked.txt >&2
    cp asked.txt env/ready.txt
fi
pwd
"""
KEEP_KEY = """umask 077; cd %s && cat >tls.pem"""


@dataclass(frozen=True)
class Host:
    """A machine as the reader names it: [NAME=][USER@]ADDRESS[:PORT]. Without NAME its pack has no name."""

    name: str
    address: str
    called: str = ""
    options: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, word: str) -> "Host":
        called, _, place = word.rpartition("=")
        user, _, place = place.rpartition("@")
        # Within brackets, an address of IPv6.
        has_port = place.count(":") == 1 or "]:" in place
        address, _, port = place.rpartition(":") if has_port else (place, "", "")
        if not address or (has_port and not (port.isdecimal() and 0 < int(port) < 1 << 16)):
            raise UserError(f"{word!r} is no machine: write [NAME=][USER@]ADDRESS[:PORT], or a name of ~/.ssh/config.")
        options: dict[str, Any] = {"username": user} if user else {}
        return cls(called or word, address.strip("[]"), called, options | ({"port": int(port)} if port else {}))


@dataclass
class Machine:
    """A machine of the fleet while it works. start: starts a worker on it; it raises Out where the machine cannot."""

    name: str
    called: str = ""
    start: Callable[[], Awaitable[Any]] | None = None
    worker: Any = None
    worked: bool = False
    pack: Path | None = None
    why: str = ""
    started: float = field(default_factory=time.monotonic)
    said: float = 0.0

    def say(self, text: str) -> None:
        say(f"  {self.name}, {minutes(time.monotonic() - self.started)}: {text}")
        self.said = time.monotonic()

    def tell(self, line: str) -> None:
        """Log what it says, and show some of it."""
        with (FOLDER / f"{file_name(self.name)}.log").open("a", encoding="utf-8") as log:
            log.write(line + "\n")
        if console.is_terminal or time.monotonic() - self.said > LOG_INTERVAL_S:
            self.say(line)


class Out(Exception):
    """Why a machine drops out, in a few words."""


def file_name(text: str) -> str:
    return "".join(sign if sign.isalnum() or sign in ".-_" else "-" for sign in text)


def hosts(words: Sequence[str]) -> list[Host]:
    """The machines that these words name. Raises UserError if there is none, or one twice."""
    if not words:
        raise UserError('Name the machines: `make fleet HOSTS="user@one user@two"`.')
    found = [Host.of(word) for word in words]
    places = [(host.address, *host.options.items()) for host in found]
    if len(set(places)) < len(places) or len({file_name(host.name) for host in found}) < len(found):
        raise UserError("A machine is named twice: two runs on one would disturb each other.")
    for host in found:
        try:
            valid({"label": host.called})
        except Refused as why:
            raise UserError(f"{host.called[:40]!r} is no name for a pack: {why}.") from None
    return found


def can_be_reached(found: Sequence[Host], listen: str, config: str) -> None:
    """Raise UserError if the scheduler would listen where a machine cannot find it: on loopback, and it is another."""
    if not is_loopback(listen):
        return
    for host in found:
        said = system.output("ssh", *(["-F", config] if config else []), "-G", "--", host.address)
        address = next((line.split()[1] for line in said.splitlines() if line.startswith("hostname ")), host.address)
        if not is_loopback(address):
            raise UserError(
                f"{host.name} could not find the scheduler, which listens on {listen}, for this machine alone: say "
                "LISTEN= with the address at which the others reach this machine."
            )


def is_loopback(address: str) -> bool:
    """Can only this machine reach it? True also for an unknown name: connecting will say so."""
    try:
        return ipaddress.ip_address(socket.getaddrinfo(address, None)[0][4][0]).is_loopback
    except OSError:
        return True


def bundle(folder: Path) -> str:
    """Write what is committed here into a bundle. Returns its commit."""

    def git(*words: str) -> str:
        answer = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True)
        if answer.returncode:
            raise UserError(f"A fleet is sent a clone, and git cannot bundle this one: {answer.stderr.strip()[-200:]}")
        return answer.stdout.strip()

    commit = git("rev-parse", "HEAD")
    if git("status", "--porcelain", "--untracked-files=no"):
        say("  what is not committed here is not sent")
    git("bundle", "create", "-q", str(folder / on_machine.BUNDLE), "HEAD")
    return commit


# ---- machines over SSH ----


async def started(host: Host, config: str, scheduler: str, keys: str) -> Any:
    """Make the environment on a machine, and start Dask's worker there. Raises Out."""
    import asyncssh  # pyright: ignore[reportMissingImports]
    from distributed.deploy.ssh import Worker  # pyright: ignore[reportMissingImports]

    how = {**host.options, "connect_timeout": ANSWER_S, "login_timeout": ANSWER_S, "keepalive_interval": SILENT_S}
    if config:
        how["config"] = [config]
    try:
        async with asyncssh.connect(host.address, **how) as connection:
            folder = await asked(connection, SET_UP, LOCK.read_text())
            await asked(connection, KEEP_KEY % shlex.quote(folder), keys)
    except TimeoutError:
        raise Out(f"does not answer within {ANSWER_S} s") from None
    except (OSError, asyncssh.Error) as error:
        raise Out(f"cannot be reached ({str(error) or type(error).__name__})") from None
    options = {
        "nthreads": 1,
        "name": host.name,
        "resources": {RESOURCE: 1},
        "memory_limit": 0,
        "local_directory": f"{folder}/dask",
        "death_timeout": WORKER_S,
        **LOOPBACK_PAGE,
        "security": {
            "require_encryption": True,
            **dict.fromkeys(("tls_ca_file", "tls_worker_cert", "tls_worker_key"), f"{folder}/tls.pem"),
        },
    }
    worker = Worker(scheduler, host.address, how, options, remote_python=shlex.quote(f"{folder}/env/bin/python"))
    try:
        await asyncio.wait_for(worker.start(), WORKER_S)
    except Exception as error:
        # All that Dask's Worker raises.
        raise Out(f"its worker did not start ({str(error) or type(error).__name__})") from None
    return worker


async def asked(connection, script: str, text: str) -> str:
    """Run a script on a machine, with this standard input. Returns its last line; raises Out with its last words."""
    answer = await connection.run(f"sh -c {shlex.quote(script)}", input=text)
    if answer.exit_status:
        words = f"{answer.stdout}\n{answer.stderr}"
        if "No space left" in words:
            raise Out("its disk is full: free some space there")
        raise Out(f"could not be set up ({(words.strip().splitlines() or ['no reason given'])[-1].strip()[:200]})")
    return (answer.stdout.strip().splitlines() or [""])[-1]


# ---- the work ----


async def worked(client, machine: Machine, step: Callable, *words) -> None:
    """See one machine through its work: start a worker, run the step on it, again where the worker was lost."""
    try:
        for attempt in range(1, ATTEMPTS + 1):
            address = await present(client, machine)
            machine.say("measures" if attempt == 1 else f"measures anew, {attempt} of {ATTEMPTS}")
            machine.worked = True
            content = await done(client, machine, address, step, *words)
            if content is not None:
                keep(machine, *content)
                return
            machine.say("its worker was lost")
        raise Out(f"lost its worker {ATTEMPTS} times")
    except Exception as why:
        # Whatever happens to one machine, the others go on.
        known = isinstance(why, Out | on_machine.Failed)
        machine.why = str(why) if known else f"{type(why).__name__}: {why}"
        machine.say(f"drops out: {machine.why}")


def keep(machine: Machine, content: bytes, failed: str) -> None:
    path = FOLDER / "packs" / f"{file_name(machine.name)}.tar.gz"
    path.write_bytes(content)
    machine.pack, machine.why = path, failed
    machine.say(f"its pack is here, {len(content) / 1e6:.2f} MB{', without what failed: ' + failed if failed else ''}")


async def workers_of(client) -> dict[str, dict]:
    """All workers by their address."""
    return (await client.scheduler.identity(n_workers=-1))["workers"]


async def address_of(client, machine: Machine) -> str:
    """Where the machine's worker is now; empty if there is none."""
    workers = await workers_of(client)
    return next((address for address, about in workers.items() if str(about["name"]) == machine.name), "")


async def present(client, machine: Machine) -> str:
    """The address of the machine's worker, which is started if need be. Raises Out if none comes."""
    until = time.monotonic() + WORKER_S
    while time.monotonic() < until:
        if machine.start and (machine.worker is None or machine.worker.proc.is_closing()):
            machine.say("is being set up")
            await ended(machine)
            machine.worker = await machine.start()
            until = time.monotonic() + WORKER_S
        if address := await address_of(client, machine):
            return address
        await asyncio.sleep(POLL_S)
    lost = "its worker was lost, and no other one" if machine.worked else "it can be reached, but its worker"
    raise Out(f"{lost} came within {WORKER_S} s: can it reach {client.scheduler.address}? If not, say LISTEN=")


async def ended(machine: Machine) -> None:
    """End the worker that was started on a machine, if it is there still."""
    if machine.worker:
        with suppress(Exception):
            await machine.worker.close()


async def done(client, machine: Machine, address: str, step: Callable, *words):
    """What the step returns on this worker; None if the worker is lost before. Raises what the step raises."""
    from distributed import KilledWorker  # pyright: ignore[reportMissingImports]
    from distributed.client import FutureCancelledError  # pyright: ignore[reportMissingImports]

    # Dask has read its module anew since; a function that is not in it would be sent as bytecode of this Python.
    step = getattr(sys.modules[step.__module__], step.__name__)
    future = client.submit(
        step, machine.name, machine.called, *words, workers=[address], resources={RESOURCE: 1}, pure=False, retries=0
    )
    result = asyncio.ensure_future(future.result())
    try:
        while True:
            await asyncio.wait([result], timeout=POLL_S)
            if result.done():
                return result.result()
            if await address_of(client, machine) != address:
                return None
    except (KilledWorker, FutureCancelledError):
        return None
    finally:
        result.cancel()
        await client.cancel([future], force=True)


async def run(client, machines: list[Machine], step: Callable, *words) -> None:
    """Work on all machines at once. step: gets the machine's name, what its pack is to be called, and `words`."""
    by_name = {machine.name: machine for machine in machines}
    for name in by_name:
        (FOLDER / f"{file_name(name)}.log").unlink(missing_ok=True)

    def tell(event) -> None:
        _, said = event
        if said["machine"] in by_name:
            by_name[said["machine"]].tell(said["line"])

    client.subscribe_topic(on_machine.TOPIC, tell)
    await asyncio.gather(*(worked(client, machine, step, *words) for machine in machines))


async def over_ssh(found: list[Host], listen: str, config: str, words: list) -> list[Machine]:
    """Start a scheduler here and a worker on each machine; work there."""
    import dask  # pyright: ignore[reportMissingImports]
    from distributed import Client, Scheduler  # pyright: ignore[reportMissingImports]
    from distributed.security import Security  # pyright: ignore[reportMissingImports]

    dask.config.set(QUIET)
    logging.getLogger("distributed").setLevel(logging.ERROR)
    security = Security.temporary()
    keys = security.tls_worker_key + security.tls_worker_cert
    scheduler = Scheduler(host=listen, port=0, protocol="tls", security=security, **LOOPBACK_PAGE)
    try:
        await scheduler
    except Exception as error:
        why = error.__cause__ or error
        raise UserError(f"The scheduler cannot listen on {listen} ({why}): name an address of this machine.") from None
    async with scheduler, Client(scheduler.address, security=security, asynchronous=True) as client:

        def starting(host: Host):
            return lambda: started(host, config, scheduler.address, keys)

        machines = [Machine(host.name, host.called, starting(host)) for host in found]
        try:
            await carried(client)
            await run(client, machines, *words)
        finally:
            for machine in machines:
                await ended(machine)
    return machines


async def joined(address: str, words: list) -> list[Machine]:
    """Work on all workers of a scheduler that is there."""
    from distributed import Client  # pyright: ignore[reportMissingImports]

    client = Client(address, asynchronous=True)
    async with AsyncExitStack() as stack:
        # Also where it never connects: Dask would warn of what nobody awaited.
        stack.push_async_exit(client)
        try:
            # What listens there may be no scheduler, and never say a word.
            await asyncio.wait_for(client, ANSWER_S)
        except (OSError, TypeError, ValueError):
            raise UserError(
                f"No Dask scheduler answers at {address} within {ANSWER_S} s: name the address that it says itself, "
                "and where it asks for keys set distributed.comm.tls."
            ) from None
        workers = (await workers_of(client)).values()
        lacking = [str(about["name"]) for about in workers if not about["resources"].get(RESOURCE)]
        if lacking or not workers:
            raise UserError(
                f"Of the workers at {address} {', '.join(lacking) or 'there is none'}"
                f"{' lacks' if lacking else ', and each needs'} the resource {RESOURCE}, by which two runs never meet: "
                f"start one worker a machine with `--nthreads 1 --resources {RESOURCE}=1`."
            )
        machines = [Machine(str(about["name"])) for about in workers]
        await carried(client)
        await run(client, machines, *words)
    return machines


async def carried(client) -> None:
    """Have Dask bring the clone and what is done with it to every worker, also to those that come later."""
    await client.upload_file(str(FOLDER / on_machine.BUNDLE), load=False)
    await client.upload_file(str(CARRIED))


def packs(
    words: Sequence[str], scheduler: str, listen: str, config: str, chapter: str, settings: dict[str, str]
) -> list[Machine]:
    """Measure on all machines, bring their packs to FOLDER / packs, and say who dropped out.

    words: the machines. scheduler: address of one that is there, instead of machines. listen: address of our own one.
    config: of SSH. settings: what a reader sets. Raises UserError if no pack came.
    """
    if scheduler and words:
        raise UserError("HOSTS names machines, and --scheduler has its own: give one of the two.")
    found = [] if scheduler else hosts(words)
    can_be_reached(found, listen, config)
    install_extra("distributed")
    # Versions of Python may differ from machine to machine: what is called lies in a file that each reads itself.
    warnings.filterwarnings("ignore", message="(?s).*Mismatched versions")
    # What an earlier fleet brought stays there.
    (FOLDER / "packs").mkdir(parents=True, exist_ok=True)
    verb = ["chapter", chapter] if chapter else ["book"]
    work = [on_machine.measured, bundle(FOLDER), verb, settings]
    machines = asyncio.run(joined(scheduler, work) if scheduler else over_ssh(found, listen, config, work))
    for machine in machines:
        if not machine.pack:
            say(f"  dropped out: {machine.name} ({machine.why})")
    arrived = [machine for machine in machines if machine.pack]
    if not arrived:
        raise UserError(f"No machine of {len(machines)} brought a pack: see the lines above, and {relpath(FOLDER)}.")
    say(f"  {len(arrived)} of {len(machines)} machines brought a pack, in {relpath(FOLDER / 'packs')}")
    return machines
