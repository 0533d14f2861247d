"""What the chapter "Arenas" finds on this system. The page quotes all of it."""

import ctypes
import os
import tomllib
from pathlib import Path

from ffilab.measure.case import program
from ffilab.run.errors import UserError
from ffilab.run.paths import NATIVE, NATIVE_OUT, without_paths
from ffilab.setup.catalogue import BY_LABEL
from ffilab.setup.installed import load, soabi

# Allocator: the crate that brings its sources. native/arenas/allocators builds all of them, in the versions that its
# lock names.
BROUGHT = {"jemalloc": "tikv-jemalloc-sys", "tcmalloc": "libtcmalloc-sys", "mimalloc": "libmimalloc-sys"}
HUGE_PAGES = Path("/sys/kernel/mm/transparent_hugepage")
SMAPS = Path("/proc/self/smaps")


def look(labels: list[str]) -> dict:
    """The setting of huge pages, and of those of 128 KiB; how many arenas glibc makes at most; malloc's tunables;
    allocators with their versions; why others are absent; why the extension in Rust is, by interpreter. Raises
    UserError without Linux and glibc."""
    if not SMAPS.exists() or not hasattr(ctypes.CDLL(None), "malloc_info"):
        raise UserError(
            f"This chapter is about glibc and Linux: it reads {SMAPS} and asks glibc's malloc_info, and this "
            "system does not have both."
        )
    absent = {name: why for name in BROUGHT if (why := not_brought(name))}
    return {
        "huge pages": setting(HUGE_PAGES / "enabled"),
        "huge pages of 128 KiB": setting(HUGE_PAGES / "hugepages-128kB" / "enabled"),
        # NARENAS_FROM_NCORES in glibc's malloc/arena.c: eight for each core that the process may use, with the main
        # arena.
        "arenas at most": 8 * len(os.sched_getaffinity(0)),
        "tunables": tunables(),
        "allocators": {name: version for name, version in versions().items() if name not in absent},
        "absent allocators": absent,
        "absent extension": {label: why for label in labels if (why := not_built(label))},
    }


def setting(file: Path) -> str:
    """What this system does with huge pages of one size."""
    try:
        text = file.read_text()
    except OSError:
        return "not known"
    return text[text.index("[") + 1 : text.index("]")]


def versions() -> dict[str, str]:
    """The locked version of the crate that brings each allocator. jemalloc's own version stands behind a plus sign."""
    locked = tomllib.loads((NATIVE / "arenas" / "allocators" / "crates.lock").read_text())["package"]
    found = {package["name"]: package["version"] for package in locked}
    return {name: f"{crate} {found[crate]}" for name, crate in BROUGHT.items()}


def not_brought(allocator: str) -> str | None:
    """Why an allocator is not here; None if it is."""
    folder = NATIVE_OUT / "arenas"
    if (folder / "cargo" / "allocators" / "release" / f"lib{allocator}.so").exists():
        return None
    note = folder / "missing-allocators.txt"
    why = without_paths(note.read_text()) if note.exists() else "`python3 ffilab/bootstrap.py native` does it"
    return f"not built: {why}"


def tunables() -> dict[str, str]:
    """What this system's loader says of glibc's malloc, by name; empty where it cannot say."""
    # The loader that this process was started with.
    with open("/proc/self/maps") as maps:
        loader = next((line.split()[-1] for line in maps if "/ld-linux" in line or "/ld-2" in line), None)
    if loader is None:
        return {}
    ended, out, _ = program([loader, "--list-tunables"])
    lines = [line.split(":", 1) for line in out.splitlines() if line.startswith("glibc.malloc.")]
    return {name: value.strip() for name, value in lines} if ended == "ok" else {}


def not_built(label: str) -> str | None:
    """Why there is no extension in Rust for an interpreter; None if there is."""
    note = NATIVE_OUT / "arenas" / soabi(load(BY_LABEL[label])) / "missing-arena_poc.txt"
    return f"the extension in Rust was not built: {without_paths(note.read_text())}" if note.exists() else None
