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
import shlex
import shutil
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# It also runs as a script.
sys.path.insert(0, str(ROOT))

from ffilab.run import quota, system  # noqa: E402

NEEDED_GB = 6
# The command of each package manager: by the program that says that it is here, the most special first.
MANAGERS = {"conda": "conda", "apt-get": "apt", "dnf": "dnf", "pacman": "pacman", "brew": "brew"}
INSTALL = {
    "conda": "conda install -c conda-forge",
    "apt": "apt-get install",
    "dnf": "dnf install",
    "pacman": "pacman -S --needed",
    "brew": "brew install",
}

# tools: (needed?, what for, commands of which one is enough, packages by manager, or under `any` another way). headers:
# (needed where CPython is compiled?, file, why, packages).
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
    """The package manager to advise: conda if one of its environments is active, else what is here; empty if none is
    known."""
    programs = [name for name in MANAGERS if name != "conda" or os.environ.get("CONDA_PREFIX")]
    return next((MANAGERS[name] for name in programs if shutil.which(name)), "")


def command(packages: list[dict]) -> str:
    """One command that installs packages, each given by manager; where none is known, their names on Debian."""
    here = manager()
    names = list(dict.fromkeys(by_manager[here or "apt"] for by_manager in packages if (here or "apt") in by_manager))
    if not names:
        return "no package of it is known for this system"
    if not here:
        return f"install the packages that Debian calls {' '.join(names)}"
    as_root = here in ("apt", "dnf", "pacman") and os.geteuid() != 0
    how = "" if not as_root else "sudo " if shutil.which("sudo") else "as root: "
    return f"{how}{INSTALL[here]} {' '.join(names)}"


# What the crates of native/ ask for (cxx asks for most).
RUST = (1, 88)


def c_compilers() -> list[str]:
    """Commands that may be the C compiler: what CC names, then those that systems have."""
    try:
        named = shlex.split(os.environ.get("CC", ""))[:1]
    except ValueError:
        named = []
    return named + KNOWN["tools"]["C compiler"][2]


def present(tool: str, commands: list[str]) -> bool:
    """Is this tool on the machine?"""
    if tool == "Python 3.11+":
        return sys.version_info >= (3, 11) or any(shutil.which(f"python3.{minor}") for minor in range(11, 21))
    if tool == "venv module":
        return subprocess.run([sys.executable, "-c", "import venv, ensurepip"], capture_output=True).returncode == 0
    if tool == "Rust":
        version = re.search(r"(\d+)\.(\d+)", system.output("rustc", "--version")) if shutil.which("cargo") else None
        return version is not None and tuple(map(int, version.groups())) >= RUST
    if tool == "C compiler":
        commands = c_compilers()
    if tool == "lld":
        from ffilab.run import settings
        from ffilab.setup import linker

        return not settings.no_downloads() or linker.find() is not None
    return any(map(shutil.which, commands))


def header_present(header: str) -> bool:
    """Does the C compiler find this header? True if there is no compiler to ask."""
    compiler = next(filter(shutil.which, c_compilers()), None)
    if compiler is None:
        return True
    source = f"#include <{header}>\n"
    return subprocess.run([compiler, "-E", "-x", "c", "-"], input=source.encode(), capture_output=True).returncode == 0


def missing(kernels: str = "", budget: str = "") -> list[tuple[str, str, bool, dict]]:
    """(what, why, needed?, packages by manager) of each tool and header that is not there.

    kernels, budget: as in KERNELS and BUDGET. Headers are needed only if an interpreter will be compiled.
    """
    gaps = [
        (tool, why, needed, packages)
        for tool, (needed, why, commands, packages) in KNOWN["tools"].items()
        if not present(tool, commands)
    ]
    compiles = will_compile(kernels, budget)
    return gaps + [
        (name, why, needed and compiles, packages)
        for name, (needed, header, why, packages) in KNOWN["headers"].items()
        if not header_present(header)
    ]


def will_compile(kernels: str, budget: str = "") -> bool:
    """Will a verb compile an interpreter here? kernels, budget: as in KERNELS and BUDGET."""
    if sys.version_info < (3, 11):  # noqa: UP036  (it says there what is missing)
        return True
    from ffilab.run.errors import UserError
    from ffilab.setup.catalogue import COMPILED, parse
    from ffilab.setup.recipe import executable

    try:
        request = parse(kernels, budget)
        unnamed = [interpreter for interpreter in request.required if interpreter not in request.named]
        return request.pair == COMPILED and not all(executable(interpreter).exists() for interpreter in unnamed)
    except UserError:
        return True


def wrong_request(kernels: str, budget: str) -> str:
    """What is wrong with KERNELS or BUDGET, in a sentence; empty if nothing is."""
    if sys.version_info < (3, 11):  # noqa: UP036  (it says there what is missing)
        return ""
    from ffilab.run.errors import UserError
    from ffilab.setup.catalogue import parse

    try:
        parse(kernels, budget)
    except UserError as error:
        return str(error)
    return ""


def refusal(kernels: str, budget: str = "") -> str | None:
    """The sentence for a machine that lacks what every chapter needs, with one command; None if nothing is lacking."""
    lacking = [(what, packages) for what, _, needed, packages in missing(kernels, budget) if needed]
    if not lacking:
        return None
    names = [what for what, _ in lacking]
    listed = " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))
    return (
        f"Missing on this machine: {listed}. Run this, then the same command again:\n  "
        f"{command([p for _, p in lacking])}"
    )


def full_disks() -> list[str]:
    """One sentence for each folder whose disk has not the space for everything."""
    sentences = []
    for folder in {ROOT, Path(os.environ.get("XDG_CACHE_HOME") or Path.home())}:
        while not folder.exists():
            folder = folder.parent
        free = shutil.disk_usage(folder).free / 1e9
        if free < NEEDED_GB:
            sentences.append(f"{folder} has {free:.1f} GB free: free {NEEDED_GB - free:.1f} GB")
    return sentences


def steal_and_busy() -> tuple[float, float] | None:
    """Shares of CPU time that the hypervisor stole and that others used, over a second. None without /proc."""
    try:
        before = _cpu_times()
        time.sleep(1)
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
            f"a quota leaves {limit:g} of {cores} cores' time (a container's limit): measure without it, or give it "
            "all cores"
        )
    governors = {
        system.read_text(path) for path in Path("/sys/devices/system/cpu").glob("cpu[0-9]*/cpufreq/scaling_governor")
    }
    if governors - {"performance"}:
        findings.append(
            f"frequency governor {', '.join(sorted(governors))}: sudo cpupower frequency-set -g performance"
        )
    turbo = system.read_text("/sys/devices/system/cpu/intel_pstate/no_turbo")
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
            f"Every chapter needs {' and '.join(PAIR)}. `make book` compiles them, once: about nine minutes on two "
            "cores, four on eight. "
            "Each restart can then link them in another layout, and verdicts speak of the next build.\n"
            "`make book KERNELS=prebuilt` takes interpreters that others compiled, in about two minutes; its verdicts "
            "speak of these binaries alone. They come by one of these:"
        )
        lines += [f"  {way}" for way in WAYS_TO_THE_PAIR]
    return "\n".join(lines)


def main() -> int:
    argparse.ArgumentParser(prog="make doctor", description=__doc__.splitlines()[0]).parse_args()
    print(f"This machine: {system.cpu_model()}, {os.cpu_count()} cores, {platform.system()} {platform.release()}")
    print(about_interpreters())
    kernels, budget = os.environ.get("KERNELS", ""), os.environ.get("BUDGET", "")
    if wrong := wrong_request(kernels, budget):
        print(f"\n{wrong}")
        return 1
    gaps, disks = missing(kernels, budget), full_disks()
    needed, optional = ([gap for gap in gaps if gap[2] is wanted] for wanted in (True, False))
    if needed:
        print("\nMissing and needed:")
        for what, why, _, _ in needed:
            print(f"  {what} ({why})")
        print(f"All of it: {command([packages for *_, packages in needed])}")
    for sentence in disks:
        print(f"\nToo little space: {sentence}")
    if optional:
        print("\nMissing, and the book can do without:")
        for what, why, _, packages in optional:
            print(f"  {what} ({why})\n      {packages.get('any') or command([packages])}")
    if not gaps:
        print("\nNothing is missing.")
    findings = noise()
    print("\nNoise just now:" if findings else "\nQuiet: a good moment to measure.")
    for finding in findings:
        print(f"  {finding}")
    return 1 if needed or disks else 0


if __name__ == "__main__":
    sys.exit(main())
