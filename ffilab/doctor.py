"""`make doctor`: what is missing or noisy on this machine, with the command that fixes it.

Standard library only, also in what it imports of ours: it runs on a bare machine, before anything is installed.
Exit code 0 if everything that is needed is there, else 1.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# It also runs as a script.
sys.path.insert(0, str(ROOT))

from ffilab.run import quota  # noqa: E402

NEEDED_GB = 6
INSTALL = {"apt": "sudo apt-get install", "conda": "conda install -c conda-forge"}

# tools: (needed?, what for, commands of which one is enough, packages by manager). headers: (file, why, packages), which CPython needs
# if it has to be compiled here.
KNOWN = json.loads(Path(__file__).with_name("doctor.json").read_text(encoding="utf-8"))

VERSION = "3.14"
PAIR = (VERSION, f"{VERSION}t")
# Commands that bring the chapter pair, with the headers, without compiling it here.
WAYS_TO_THE_PAIR = (
    f"uv python install {' '.join(PAIR)}",
    f"on Ubuntu with the deadsnakes archive: sudo apt-get install python{VERSION}-dev python{VERSION}-nogil",
    f"conda create -n pair-gil -c conda-forge python={VERSION}; "
    f"conda create -n pair-t -c conda-forge python-freethreading={VERSION}; then "
    f'make book KERNELS="{VERSION}=PATH/pair-gil/bin/python {VERSION}t=PATH/pair-t/bin/python" '
    "with the folder of your environments",
)


def manager() -> str:
    """The package manager to advise: conda if one of its environments is active, else apt."""
    return "conda" if os.environ.get("CONDA_PREFIX") and shutil.which("conda") else "apt"


# What the crates of native/ ask for (cxx asks for most).
RUST = (1, 88)


def present(tool: str, commands: list[str]) -> bool:
    """Is this tool on the machine?"""
    if tool == "Python 3.11+":
        return sys.version_info >= (3, 11) or any(shutil.which(f"python3.{minor}") for minor in range(11, 21))
    if tool == "venv module":
        return subprocess.run([sys.executable, "-c", "import venv, ensurepip"], capture_output=True).returncode == 0
    if tool == "Rust":
        if not (shutil.which("cargo") and shutil.which("rustc")):
            return False
        answer = subprocess.run(["rustc", "--version"], capture_output=True, text=True).stdout
        version = re.search(r"(\d+)\.(\d+)", answer)
        return bool(version) and (int(version.group(1)), int(version.group(2))) >= RUST
    return any(map(shutil.which, commands))


def header_present(header: str) -> bool:
    """Does the C compiler find this header? True if there is no compiler to ask."""
    compiler = next(filter(shutil.which, KNOWN["tools"]["C compiler"][2]), None)
    if compiler is None:
        return True
    source = f"#include <{header}>\n"
    return subprocess.run([compiler, "-E", "-x", "c", "-"], input=source.encode(), capture_output=True).returncode == 0


def remedies(packages: dict) -> str:
    """The install command for this machine first, then the other one."""
    ordered = [manager(), *(name for name in INSTALL if name != manager())]
    commands = [f"{INSTALL[name]} {packages[name]}" for name in ordered if name in packages]
    return commands[0] if len(commands) == 1 else f"{commands[0]}   (or: {commands[1]})"


def missing() -> list[tuple[str, bool, str]]:
    """(what and why, needed?, how to mend it) for everything that is not there."""
    gaps = [
        (f"{tool} ({why})", needed, remedies(packages))
        for tool, (needed, why, commands, packages) in KNOWN["tools"].items()
        if not present(tool, commands)
    ]
    gaps += [
        (f"{name} ({why})", False, remedies(packages))
        for name, (header, why, packages) in KNOWN["headers"].items()
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
    limit = quota.cores()
    if limit is not None and limit < cores:
        findings.append(
            f"a quota leaves {limit:g} of {cores} cores' time (a container's limit): measure without it, or give it all cores"
        )
    governors = {
        quota.read(path) for path in Path("/sys/devices/system/cpu").glob("cpu[0-9]*/cpufreq/scaling_governor")
    }
    if governors - {"performance"}:
        findings.append(
            f"frequency governor {', '.join(sorted(governors))}: sudo cpupower frequency-set -g performance"
        )
    turbo = quota.read("/sys/devices/system/cpu/intel_pstate/no_turbo")
    if turbo == "0":
        findings.append("turbo is on: echo 1 | sudo tee /sys/devices/system/cpu/intel_pstate/no_turbo")
    if not Path("/proc/stat").exists():
        findings.append("this system does not show steal or governor: nothing is known of them")
    if cores < 2:
        findings.append("one core only: experiments with threads cannot show what runs in parallel")
    return findings


def interpreters() -> list:
    """Labels of the interpreters that are set up in this folder."""
    folder = ROOT / "kernels" / "kernels"
    return sorted(p.name.replace("cpython-", "") for p in folder.iterdir() if (p / ".venv" / "ffilab.json").exists())


def in_cache() -> list:
    """Labels of the chapter pair's interpreters that were compiled before, by any folder of this book."""
    if sys.version_info < (3, 11):  # noqa: UP036  (it says there what is missing)
        return []
    from ffilab.run.errors import UserError
    from ffilab.setup.catalogue import BY_LABEL
    from ffilab.setup.recipe import executable

    try:
        return [label for label in PAIR if executable(BY_LABEL[label]).exists()]
    except UserError:
        return []


def about_interpreters() -> str:
    """What is set up, and how the pair that every chapter needs can be had."""
    ready, cached = interpreters(), in_cache()
    lines = [f"Interpreters set up here: {', '.join(ready) or 'none yet'}."]
    lacking = [label for label in PAIR if label not in ready]
    if lacking and set(lacking) <= set(cached):
        lines.append(f"{' and '.join(lacking)} {'are' if lacking[1:] else 'is'} in the cache: nothing to compile.")
    elif lacking:
        lines.append(
            f"Every chapter needs {' and '.join(PAIR)}. `make book` takes them from this machine, else lets uv download them, "
            "else compiles them, about five minutes each on two cores.\nThey come without compiling by one of these:"
        )
        lines += [f"  {way}" for way in WAYS_TO_THE_PAIR]
    return "\n".join(lines)


def main() -> int:
    argparse.ArgumentParser(prog="make doctor", description=__doc__.splitlines()[0]).parse_args()
    model = re.search(r"model name\s*: (.*)", quota.read("/proc/cpuinfo"))
    print(
        f"This machine: {model.group(1) if model else platform.processor() or platform.machine()}, "
        f"{os.cpu_count()} cores, {platform.system()} {platform.release()}"
    )
    print(about_interpreters())
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
