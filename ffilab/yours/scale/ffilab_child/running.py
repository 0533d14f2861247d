"""A statement as a loop, and slices of it in threads or processes."""

import ast
import gc
import itertools
import json
import marshal
import os
import resource
import sys
import threading
import time
import types

from .names import chosen, walk
from .objects import Refused, defer, immortalize, in_thread, in_words, reachable

CONTROL = "ffilab_x = 3; ffilab_x * ffilab_x; ffilab_x + 1; ffilab_x - 2; ffilab_x * ffilab_x; ffilab_x + 1"
LOOP = "def ffilab_loop(ffilab_passes, ffilab_thread):\n for ffilab_pass in ffilab_passes:\n  pass"
# ns: of a slice, of a phase, and the longest pass that can be measured.
SLICE, PHASE, LONGEST = 120_000, 12_000_000, 1_000_000_000
# Phases before the first that counts: code specialises, and so does the core.
WARM_UP = 2


def read_back(tree, file):
    """Bytecode as an import reads it from a file: constants of source that was just compiled are counted, these are
    immortal."""
    return marshal.loads(marshal.dumps(compile(tree, file, "exec")))


def namespace(job):
    """The names of a module in which the file and the setup have run."""
    module = types.ModuleType("ffilab_statement")
    sys.modules[module.__name__] = module
    names = vars(module)
    if job.get("file"):
        names["__file__"] = job["file"]
        with open(job["file"], "rb") as source:
            exec(read_back(ast.parse(source.read(), job["file"]), job["file"]), names)
    exec(read_back(ast.parse(job["setup"]), "setup"), names)
    return names


def made(statement, names, local=()):
    """The loop around a statement, whose globals are these. local: names that it fetches once, before its passes."""
    tree = ast.parse(LOOP)
    (function,) = (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))
    (each,) = (node for node in ast.walk(tree) if isinstance(node, ast.For))
    each.body = ast.parse(statement).body or each.body
    every = "{**vars(__import__('builtins')), **globals()}"
    function.body[:0] = ast.parse("\n".join(f"{word} = {every}[{word!r}]" for word in local)).body
    exec(read_back(ast.fix_missing_locations(tree), "statement"), names)
    return names.pop("ffilab_loop")


def calibrated(loop, most=SLICE):
    """How many passes take as long as a slice, and the ns of one. Raises Refused if a pass is too long."""
    passes, took = 1, 0
    while True:
        times = []
        for _ in range(3):
            began = time.perf_counter_ns()
            loop(itertools.repeat(None, passes), 0)
            times.append(time.perf_counter_ns() - began)
            if times[-1] > LONGEST * passes:
                raise Refused(f"one pass takes {times[-1] / 1e9 / passes:.1f} s: give a smaller piece of the work")
        took = max(min(times), 1)
        if took > most / 3 or passes > 10_000_000:
            return max(1, int(passes * most / took)), took / passes
        passes *= 3


def rows_of(loop, which, plan):
    """Run the loop in slices, in the phases of this thread and in those of all; a row for each slice.

    A row: number of the phase, ns at the begin and at the end, ns that it waited for a core, how often it was
    preempted, how often it waited, page faults.
    """
    start, length, count, workers = (plan[key] for key in ("start", "length", "count", "workers"))
    size = plan["sizes"][which]
    os.sched_setaffinity(0, {plan["cpus"][which % len(plan["cpus"])]})
    usage, clock, repeat, thread = resource.getrusage, time.perf_counter_ns, itertools.repeat, resource.RUSAGE_THREAD
    try:
        scheduled = os.open(f"/proc/self/task/{threading.get_native_id()}/schedstat", os.O_RDONLY)
    except OSError:
        scheduled = None
    rows = []
    for phase in range(count):
        end = start + (phase + 1) * length
        if phase % (workers + 1) not in (which, workers) or clock() > end:
            continue
        time.sleep(max(0, start + phase * length - clock()) / 1e9)
        while clock() < end:
            waited = os.pread(scheduled, 64, 0) if scheduled else b"0 0"
            before = usage(thread)
            began = clock()
            loop(repeat(None, size), which)
            ended = clock()
            after = usage(thread)
            later = os.pread(scheduled, 64, 0) if scheduled else b"0 0"
            delay = int(later.split()[1]) - int(waited.split()[1])
            events = [
                after.ru_nivcsw - before.ru_nivcsw,
                after.ru_nvcsw - before.ru_nvcsw,
                after.ru_minflt - before.ru_minflt,
            ]
            if phase >= WARM_UP:
                rows.append([phase, began - start, ended - start, delay, *events])
    return rows


def planned(loops, job):
    """When which thread runs: by the clock that all processes share."""
    known = {id(loop): in_thread(calibrated, loop) for loop in loops}
    sizes, lone = zip(*(known[id(loop)] for loop in loops))
    length = max(PHASE, *(int(4 * size * each) for size, each in zip(sizes, lone)))
    # Each alone and all together, twice at least, after the warm-up.
    count = WARM_UP + max(2 * (len(loops) + 1), int(job["seconds"] * 1e9 / length))
    start = time.perf_counter_ns() + 5_000_000
    plan = {"start": start, "length": length, "count": count, "workers": len(loops), "sizes": sizes}
    return {**plan, "cpus": job["cpus"]}


def in_threads(loops, job):
    """The rows of a loop for each thread, which run side by side."""
    plan, rows, failed = planned(loops, job), [[] for _ in loops], []

    def run(which):
        try:
            rows[which] = rows_of(loops[which], which, plan)
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=run, args=(which,)) for which in range(len(loops))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failed:
        raise Refused(f"it runs in one thread, and in {len(loops)} it raises {in_words(failed[0])}: make it safe first")
    return plan, rows


def in_processes(loops, job):
    """Run each loop in a process of its own: they share a machine and nothing else. Returns as `in_threads` does."""
    plan, pipes, rows = planned(loops, job), [], []
    for which, loop in enumerate(loops):
        reading, writing = os.pipe()
        if not os.fork():
            with os.fdopen(writing, "w") as pipe:
                json.dump(rows_of(loop, which, plan), pipe)
            os._exit(0)
        os.close(writing)
        pipes.append(reading)
    for reading in pipes:
        with os.fdopen(reading) as pipe:
            rows.append(json.loads(pipe.read() or "[]"))
    return plan, rows


def loops_of(job, names):
    """A loop for each thread."""
    count, statement = job["threads"], job["statement"]
    first = made(CONTROL if job.get("control") else statement, names, job.get("local", ()))
    if job.get("control"):
        return [first] * count
    if job.get("beside"):
        return [first] + [made(CONTROL, names)] * (count - 1)
    # What a setup maps is shared by processes that fork behind it.
    own = job.get("own") or bool(job.get("processes"))
    if not own:
        return [first] * count
    loops = [first]
    for _ in range(count - 1):
        try:
            its = in_thread(namespace, job)
        except Exception:
            if not job.get("processes"):
                raise
            # A setup that runs once alone, as one that makes a file does.
            its = names
        mixed = its if own is True else {**names, **{word: its[word] for word in own if word in its}}
        loops.append(made(statement, mixed))
    return loops


def measured(job, names):
    """The rows of one arm."""
    loops = loops_of(job, names)
    walked = walk(loops[0]) if job.get("immortal") or job.get("deferred") else {}
    every = job.get("immortal") == "everything"
    for thing in list(reachable().values()) if every else chosen(job.get("immortal", ()), walked):
        immortalize(thing)
    for thing in chosen(job.get("deferred", ()), walked):
        defer(thing)
    if job.get("no_collector"):
        gc.disable()
    plan, rows = in_processes(loops, job) if job.get("processes") else in_threads(loops, job)
    empty = in_thread(calibrated, made("pass", {}))[1]
    return {"sizes": plan["sizes"], "empty": empty, "rows": rows}
