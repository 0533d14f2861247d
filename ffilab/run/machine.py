"""Facts about this machine: what it is, and how noisy it is now."""

import functools
import os
import platform
import resource
import shlex
import shutil
import subprocess
import time
from datetime import UTC, datetime

import psutil

from ffilab.run import quota, settings, system
from ffilab.run.errors import UserError
from ffilab.run.paths import NATIVE_OUT, ROOT


def commit() -> str:
    """The commit of this clone, with `-dirty` if files differ; `unknown` outside git."""
    # Installed, the package may lie in a clone of somebody else's.
    if not (ROOT / ".git").exists():
        return "unknown"
    return system.output("git", "-C", str(ROOT), "describe", "--always", "--dirty", "--abbrev=10") or "unknown"


def cores_to_pin() -> list[int]:
    """Numbers of the cores that this process may be pinned to; empty where the system cannot pin, or refuses it."""
    return cores() if can_pin() else []


@functools.cache
def can_pin() -> bool:
    """Does the system let a process be pinned? macOS cannot, and some containers refuse it, though they say where it
    may run."""
    try:
        # To where it may run anyway.
        os.sched_setaffinity(0, os.sched_getaffinity(0))
    except (AttributeError, OSError):
        return False
    return True


def cores() -> list[int]:
    """Numbers of the cores that this process may run on; empty where the system does not say."""
    return sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []


def cores_usable() -> int:
    """How many cores this process may run on."""
    return len(cores()) or os.cpu_count() or 1


def compiler() -> str:
    """The C compiler to use. Raises UserError if there is none."""
    named = os.environ.get("CC", "").strip()
    for name in filter(None, (named, "cc", "gcc", "clang")):
        try:
            program = shlex.split(name)[0]
        except (ValueError, IndexError) as error:
            raise UserError(f"CC is {name!r}, which is no command ({error}): name a C compiler.") from None
        if shutil.which(program):
            return name
        if name == named:
            raise UserError(f"CC is {name!r}, and there is no such compiler: name one that is here, or leave CC out.")
    raise UserError("There is no C compiler (cc, gcc or clang) on this machine: run `make doctor` for the command.")


def compiler_command() -> list[str]:
    """The C compiler to use, with the options that CC gives it. Raises UserError if there is none."""
    return shlex.split(compiler())


def compiler_version() -> str:
    """The C compiler to use, as it names itself; empty if there is none."""
    try:
        return version_of(tuple(compiler_command()))
    except UserError:
        return ""


@functools.cache
def version_of(command: tuple[str, ...]) -> str:
    """Return the first line of a compiler's `--version`."""
    return next(iter(system.output(*command, "--version").splitlines()), "") or "unknown"


# Beside the outputs of a chapter's native projects: the compiler that made them.
COMPILER = "compiler.txt"


def facts(chapter: str = "") -> dict:
    """Flat facts that stand with every figure; None for what the system does not show. chapter: whose native projects
    are measured."""
    cpuinfo = system.read_text("/proc/cpuinfo")
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "cpu": system.cpu_model(),
        "cores": psutil.cpu_count(logical=True),
        "cores_usable": cores_usable(),
        "cpu_quota": quota.cores(),
        "can_pin": can_pin(),
        "memory_gib": round(psutil.virtual_memory().total / 2**30, 1),
        "virtual_machine": " hypervisor" in cpuinfo if cpuinfo else None,
        "governor": system.read_text("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor") or None,
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "libc": " ".join(platform.libc_ver()).strip() or "unknown",
        "compiler": system.read_text(NATIVE_OUT / chapter / COMPILER) or compiler_version() or "none",
        "linker": settings.told("linker", "none"),
        "commit": commit(),
        **noise(),
    }


@functools.cache
def fixed_addresses() -> list[str]:
    """Command prefix that switches address randomisation off, where the system allows it (containers often do not)."""
    prefix = ["setarch", "-R"]
    allowed = shutil.which("setarch") and subprocess.run([*prefix, "true"], capture_output=True).returncode == 0
    return prefix if allowed else []


def noise() -> dict:
    """Load average of the last minute (processes) and time stolen by the hypervisor so far (s)."""
    return {"load": os.getloadavg()[0], "steal_s": getattr(psutil.cpu_times(), "steal", 0.0)}


def cpus_of(cpu: int | None) -> list[int]:
    """The CPUs on which others disturb a measurement: its core and that core's other hardware threads, where it is kept
    on one; else all that this process may use."""
    if cpu is None:
        return cores()
    siblings = system.read_text(f"/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list")
    ranges = [part.split("-") for part in siblings.split(",") if part]
    return sorted({cpu, *(number for ends in ranges for number in range(int(ends[0]), int(ends[-1]) + 1))})


class Watch:
    """What came between a measurement and its CPUs (`cpus_of`), from here to `end`.

    Strangers: CPU time of all processes there, less ours. Ours are this process and its children that have ended; of
    children that still run, the caller knows. What is left is other people's, and what the system did for us in its own
    name. A quota on CPU time: how long it kept us from the cores. A hypervisor: how long it gave them to others.
    """

    def __init__(self, cpu: int | None = None):
        self._cpus = cpus_of(cpu)
        # To find them takes longer than to read them, and stands in each block.
        self._groups = quota.cgroups()
        self._began = self._read()

    def end(self, children_s: float = 0.0) -> dict[str, float]:
        """CPU seconds of strangers (a tick of the clock is 10 ms, so that it may be a little below 0), seconds that a
        quota and a hypervisor took from all cores together, seconds that passed, and on how many CPUs. children_s: what
        our children that still run have used."""
        busy, stolen, ours, throttled, wall = (now - then for now, then in zip(self._read(), self._began))
        return {
            "strangers_s": round(busy - ours - children_s, 4),
            "throttled_s": round(throttled, 4),
            "steal_s": round(stolen, 4),
            "wall_s": round(wall, 4),
            "cpus": len(self._cpus),
        }

    def _read(self) -> tuple[float, ...]:
        times = psutil.cpu_times(percpu=True)
        # Without what the hypervisor gave to others. A container may show fewer CPUs than it names: then all of them.
        shown = [times[number] for number in self._cpus if number < len(times)] or times
        busy = sum(getattr(each, name, 0.0) for each in shown for name in ("user", "nice", "system", "irq", "softirq"))
        stolen = sum(getattr(each, "steal", 0.0) for each in shown)
        return busy, stolen, _own_s(), quota.throttled_s(self._groups), time.monotonic()


def _own_s() -> float:
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in used)


class Cores:
    """Chooses the core for the next restart: the least busy one, in turns among equals. It looks at load, never at a
    time."""

    PROBE_S = 0.05
    EVERY_S = 2.0
    SLACK = 0.2

    def __init__(self):
        self._quiet, self._probed, self._turn = [], -self.EVERY_S, 0

    def next(self) -> int | None:
        """Number of a core, or None where no process can be kept on one."""
        # Anew each time: a core may be taken away in the middle of a run.
        usable = cores_to_pin()
        self._quiet = [core for core in self._quiet if core in usable] or usable
        if not usable:
            return None
        if len(usable) > 1 and time.monotonic() - self._probed > self.EVERY_S:
            busy = psutil.cpu_percent(self.PROBE_S, percpu=True)
            least = min(busy[core] for core in usable)
            self._quiet = [core for core in usable if busy[core] <= least + 100 * self.SLACK]
            self._probed = time.monotonic()
        self._turn += 1
        return self._quiet[self._turn % len(self._quiet)]
