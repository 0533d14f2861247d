"""What a statement counts and locks, of all that the collector reaches, and where its threads are parked."""

import ctypes
import itertools
import json
import os
import struct
import threading
import time

from .names import ATOMS, chosen, described, imported, of_modules, walk
from .objects import IMMORTAL, Head, byte_of_lock, head, immortalize, in_thread, reachable, status, tells
from .running import SLICE, calibrated, made


def turning(loop, cpu):
    """Start a thread that runs the loop until what is returned is called."""
    ended, size = [], in_thread(calibrated, loop, 2 * SLICE)[0]

    def run():
        os.sched_setaffinity(0, {cpu})
        while not ended:
            loop(itertools.repeat(None, size), 0)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    time.sleep(0.02)

    def stop():
        ended.append(True)
        thread.join()

    return stop


def swept(cells, rest, seconds):
    """How often each value was seen to change, how often it was apart from that at rest, and how many sweeps there
    were."""
    changed, apart, last, sweeps = {}, {}, rest, 0
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or sweeps < 8:
        now = [cell.value for cell in cells]
        if now != rest or now != last:
            for number, (value, before, quiet) in enumerate(zip(now, last, rest)):
                if value != before:
                    changed[number] = changed.get(number, 0) + 1
                if value != quiet:
                    apart[number] = apart.get(number, 0) + 1
        last = now
        sweeps += 1
    return changed, apart, sweeps


def reached(walked):
    """All objects that the collector or a walk from the statement reaches, and by id the names that the walk found.
    What it found through a name of Python's own, such as `__self__`, is called by the module whose global it is, if it
    is one.
    """
    things = reachable() | {id(thing): thing for thing in walked.values()}
    theirs = of_modules()[0]
    names = {id(thing): theirs.get(id(thing), name) if "__" in name else name for name, thing in walked.items()}
    return list(things.values()), names


def locks_of(things):
    """Those of `threading`, as far as their byte tells whether they are held."""
    kinds = [type(lock) for lock in (threading.Lock(), threading.RLock()) if tells(lock)]
    return [thing for thing in things if type(thing) in kinds]


def told(thing, named):
    """What is said of an object."""
    return {"name": named.get(id(thing), described(thing)), "named": id(thing) in named, "status": status(thing)}


def watched(job, names):
    """What one thread counts and locks, of all that the collector reaches: while `pass` runs, then the statement."""
    loop = made(job["statement"], names)
    idle = made("pass", {})
    walked = walk(loop)
    for thing in chosen(job.get("immortal", ()), walked):
        immortalize(thing)
    in_thread(calibrated, loop)
    things, named = reached(walked)
    locks = locks_of(things)
    counted = [thing for thing in things if head(thing).local != IMMORTAL]
    held = [thing for thing in things if not isinstance(thing, ATOMS)]
    groups = {
        "counts": (counted, [ctypes.c_ssize_t.from_address(id(thing) + Head.shared.offset) for thing in counted]),
        "mutex": (held, [ctypes.c_uint8.from_address(id(thing) + Head.mutex.offset) for thing in held]),
        "lock": (locks, [byte_of_lock(thing) for thing in locks]),
    }
    os.sched_setaffinity(0, {job["cpus"][0]})
    answer = {}
    for running, one in (("pass", idle), ("statement", loop)):
        rests = {kind: [cell.value for cell in cells] for kind, (_, cells) in groups.items()}
        stop = turning(one, job["cpus"][-1])
        for kind, (those, cells) in groups.items():
            rest, share = rests[kind], 0.1 if kind == "lock" else 1 if one is loop else job["idle_share"]
            changed, apart, sweeps = swept(cells, rest, job["seconds"] * share)
            if one is loop:
                # What moved at all, and what the statement names, again and closely: a thousand times as many looks.
                near = sorted({*changed, *apart, *(n for n, thing in enumerate(those) if id(thing) in named)})
                those = [those[number] for number in near]
                changed, apart, sweeps = swept(
                    [cells[number] for number in near], [rest[number] for number in near], job["seconds"] / 2
                )
            answer[f"{running} {kind}"] = {
                "sweeps": sweeps,
                "seen": [
                    {
                        **told(those[number], named),
                        "changed": changed.get(number, 0),
                        "apart": apart.get(number, 0),
                    }
                    for number in sorted({*changed, *apart})
                ],
            }
        stop()
    return {**answer, "imported": imported(names)}


class Place(ctypes.Structure):
    """What the dynamic linker says of an address (Dl_info)."""

    _fields_ = (
        ("file", ctypes.c_char_p),
        ("base", ctypes.c_void_p),
        ("symbol", ctypes.c_char_p),
        ("address", ctypes.c_void_p),
    )


def executable_parts():
    """Where code lies in this process: first and last address of each part."""
    with open("/proc/self/maps") as maps:
        parts = [line.split()[:2] for line in maps]
    return [tuple(int(end, 16) for end in span.split("-")) for span, rights in parts if "x" in rights]


def file_of(address, where):
    """The name of the file that has this code."""
    place = Place()
    where(address, ctypes.byref(place))
    return os.path.basename((place.file or b"").decode(errors="replace"))


def frames(words, parts, where):
    """Words of a stack that point into code: name of the file, and of the function where the linker knows it."""
    found = []
    for start in range(0, len(words) - 7, 8):
        address = int.from_bytes(words[start : start + 8], "little")
        if any(first <= address < last for first, last in parts):
            place = Place()
            if where(ctypes.c_void_p(address), ctypes.byref(place)) and place.file:
                symbol = (place.symbol or b"").decode(errors="replace")
                found.append([os.path.basename(place.file.decode(errors="replace")), symbol])
    return found[:14]


def clean_stack():
    """Write over what the start of this thread left on its stack, such as the address of a lock."""
    nested = []
    for _ in range(100):
        nested = [nested]
    repr(nested)


def parked(job, names):
    """Where threads wait: the commonest stacks of those that wait for a futex, how many looks there were, and the
    objects for whose lock they wait: its address lies on the stack (Python/parking_lot.c, `struct wait_entry`)."""
    loop = made(job["statement"], names)
    things, named = reached(walk(loop))
    by_lock = {id(thing) + Head.mutex.offset: (thing, "mutex") for thing in things if not isinstance(thing, ATOMS)}
    by_lock |= {ctypes.addressof(byte_of_lock(lock)): (lock, "lock") for lock in locks_of(things)}
    size, ids, ended = in_thread(calibrated, loop)[0], {}, []

    def run(which):
        os.sched_setaffinity(0, {job["cpus"][which % len(job["cpus"])]})
        clean_stack()
        ids[which] = threading.get_native_id()
        while not ended:
            loop(itertools.repeat(None, size), which)

    threads = [threading.Thread(target=run, args=(which,), daemon=True) for which in range(job["threads"])]
    for thread in threads:
        thread.start()
    while len(ids) < len(threads):
        time.sleep(0.001)
    where, parts, stacks, waited, looks = ctypes.CDLL(None).dladdr, executable_parts(), {}, {}, 0
    memory = os.open("/proc/self/mem", os.O_RDONLY)
    calls = [os.open(f"/proc/self/task/{thread}/syscall", os.O_RDONLY) for thread in ids.values()]
    end = time.perf_counter() + job["seconds"]
    while time.perf_counter() < end:
        for call in calls:
            looks += 1
            said = os.pread(call, 300, 0).split()
            # Of what a thread does in the system only futexes are locks.
            if len(said) < 9 or int(said[0]) != job["futex"]:
                continue
            try:
                words = os.pread(memory, 1536, int(said[-2], 16))
            except OSError:
                continue
            stack = json.dumps(frames(words, parts, where))
            stacks[stack] = stacks.get(stack, 0) + 1
            for address in {*struct.unpack(f"{len(words) // 8}Q", words[: len(words) // 8 * 8])} & by_lock.keys():
                waited[address] = waited.get(address, 0) + 1
        time.sleep(0.0007)
    ended.append(True)
    commonest = sorted(stacks.items(), key=lambda item: -item[1])[:8]
    return {
        "looks": looks,
        "parked": sum(stacks.values()),
        "stacks": [[count, json.loads(stack)] for stack, count in commonest],
        "imported": imported(names),
        "waited": [
            {**told(by_lock[address][0], named), "kind": by_lock[address][1], "times": times}
            for address, times in waited.items()
        ],
        "python": file_of(ctypes.cast(ctypes.pythonapi.PyMutex_Lock, ctypes.c_void_p), where),
    }
