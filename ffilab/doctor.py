"""`make doctor`: what is missing or noisy on this machine, with the command that mends it.

Standard library only and no import of ours: it runs on a bare machine, before
anything is installed. Exit code 0 if everything that is needed is there, else 1.
"""

import argparse
import os
import platform
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MANAGERS = ("apt", "dnf", "brew", "conda")
NEEDED_GB = 6

# tool: (needed?, what for, packages by manager). None: that manager has no such package.
TOOLS = {
    "C compiler": (
        True,
        "compiles the native projects",
        {"apt": "build-essential", "dnf": "gcc gcc-c++", "brew": None, "conda": "c-compiler cxx-compiler"},
    ),
    "C++ compiler": (
        True,
        "compiles the bindings in C++",
        {"apt": "build-essential", "dnf": "gcc-c++", "brew": None, "conda": "cxx-compiler"},
    ),
    "make": (True, "runs the verbs", {"apt": "make", "dnf": "make", "brew": "make", "conda": "make"}),
    "git": (True, "stamps records with the commit", {"apt": "git", "dnf": "git", "brew": "git", "conda": "git"}),
    "Python 3.11+": (
        True,
        "starts everything",
        {"apt": "python3 python3-venv", "dnf": "python3", "brew": "python", "conda": "python>=3.11"},
    ),
    "venv module": (
        True,
        "holds the book's packages",
        {"apt": "python3-venv", "dnf": "python3", "brew": "python", "conda": "python"},
    ),
    "Rust": (
        False,
        "for the bindings in Rust; 1.88 or newer, by rustup where the system's is older",
        {"apt": "cargo rustc", "dnf": "cargo rust", "brew": "rust", "conda": "rust"},
    ),
    "valgrind": (
        False,
        "counts instructions without noise",
        {"apt": "valgrind", "dnf": "valgrind", "brew": None, "conda": "valgrind"},
    ),
    "perf": (False, "shows where the time goes", {"apt": "linux-perf", "dnf": "perf", "brew": None, "conda": None}),
    "lld, gold or mold": (
        False,
        "links the interpreters in other layouts; without it each has one, and no verdict can speak of the next build",
        {"apt": "lld", "dnf": "lld", "brew": "lld", "conda": "lld"},
    ),
    "Chromium": (
        False,
        "lets the tests open the pages",
        {"apt": "chromium", "dnf": "chromium", "brew": "--cask chromium", "conda": None},
    ),
}
# Libraries whose headers CPython needs if it has to be compiled here.
HEADERS = {
    "libffi headers": (
        "ffi.h",
        "without them a compiled CPython has no ctypes",
        {"apt": "libffi-dev", "dnf": "libffi-devel", "brew": "libffi", "conda": "libffi"},
    ),
    "zlib headers": (
        "zlib.h",
        "without them a compiled CPython has no zlib",
        {"apt": "zlib1g-dev", "dnf": "zlib-devel", "brew": "zlib", "conda": "zlib"},
    ),
    "OpenSSL headers": (
        "openssl/ssl.h",
        "without them a compiled CPython has no ssl",
        {"apt": "libssl-dev", "dnf": "openssl-devel", "brew": "openssl", "conda": "openssl"},
    ),
    "SQLite headers": (
        "sqlite3.h",
        "IPython keeps its history there",
        {"apt": "libsqlite3-dev", "dnf": "sqlite-devel", "brew": "sqlite", "conda": "sqlite"},
    ),
}
COMMANDS = {
    "C compiler": ("cc", "gcc", "clang"),
    "C++ compiler": ("c++", "g++", "clang++"),
    "make": ("make",),
    "git": ("git",),
    "valgrind": ("valgrind",),
    "perf": ("perf",),
    "lld, gold or mold": ("ld.lld", "ld.gold", "ld.mold"),
    "Chromium": ("chromium", "chromium-browser", "google-chrome"),
}
INSTALL = {
    "apt": "sudo apt-get install",
    "dnf": "sudo dnf install",
    "brew": "brew install",
    "conda": "conda install -c conda-forge",
}


# The chapter pair as package managers bring it, with the headers; each puts `python3.14` and `python3.14t` (Ubuntu's archive:
# `python3.14-nogil`) where `python3 ffilab/bootstrap.py kernels` finds them. Debian's own archive has no free-threaded build.
VERSION = "3.14"
PAIR = {
    "dnf": f"sudo dnf install python{VERSION}-devel python{VERSION}-freethreading-devel",
    "brew": f"brew install python@{VERSION} python-freethreading",
    "conda": f"conda create -n pair-gil -c conda-forge python={VERSION}; "
    f"conda create -n pair-t -c conda-forge python-freethreading={VERSION}; then "
    f'python3 ffilab/bootstrap.py kernels --kernels "{VERSION}=PATH/pair-gil/bin/python {VERSION}t=PATH/pair-t/bin/python" with the folder of your environments',
    "apt": f"on Ubuntu with the deadsnakes archive: sudo apt-get install python{VERSION}-dev python{VERSION}-nogil",
    "port": f"sudo port install python{VERSION.replace('.', '')} python{VERSION.replace('.', '')}-freethreading",
    "uv": f"uv python install {VERSION} {VERSION}t",
    "pyenv": f"pyenv install {VERSION} {VERSION}t   (compiles them)",
}


def ways_to_the_pair() -> list[str]:
    """Commands that bring the chapter pair without our compiling it, those of tools on this machine first."""
    commands = {"apt": "apt-get"}
    here = [name for name in PAIR if shutil.which(commands.get(name, name))]
    return [PAIR[name] for name in [*here, *(name for name in PAIR if name not in here)]]


def manager() -> str:
    """The package manager to advise: the active conda environment's, else the system's."""
    if os.environ.get("CONDA_PREFIX") and shutil.which("conda"):
        return "conda"
    commands = {"apt": "apt-get", "dnf": "dnf", "brew": "brew", "conda": "conda"}
    return next((name for name in MANAGERS if shutil.which(commands[name])), "apt")


def python_is_new_enough() -> bool:
    return sys.version_info >= (3, 11) or any(shutil.which(f"python3.{minor}") for minor in range(11, 21))


def present(tool: str) -> bool:
    """Is this tool on the machine?"""
    if tool == "Python 3.11+":
        return python_is_new_enough()
    if tool == "venv module":
        return subprocess.run([sys.executable, "-c", "import venv, ensurepip"], capture_output=True).returncode == 0
    if tool == "Rust":
        return rust_is_new_enough()
    return any(shutil.which(command) for command in COMMANDS[tool])


# What the crates of native/ ask for (cxx asks for most).
RUST = (1, 88)


def rust_is_new_enough() -> bool:
    """Are cargo and a rustc that can build our crates here?"""
    if not (shutil.which("cargo") and shutil.which("rustc")):
        return False
    answer = subprocess.run(["rustc", "--version"], capture_output=True, text=True).stdout
    version = re.search(r"(\d+)\.(\d+)", answer)
    return bool(version) and (int(version.group(1)), int(version.group(2))) >= RUST


def header_present(header: str) -> bool:
    """Does the C compiler find this header? True if there is no compiler to ask."""
    compiler = next((c for c in COMMANDS["C compiler"] if shutil.which(c)), None)
    if compiler is None:
        return True
    source = f"#include <{header}>\n"
    return subprocess.run([compiler, "-E", "-x", "c", "-"], input=source.encode(), capture_output=True).returncode == 0


def remedies(packages: dict) -> str:
    """The install command for this machine first, then those for the others."""
    here = manager()
    ordered = [here, *(name for name in MANAGERS if name != here)]
    known = [f"{INSTALL[name]} {packages[name]}" for name in ordered if packages[name]]
    if not packages["brew"] and platform.system() == "Darwin":
        known.insert(0, "xcode-select --install")
    return known[0] if len(known) == 1 else f"{known[0]}   (else: {'; '.join(known[1:])})"


def missing() -> list[tuple[str, bool, str]]:
    """(what and why, needed?, how to mend it) for everything that is not there."""
    gaps = [
        (f"{tool} ({why})", needed, remedies(packages))
        for tool, (needed, why, packages) in TOOLS.items()
        if not present(tool)
    ]
    gaps += [
        (f"{name} ({why})", False, remedies(packages))
        for name, (header, why, packages) in HEADERS.items()
        if not header_present(header)
    ]
    for folder in {ROOT, Path(os.environ.get("XDG_CACHE_HOME") or Path.home())}:
        while not folder.exists():
            folder = folder.parent
        free = shutil.disk_usage(folder).free / 1e9
        if free < NEEDED_GB:
            gaps.append((f"disk space in {folder}: {free:.1f} GB free", True, f"free {NEEDED_GB - free:.1f} GB"))
    return gaps


def steal_and_busy(seconds: float = 1.0) -> tuple[float, float] | None:
    """Shares of CPU time that the hypervisor stole and that others used, over a second. None without /proc."""
    try:
        before = _cpu_times()
        time.sleep(seconds)
        spent = [b - a for a, b in zip(before, _cpu_times())]
    except OSError:
        return None
    total = sum(spent) or 1
    return spent[7] / total, 1 - (spent[3] + spent[4]) / total


def _cpu_times() -> list[int]:
    return [int(x) for x in Path("/proc/stat").read_text().splitlines()[0].split()[1:9]]


CGROUPS = Path("/sys/fs/cgroup")


def cgroups() -> list[Path]:
    """Folders of the control groups that may limit our CPU time: our own and those above it, as far as they can be seen."""
    found = []
    for line in _read("/proc/self/cgroup").splitlines():
        controllers, name = line.split(":", 2)[1:]
        if controllers and "cpu" not in controllers.split(","):
            continue
        # Version 2 is one tree, and names no controllers. In a container the name may be one that only its host knows.
        root = CGROUPS / ("cpu" if controllers else "")
        inner = root / name.lstrip("/") if ".." not in name else root
        found += [folder for folder in (inner, *inner.parents) if folder.is_relative_to(root) and folder.is_dir()]
    return found


def quota() -> float | None:
    """How many cores' time the control groups leave us, the strictest of them; None if there is no limit."""
    limits = []
    for folder in cgroups():
        words = _read(folder / "cpu.max").split()
        words = words or [_read(folder / "cpu.cfs_quota_us"), _read(folder / "cpu.cfs_period_us")]
        if words[0].isdecimal() and words[1].isdecimal():
            limits.append(int(words[0]) / int(words[1]))
    return min(limits, default=None)


def throttled_s(groups: list[Path]) -> float:
    """Seconds for which quotas have kept control groups (`cgroups`) from cores so far, all cores together."""
    unit = {"throttled_usec": 1e-6, "throttled_time": 1e-9}
    lines = [line.split() for folder in groups for line in _read(folder / "cpu.stat").splitlines()]
    return sum(int(words[1]) * unit[words[0]] for words in lines if words[0] in unit)


def noise() -> list[str]:
    """What disturbs measurements just now, one sentence each; empty if it is quiet."""
    findings = []
    cores = os.cpu_count() or 1
    load = os.getloadavg()[0]
    if load > 0.5:
        findings.append(f"load {load:.2f} on {cores} cores: stop what else is running, or wait until it is below 0.5")
    if shares := steal_and_busy():
        steal, busy = shares
        if steal > 0.01:
            findings.append(
                f"the hypervisor takes {steal:.0%} of the CPU time: measure at another hour or on another machine"
            )
        if busy > 0.1:
            findings.append(f"other processes use {busy:.0%} of the CPU time just now")
    if (limit := quota()) is not None and limit < cores:
        findings.append(
            f"a quota leaves {limit:g} of {cores} cores' time (a container's limit): measure without it, or give it all cores"
        )
    governors = {_read(path) for path in Path("/sys/devices/system/cpu").glob("cpu[0-9]*/cpufreq/scaling_governor")}
    if governors - {"performance"}:
        findings.append(
            f"frequency governor {', '.join(sorted(governors))}: sudo cpupower frequency-set -g performance"
        )
    turbo = _read("/sys/devices/system/cpu/intel_pstate/no_turbo")
    if turbo == "0":
        findings.append("turbo is on: echo 1 | sudo tee /sys/devices/system/cpu/intel_pstate/no_turbo")
    if not Path("/proc/stat").exists():
        findings.append("this system does not show steal or governor: nothing is known of them")
    if cores < 2:
        findings.append("one core only: experiments with threads cannot show what runs in parallel")
    return findings


def _read(path) -> str:
    try:
        return Path(path).read_text().strip()
    except OSError:
        return ""


def interpreters() -> list[str]:
    """Names of the interpreters that are set up."""
    folder = ROOT / "kernels" / "kernels"
    return sorted(p.name.removeprefix("cpython-") for p in folder.iterdir() if (p / ".venv" / "ffilab.json").exists())


def main() -> int:
    argparse.ArgumentParser(prog="make doctor", description=__doc__.splitlines()[0]).parse_args()
    model = re.search(r"model name\s*: (.*)", _read("/proc/cpuinfo"))
    print(
        f"This machine: {model.group(1) if model else platform.processor() or platform.machine()}, "
        f"{os.cpu_count()} cores, {platform.system()} {platform.release()}"
    )
    print(f"Interpreters set up: {', '.join(interpreters()) or 'none yet'}")
    if not {VERSION, f"{VERSION}t"} <= set(interpreters()):
        print(
            "\nThe pair that every chapter needs: `python3 ffilab/bootstrap.py kernels` takes it from this machine, else lets uv download it, else compiles "
            "it, about four minutes each.\nIt comes without compiling by one of these; `python3 ffilab/bootstrap.py kernels` finds it then:"
        )
        for way in ways_to_the_pair():
            print(f"  {way}")
    gaps = missing()
    for title, wanted in (("Missing and needed", True), ("Missing, and something can do without", False)):
        rows = [(what, fix) for what, needed, fix in gaps if needed is wanted]
        if rows:
            print(f"\n{title}:")
            for what, fix in rows:
                print(f"  {what}\n      {fix}")
    if not gaps:
        print("\nNothing is missing.")
    findings = noise()
    print("\nNoise just now:" if findings else "\nQuiet: a good moment to measure.")
    for finding in findings:
        print(f"  {finding}")
    return 1 if any(needed for _, needed, _ in gaps) else 0


if __name__ == "__main__":
    sys.exit(main())
