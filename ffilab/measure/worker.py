"""The worker side of every measurement: what runs inside a measured process.

Standard library only, no thread, no import of ours: start_worker.py runs it on every interpreter.

    start_worker.py serve IN OUT                        time arms on demand, over two file descriptors
    start_worker.py case FILE FUNCTION ARGUMENTS        call one function; its result is the last line of the output.
                                                        FILE may be a source instead, of more than one line
    start_worker.py arm ARM A B                         make one arm, run A loops, then B: what perf looks at
    start_worker.py memory ARM KIND                     make one arm and run it once: bytes at the peak
    start_worker.py marked ORDERS                       many arms one after the other, for callgrind

ARGUMENTS is a JSON object, and so is ARM: the arguments of `make`. `serve` speaks JSON lines, on descriptors of its
own, so that nothing an arm prints can be mistaken for an answer:

    {"op": "load", "cpu": core to stay on or null, "arms": {name: ARM}, "gaps": [[bytes, …], …]}
        -> {"facts": {...}, "missing": {name: reason}, "first_ns": {name: of its first pass}},
        or {"error": why it cannot stay there}
    {"op": "pin", "cpu": core to move to or null}
        -> {}, or {"error": the same}
    {"op": "time", "arm": name, "loops": n}
        -> {"ns": elapsed, "probes": [ns, …], "cpu_s": CPU seconds of this process so far, "gil_enabled": is it on},
        or {"error": what it raised}

Each order has a "number", and its answer the same one: what an arm that forked, or an earlier batch, answers is not
taken for it.

A batch runs in parts of equal length, and before, between and behind them lies a probe: a short loop that is always the
same. It takes longer while something else runs on the core's other hardware thread, which no clock of this system
counts.

It ends when its orders end.
"""

import gc
import keyword
import os
import resource
import sys
import time
import timeit
import types
from importlib.machinery import SourceFileLoader


def refused(value):
    """Raises TypeError: a result is of what JSON can hold, or it would come back as something else."""
    raise TypeError(f"JSON cannot hold a {type(value).__name__}")


try:
    import _json

    # What `json` itself calls. The module brings `re` along, a third of the time of a process that does little.
    HOW = dict.fromkeys(("array_hook", "object_hook", "object_pairs_hook"))
    HOW |= {"strict": True, "parse_float": float, "parse_int": int, "parse_constant": float}
    scan = _json.make_scanner(types.SimpleNamespace(**HOW))
    parts = _json.make_encoder(None, refused, _json.encode_basestring_ascii, None, ": ", ", ", False, False, True)
except (ImportError, AttributeError, TypeError):
    import json

    from_json, to_json = json.loads, json.dumps
else:

    def from_json(text):
        return scan(text, 0)[0]

    def to_json(value):
        return "".join(parts(value, 0))


# One loop in so many runs before each batch, untimed.
PRE_ROLL = 32
# Into so many parts a batch is cut by probes.
PARTS = 4
PROBE_LOOPS = 1_000
OURS = "_of_the_book"
LONGEST_ERROR = 300


def load(path, modules={}):
    """Import a file by its path, once."""
    if path not in modules:
        name = f"loaded_{len(modules)}"
        # Where pickle looks for the classes of a file.
        module = modules[path] = sys.modules[name] = types.ModuleType(name)
        module.__file__ = path
        SourceFileLoader(name, path).exec_module(module)
    return modules[path]


def used(source, modules={}):
    """Run the source of functions, imports and constants as a module, once."""
    if source not in modules:
        # Where pickle looks for its classes.
        module = modules[source] = types.ModuleType(f"used_{len(modules)}")
        sys.modules[module.__name__] = module
        exec(compile(source, "<uses>", "exec"), vars(module))
    return modules[source]


class Statement:
    """A statement, timed by `timeit` in a loop of its own. Its setup has run once; what that assigned are fast locals
    of the loop.

    own_loop: it runs once for all loops, and is given their number as `loops`.
    The garbage collector is off, as in `timeit`, unless the setup switches it on.
    """

    def __init__(self, statement, setup, uses, own_loop):
        before = vars(used(uses))
        self.names, self.own_loop = dict(before), own_loop
        gc.disable()
        try:
            exec(compile(setup, "<setup>", "exec"), self.names)
        finally:
            collects = gc.isenabled()
            gc.enable()
        assigned = [name for name, value in self.names.items() if before.get(name, before) is not value]
        names = [name for name in assigned if name.isidentifier() and not keyword.iskeyword(name)]
        # A name that no reader has.
        self.names[OURS] = self.names, gc.enable
        local = [f"{name} = {OURS}[0][{name!r}]" for name in names + ["loops"] * own_loop] + [f"{OURS}[1]()"] * collects
        # `timeit` would count the lines of its template too.
        compile(statement, "<statement>", "exec")
        self.timer = timeit.Timer(statement, "; ".join(local) or "pass", time.perf_counter_ns, self.names)
        # What it raises shows here.
        self.first_ns = self.timeit(1)

    def timeit(self, loops):
        if self.own_loop:
            self.names["loops"] = loops
        return self.timer.timeit(1 if self.own_loop else loops)


def make(file="", function="", arguments=None, **statement):
    """An arm: a statement, or what `function(**arguments)` of a file makes."""
    return call(file, function, arguments) if file else Statement(**statement)


def call(file, function, arguments):
    """`function(**arguments)` of a file, or of a source: more than one line."""
    module = used(file) if "\n" in file else load(file)
    return getattr(module, function)(**arguments)


def error_in_words(error):
    """The name of an exception and what it says, on one line of a length that can be read."""
    said = " ".join(str(error)[:LONGEST_ERROR].split())
    return f"{type(error).__name__}: {said}" if said else type(error).__name__


def gil_enabled():
    return getattr(sys, "_is_gil_enabled", lambda: True)()


def facts():
    """What this process is, read after the arms are imported."""
    # Here, as it takes milliseconds, and a case does not need it.
    import sysconfig

    return {
        "version": sys.version,
        "free_threaded": bool(sysconfig.get_config_var("Py_GIL_DISABLED")),
        "gil_enabled": gil_enabled(),
        "pid": os.getpid(),
    }


# [probe]
def probe():
    """Nanoseconds of a loop that is always the same: how fast the core is now."""
    started = time.perf_counter_ns()
    for _ in range(PROBE_LOOPS):
        pass
    return time.perf_counter_ns() - started


def batch(arm, loops):
    """Time so many loops of an arm, probes around its parts: ns in all, and theirs."""
    parts = min(PARTS, loops)
    elapsed, probes = 0, [probe()]
    for part in range(parts):
        took = arm.timeit(loops * (part + 1) // parts - loops * part // parts)
        probes.append(probe())
        if not isinstance(took, int) or took < 0:
            # A clock that stepped back, or no time at all: the runner says so.
            return took, probes
        elapsed += took
    return elapsed, probes


# [/probe]


def serve(orders, results):
    """Answer the orders of the runner, one after the other."""
    commands = os.fdopen(int(orders), "r", encoding="utf-8")
    answers = os.fdopen(int(results), "w", encoding="utf-8", buffering=1)
    arms, gaps = {}, []

    def pin(cpu):
        if cpu is not None:
            os.sched_setaffinity(0, {cpu})

    def answer(message):
        answers.write(to_json({"number": order["number"], **message}) + "\n")

    for line in commands:
        order = from_json(line)
        try:
            pin(order.get("cpu"))
        except OSError as error:
            answer({"error": error_in_words(error)})
            continue
        if order["op"] == "load":
            missing = {}
            for (name, arm), gap in zip(order["arms"].items(), order["gaps"]):
                gaps.append([bytes(size) for size in gap])
                try:
                    arms[name] = make(**arm)
                except BaseException as error:
                    missing[name] = error_in_words(error)
            first = {name: getattr(made, "first_ns", 0) for name, made in arms.items()}
            answer({"facts": facts(), "missing": missing, "first_ns": first})
        elif order["op"] == "pin":
            answer({})
        else:
            try:
                if order["loops"] >= PRE_ROLL:
                    # Untimed: what another worker left in the caches is gone before the clock starts.
                    arms[order["arm"]].timeit(order["loops"] // PRE_ROLL)
                elapsed, probes = batch(arms[order["arm"]], order["loops"])
            except BaseException as error:
                answer({"error": error_in_words(error)})
                continue
            cpu = resource.getrusage(resource.RUSAGE_SELF)
            spent = round(cpu.ru_utime + cpu.ru_stime, 4)
            answer({"ns": elapsed, "probes": probes, "cpu_s": spent, "gil_enabled": gil_enabled()})


def case(file, function, arguments):
    """One experiment. Whether the GIL is on is read after its imports and its work."""
    result = call(file, function, from_json(arguments))
    # On a line of its own, behind whatever the experiment printed.
    print("\n" + to_json({"result": result, "gil_enabled": gil_enabled()}))


def arm(described, warm_up, loops):
    """One arm for so many loops, after a warm-up."""
    made = make(**from_json(described))
    made.timeit(int(warm_up))
    made.timeit(int(loops))


def memory(described, kind):
    """Bytes at the peak: resident, of the process after setup and one pass; or traced, of one pass more."""
    made = make(**from_json(described))
    if kind == "resident" and os.path.exists("/proc/self/status"):
        # Not ru_maxrss: on Linux that of the process that started this one counts as well.
        with open("/proc/self/status") as file:
            most = 1024 * next(int(line.split()[1]) for line in file if line.startswith("VmHWM"))
    elif kind == "resident":
        most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    else:
        import tracemalloc

        tracemalloc.start()
        made.timeit(1)
        most = tracemalloc.get_traced_memory()[1]
    print("\n" + to_json({"bytes": most}))


def mark():
    """A C function that is called nowhere else, and that callgrind can be told to look for."""
    os.getsid(0)


def marked(orders):
    """Arms one after the other, with a mark around each batch.

    ORDERS is a JSON list of [ARM, warm-up loops, few loops, many loops]. After all warm-ups, each
    arm leaves two marks: after few loops and after many. An arm that cannot be made leaves none. Prints the positions
    of those that were made.
    """
    made, counts = {}, {}
    for number, (described, warm_up, few, many) in enumerate(from_json(orders)):
        try:
            made[number] = make(**described)
        except Exception:
            continue
        counts[number] = few, many
        made[number].timeit(warm_up)
    mark()
    for number, ready in made.items():
        for loops in counts[number]:
            ready.timeit(loops)
            mark()
    print(to_json(list(made)))


def main(order, *words):
    {"serve": serve, "case": case, "arm": arm, "memory": memory, "marked": marked}[order](*words)
