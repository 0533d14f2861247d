"""What processes of `ffilab scale` could have answered, with a truth that is known."""

from ffilab.yours.scale import rules, slices

SIZE = 1000


def recorded(alone=100, together=200, preempted=0, late=0, threads=2, phases=12, each=20):
    """What a process answers whose pass takes so many ns, alone and together. preempted: of so many slices in a phase
    one took ten times as long. late: ns by which the second thread's slices begin later."""
    rows = [[] for _ in range(threads)]
    for phase in range(phases):
        in_all = phase % (threads + 1) == threads
        for which in range(threads) if in_all else [phase % (threads + 1)]:
            began = phase * 10**9 + which * late
            for number in range(each):
                lost = bool(preempted) and in_all and number % preempted == preempted - 1
                took = (together if in_all else alone) * SIZE * (10 if lost else 1)
                rows[which].append([phase, began, began + took, 0, int(lost), 0, 0])
                began += took
    return {"rows": rows, "sizes": [SIZE] * threads, "empty": 5.0}


def processes(ratio, times=5, empty=5.0, gil=False, faults=0.0, lost=0, rates=None):
    """Processes whose two threads do about so many times the work of one."""
    found = []
    for number in range(times):
        here = ratio * (1 + 0.01 * (number % 3 - 1))
        each = rates or (here / 2, here / 2)
        found.append(slices.Process((100.0,) * 2, (200 / here,) * 2, each, 100 - lost, 100, 0.0, faults, empty, gil))
    return found


def arms(base, control=2.0, ceiling=2.0, **others):
    """Arms by name; of others an underscore is a space."""
    known = {rules.BASE: base, rules.CONTROL: control, rules.PROCESSES: ceiling}
    known |= {name.replace("_", " "): value for name, value in others.items()}
    return {name: processes(value) if isinstance(value, float | int) else value for name, value in known.items()}


def moved(*names, kind="counts", sweeps=100, times=60, idle=()):
    """What a sweep saw move while the statement ran, and while `pass` did."""

    def sweep(those):
        seen = [dict(name=name, named=True, status="counted", changed=times, apart=0) for name in those]
        return {"sweeps": sweeps, "seen": seen}

    nothing = {f"{run} {each}": sweep(()) for run in ("pass", "statement") for each in ("counts", "mutex", "lock")}
    return {"imported": [], **nothing, f"statement {kind}": sweep([*names, *idle]), f"pass {kind}": sweep(idle)}


# Stacks of parked threads, the innermost frame first.
PARKED = {
    "srand": [["libc.so.6", ""], ["libc.so.6", "srandom"], ["libffi.so.8", "ffi_call"], ["_ctypes.so", ""]],
    "pybind11": [
        ["libc.so.6", ""],
        ["libc.so.6", "sem_clockwait"],
        ["python3.14", "_PyMutex_LockTimed"],
        ["python3.14", ""],
        ["mine.so", ""],
        ["python3.14", "cfunction_vectorcall"],
    ],
    "list": [
        ["libc.so.6", "sem_clockwait"],
        ["python3.14", "_PyMutex_LockTimed"],
        ["python3.14", "_PyCriticalSection_BeginMutex"],
    ],
    "localtime": [["libc.so.6", ""], ["python3.14", ""], ["python3.14", "_PyTime_localtime"]],
    "RLock": [["libc.so.6", ""], ["python3.14", "_PySemaphore_Wait"], ["python3.14", "_PyMutex_LockTimed"]],
    "std::mutex": [["libc.so.6", ""], ["libc.so.6", "pthread_mutex_lock"], ["mine.so", ""]],
    "putenv": [
        ["libc.so.6", ""],
        ["python3.14", ""],
        ["python3.14", "_PyEval_EvalFrameDefault"],
        ["python3.14", "PyArg_ParseTupleAndKeywords"],
    ],
    "dlsym": [["libc.so.6", "pthread_mutex_lock"], ["python3.14", ""], ["libc.so.6", "dlsym"], ["mine.so", ""]],
    "zlib": [["libc.so.6", ""], ["libc.so.6", ""], ["python3.14", "PyThread_acquire_lock_timed"], ["zlib.so", ""]],
}


def waits(**times):
    """What a look at parked threads says: for whose lock they waited, in how many of a hundred stacks."""
    seen = [{"name": name, "named": True, "status": "counted", "times": each} for name, each in times.items()]
    seen = [{**one, "kind": "lock" if one["name"] == "lock" else "mutex"} for one in seen]
    said = {"looks": 1000, "parked": 100, "stacks": [[100, PARKED["list"]]], "python": "python3.14"}
    return {**said, "waited": seen, "imported": []}
