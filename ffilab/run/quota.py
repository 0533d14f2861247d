"""Limits on CPU time by control groups, as containers have them. Standard library only: `make doctor` imports this."""

from pathlib import Path

from ffilab.run.system import read_text

CGROUPS = Path("/sys/fs/cgroup")


def cgroups() -> list:
    """Folders of the control groups that may limit our CPU time: our own and those above it, as far as they can be
    seen."""
    folders = []
    for line in read_text("/proc/self/cgroup").splitlines():
        controllers, name = line.split(":", 2)[1:]
        if controllers and "cpu" not in controllers.split(","):
            continue
        # Version 2 is one tree, and names no controllers. In a container the name may be one that only its host knows.
        root = CGROUPS / ("cpu" if controllers else "")
        inner = root / name.lstrip("/") if ".." not in name else root
        folders += [folder for folder in (inner, *inner.parents) if folder.is_relative_to(root) and folder.is_dir()]
    return folders


def cores():
    """How many cores' time the control groups leave us, the strictest of them; None if there is no limit."""
    limits = []
    for folder in cgroups():
        words = read_text(folder / "cpu.max").split()
        words = words or [read_text(folder / "cpu.cfs_quota_us"), read_text(folder / "cpu.cfs_period_us")]
        if words[0].isdecimal() and words[1].isdecimal():
            limits.append(int(words[0]) / int(words[1]))
    return min(limits, default=None)


def throttled_s(folders: list) -> float:
    """Seconds for which quotas have kept control groups (`cgroups`) from cores so far, all cores together."""
    unit = {"throttled_usec": 1e-6, "throttled_time": 1e-9}
    lines = [line.split() for folder in folders for line in read_text(folder / "cpu.stat").splitlines()]
    return sum(int(words[1]) * unit[words[0]] for words in lines if words[0] in unit)
