"""Does a binding leak? Objects, bytes and references before and after many calls. Standard library only.

    leaks.py FOLDER --binding TITLE --calls 1000000 --seconds 2     every signature of CALLS
    leaks.py FOLDER --binding TITLE … --signature NAME              one of them

FOLDER holds the built bindings. The answer is one line of JSON: {binding: {signature: what `check` says}}, or {binding:
{"missing": reason}} if this interpreter has none.
"""

import argparse
import contextlib
import gc
import itertools
import json
import os
import sys
import textwrap
import time
from array import array

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import arms

try:
    import ctypes
except ImportError:  # an interpreter without it counts no bytes
    ctypes = None

# Growth that is no leak, however many calls: what a cache or the C library keeps for itself.
SLACK = {"objects": 32, "bytes": 4096, "peak_kib": 1024}
SLACK_REFERENCES = 2
# Calls that nothing is read from: the first, then those that say how long one takes.
FIRST, TRIED = 10, 100
# However slow a call is: one small block leaked by each shows in so many.
LEAST = 1_000


def fails(x):
    raise LookupError("from Python")


def word(x):
    return "a word"


def same(x):
    return x


# What a setup may use. Its own names are watched, these are not.
HELPERS = {"array": array, "fails": fails, "word": word, "same": same, "arms": arms}

# [calls]
# Signature: (expression, setup). Arguments are made at run time: literals are immortal in free-threaded builds, and a
# small int in all; nobody counts their references.
MORE = {
    "int → int, a large int": ("f(n)", "f, n = m.add_one, int('300000')"),
    "five ints, large": (
        "f(a, b, c, d, e)",
        "f = m.add_five; a, b, c, d, e = map(int, '100000 200000 300000 400000 500000'.split())",
    ),
    "float → float, an object": ("f(x)", "f, x = m.halve, float('2.5')"),
    "str in, an object": ("f(s)", "f, s = m.code_points, ' '.join(['mind', 'thé', 'gap'])"),
    "bytes in, an object": ("f(b)", "f, b = m.checksum, b' '.join([b'mind', b'gap'])"),
    "bytes out, 10,000": ("f(n, v)", "f, n, v = m.make_bytes, int('10000'), int('7')"),
    "list of large ints": ("f(x)", "f, x = m.sum_list, list(range(100_000, 100_020))"),
    "sequence of large ints": ("f(x)", "f, x = m.sum_sequence, tuple(range(100_000, 100_020))"),
    "empty list": ("f(x)", "f, x = m.sum_list, []"),
    "new struct": ("C(x, y)", "C, x, y = m.Point, float('3'), float('4')"),
    "fields of a struct": ("p.x + p.y", "p = m.Point(3.0, 4.0)"),
    "struct by pointer, an object": ("f(p, x)", "f, p, x = m.scale, m.Point(3.0, 4.0), float('1')"),
    "new C++ object, a large int": ("C(n)", "C, n = m.Counter, int('300000')"),
    "C++ method, a large int": ("c.add(n)", "c, n = m.Counter(5), int('300000')"),
    "C++ method, unlocked, a large int": ("c.add_unlocked(n)", "c, n = m.Counter(5), int('300000')"),
    "prepare a callback": ("f(g)", "f, g = m.callback, lambda x: x"),
    "callback, a large int": ("f(c, n)", "f, c, n = m.apply, m.callback(same), int('300000')"),
    "callback, detached, a large int": ("f(c, n)", "f, c, n = m.apply_detached, m.callback(same), int('300000')"),
    "root": ("f(x)", "f, x = m.root, float('2')"),
    "work": ("f(n)", "f, n = m.work, int('5000')"),
    "sleep": ("f(n)", "f, n = m.sleep_ms, int('0')"),
}

# The same for calls that most bindings refuse with an exception; a few answer something. None may leak.
REFUSED = {
    "root of -1": ("f(x)", "f, x = m.root, float('-1')"),
    "root of a str": ("f(x)", "f, x = m.root, ' '.join('ab')"),
    "int: a str": ("f(x)", "f, x = m.add_one, ' '.join('ab')"),
    "int: too large": ("f(x)", "f, x = m.add_one, 2 ** int('31')"),
    "int: far too large": ("f(x)", "f, x = m.add_one, 2 ** int('100')"),
    "int: none given": ("f()", "f = m.add_one"),
    "int: one too many": ("f(x, x)", "f, x = m.add_one, int('300000')"),
    "int: a keyword": ("f(x=x)", "f, x = m.add_one, int('300000')"),
    "no-op: an argument": ("f(x)", "f, x = m.noop, int('300000')"),
    "five ints: four": ("f(x, x, x, x)", "f, x = m.add_five, int('300000')"),
    "five ints: the last a str": ("f(x, x, x, x, s)", "f, x, s = m.add_five, int('300000'), ' '.join('ab')"),
    "float: a str": ("f(x)", "f, x = m.halve, ' '.join('ab')"),
    "float: too large": ("f(x)", "f, x = m.halve, 2 ** int('2000')"),
    "str: bytes": ("f(x)", "f, x = m.code_points, bytes([1, 2])"),
    "str: a surrogate": ("f(x)", "f, x = m.code_points, chr(int('0xdc80', 16)) * 2"),
    "bytes: a str": ("f(x)", "f, x = m.checksum, ' '.join('ab')"),
    "bytes out: negative": ("f(x, y)", "f, x, y = m.make_bytes, int('-100000'), int('7')"),
    "bytes out: no byte": ("f(x, y)", "f, x, y = m.make_bytes, int('100000'), int('300')"),
    "doubles: ints": ("f(x)", "f, x = m.ends, array('i', [0, 0])"),
    "doubles: a list": ("f(x)", "f, x = m.ends, [1.0, 2.0]"),
    "doubles: with gaps": ("f(x)", "f, x = m.ends, memoryview(array('d', [1, 2, 3]))[::2]"),
    "list: a str in it": ("f(x)", "f, x = m.sum_list, [*range(100_000, 100_020), ' '.join('ab')]"),
    "list: a large int in it": ("f(x)", "f, x = m.sum_list, [*range(100_000, 100_020), 2 ** int('31')]"),
    "list: a tuple": ("f(x)", "f, x = m.sum_list, tuple(range(100_000, 100_020))"),
    "sequence: a str in it": ("f(x)", "f, x = m.sum_sequence, (*range(100_000, 100_020), ' '.join('ab'))"),
    "sequence: an int": ("f(x)", "f, x = m.sum_sequence, int('300000')"),
    "struct by value: another object": ("f(x)", "f, x = m.dot, same.__class__(same.__code__, {})"),
    # No list: cffi makes an array of it, and C would write behind the end of an empty one.
    "struct by pointer: another object": (
        "f(x, y)",
        "f, x, y = m.scale, same.__class__(same.__code__, {}), float('1')",
    ),
    "struct by pointer: no number": ("f(p, x)", "f, p, x = m.scale, m.Point(3.0, 4.0), ' '.join('ab')"),
    "new struct: one number": ("C(x)", "C, x = m.Point, float('3')"),
    "new struct: a str": ("C(x, s)", "C, x, s = m.Point, float('3'), ' '.join('ab')"),
    "new C++ object: a str": ("C(x)", "C, x = m.Counter, ' '.join('ab')"),
    "new C++ object: too large": ("C(x)", "C, x = m.Counter, 2 ** int('100')"),
    "new C++ object: no number": ("C()", "C = m.Counter"),
    "C++ method: a str": ("c.add(x)", "c, x = m.Counter(5), ' '.join('ab')"),
    "C++ method, unlocked: a str": ("c.add_unlocked(x)", "c, x = m.Counter(5), ' '.join('ab')"),
    "callback: no function": ("f(x, n)", "f, x, n = m.apply, [], int('300000')"),
    "callback, detached: no function": ("f(x, n)", "f, x, n = m.apply_detached, [], int('300000')"),
    "callback: a str for it": ("f(c, x)", "f, c, x = m.apply, m.callback(same), ' '.join('ab')"),
    "callback raises": ("f(c, n)", "f, c, n = m.apply, m.callback(fails), int('300000')"),
    "callback, detached, raises": ("f(c, n)", "f, c, n = m.apply_detached, m.callback(fails), int('300000')"),
    "callback answers a str": ("f(c, n)", "f, c, n = m.apply, m.callback(word), int('300000')"),
    "callback, detached, answers a str": ("f(c, n)", "f, c, n = m.apply_detached, m.callback(word), int('300000')"),
}

# Signature: (statement, the call in it, setup). The chapter's own come first, as they are timed.
CALLS = {title: (statement, statement, setup) for title, (statement, setup) in arms.SIGNATURES.items()}
CALLS.update({title: (call, call, setup) for title, (call, setup) in MORE.items()})
CALLS.update(
    {title: (f"try:\n    {call}\nexcept Exception:\n    pass", call, setup) for title, (call, setup) in REFUSED.items()}
)
# [/calls]


# [counters]
FIELDS = "arena ordblks smblks hblks hblkhd usmblks fsmblks uordblks fordblks keepcost"


def mallinfo2():
    """glibc's function that says what malloc has handed out; None with another C library."""
    if ctypes is None:
        return None
    info = type("mallinfo2", (ctypes.Structure,), {"_fields_": [(name, ctypes.c_size_t) for name in FIELDS.split()]})
    try:
        function = ctypes.CDLL(None).mallinfo2
    except (AttributeError, OSError):
        return None
    function.restype, function.argtypes = info, ()
    return function


MALLINFO2 = mallinfo2()


def allocated_bytes():
    """Bytes in use by malloc; None without glibc.

    C++, Rust, libffi and PyMem_RawMalloc allocate there; with the GIL also objects of more than 512 bytes. All objects
    and what PyMem_Malloc gives are counted by sys.getallocatedblocks(), as blocks. In a free-threaded build neither
    sees one such block that grows: that is what peak memory is for.
    """
    if MALLINFO2 is None:
        return None
    now = MALLINFO2()
    return now.uordblks + now.hblkhd


def peak_kib():
    """Most resident memory since `forget_peak`; None where there is no /proc."""
    try:
        with open("/proc/self/status", encoding="ascii") as status:
            return next(int(line.split()[1]) for line in status if line.startswith("VmHWM"))
    except OSError:
        return None


def forget_peak():
    """Start `peak_kib` anew. Where that is not allowed, it goes on from the peak of the whole process."""
    try:
        with open("/proc/self/clear_refs", "w", encoding="ascii") as file:
            file.write("5")
    except OSError:
        pass


def is_counted(thing):
    """Are references to it counted at all? Those to immortal objects are not.

    Small ints and static classes are immortal everywhere, constants of code only in a free-threaded build. That build
    also defers some counting: functions, modules and classes start at 2**60, and each thread keeps its own count of the
    instances of a class until a collection adds it up. References from C and from lists are counted at once, and after
    gc.collect() a difference of two readings is exact there, too.
    """
    before = sys.getrefcount(thing)
    held = [thing] * 3
    return sys.getrefcount(thing) - before == len(held)


CLASS_OF = "class of "


class Watched:
    """Objects of which references are counted: name to a list of objects."""

    def __init__(self, things):
        self.things, self.immortal = {}, []
        for name, objects in things.items():
            if any(map(is_counted, objects)):
                self.things[name] = objects
            elif not name.startswith(CLASS_OF):
                self.immortal.append(name)

    def counts(self):
        return {name: sum(map(sys.getrefcount, objects)) for name, objects in self.things.items()}


def reading(watched):
    """All counters at this moment. The peak comes first, as collecting may raise it."""
    peak = peak_kib()
    # Twice: a free-threaded build frees in the second what the first has put aside.
    gc.collect()
    gc.collect()
    counts = watched.counts()
    return {"objects": sys.getallocatedblocks(), "bytes": allocated_bytes(), "peak_kib": peak, "references": counts}


# [/counters]


# [growth]
def growth(run, watched, calls):
    """What `calls` calls add to each counter, and their "ns"; None for a counter that this system lacks.

    The first reading's own objects, a dozen at most, are in the difference.
    """
    forget_peak()
    before = reading(watched)
    started = time.perf_counter_ns()
    run(calls)
    elapsed = time.perf_counter_ns() - started
    after = reading(watched)

    def difference(name):
        return None if before[name] is None else after[name] - before[name]

    grown = {name: difference(name) for name in SLACK}
    grown["references"] = {name: count - before["references"][name] for name, count in after["references"].items()}
    return {**grown, "ns": elapsed}


def grows(few, many, slack):
    """Does a counter grow with the number of calls? It grew in the few calls, and by more in twice as many.

    A cache that fills up grows in one of the two, or by the same in both.
    """
    return few is not None and min(few, many - few) > slack


def leaking(few, many):
    """Names of what leaks, from the growth over some calls and over twice as many. Lost references count as well."""
    found = [name for name, slack in SLACK.items() if grows(few[name], many[name], slack)]
    for name, first in few["references"].items():
        second = many["references"][name]
        if grows(first, second, SLACK_REFERENCES) or grows(-first, -second, SLACK_REFERENCES):
            found.append(f"references to {name}")
    return found


# [/growth]


# [check]
def loop(statement, names):
    """A function that runs the statement as often as it is told."""
    body = textwrap.indent(statement, " " * 8)
    exec(f"def run(times):\n    for _ in times:\n{body}\n", names)
    run = names.pop("run")
    return lambda calls: run(itertools.repeat(None, calls))


def outcome(call, names):
    """What a call comes to: (name of the type or the exception, its result if two calls return the same object)."""
    try:
        one, two = eval(call, names), eval(call, names)
    except SyntaxError:  # a statement
        return "nothing", None
    except Exception as error:
        return type(error).__name__, None
    return type(one).__name__, one if one is two else None


def things_of(names):
    """What to watch among the names of a setup: the objects, their classes, and the items of lists and tuples."""
    things = {}
    for name, thing in names.items():
        things[name] = [thing]
        if not isinstance(thing, type):
            things[CLASS_OF + name] = [type(thing)]
        if isinstance(thing, list | tuple) and thing:
            things[f"items of {name}"] = [item for item in thing if is_counted(item)] or thing
    return things


@contextlib.contextmanager
def quiet():
    """Drop what is printed of exceptions that nobody can catch: those of callbacks, in some bindings."""
    hook, stream = sys.unraisablehook, sys.stderr
    with open(os.devnull, "w", encoding="utf-8") as nowhere:
        sys.unraisablehook, sys.stderr = lambda unraisable: None, nowhere
        try:
            yield
        finally:
            sys.unraisablehook, sys.stderr = hook, stream


def check(m, signature, calls, seconds=None):
    """One signature of a binding, whose functions are `m`, over a third of the calls and then over two thirds.

    calls: at least three. seconds: so long at most, or about; fewer calls then. Returns {"calls", "ns" of one call,
    "outcome" of one call, "immortal": what cannot be watched, "few" and "many": growth over the two, "leaks": the names
    of what leaks}, or {"missing": reason} if the binding lacks it.
    """
    statement, call, setup = CALLS[signature]
    names = {"m": m, **HELPERS, "__builtins__": __builtins__}
    ours = set(names)
    try:
        exec(setup, names)
    except AttributeError as error:
        return {"missing": str(error)}
    made = {name: thing for name, thing in names.items() if name not in ours}
    with quiet():
        result, shared = outcome(call, names)
        things = {"m": m, **made} if shared is None else {"m": m, **made, "the result": shared}
        watched = Watched(things_of(things))
        run = loop(statement, names)
        run(FIRST)
        ns = growth(run, watched, TRIED)["ns"] / TRIED
        if seconds is not None:
            calls = max(LEAST, min(calls, int(seconds * 1e9 / ns)))
        third = calls // 3
        growth(run, watched, calls // 10)  # the caches fill up
        few, many = growth(run, watched, third), growth(run, watched, 2 * third)
    ns = (few["ns"] + many["ns"]) / (3 * third)
    said = {"calls": 3 * third, "ns": round(ns, 1), "outcome": result, "immortal": watched.immortal}
    return {**said, "few": few, "many": many, "leaks": leaking(few, many)}


def check_all(m, calls, seconds=None, signatures=None):
    """Every signature of CALLS, or those named: signature to what `check` says."""
    gc.freeze()  # what is there already takes no time to collect
    return {one: check(m, one, calls, seconds) for one in signatures or CALLS}


# [/check]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", help="where the bindings are built")
    parser.add_argument("--binding", choices=arms.EVERY_FORM, required=True)
    parser.add_argument("--signature", action="append", choices=CALLS, help="every one, if not given")
    parser.add_argument("--calls", type=int, default=1_000_000, help="of each signature")
    parser.add_argument("--seconds", type=float, help="for each signature, at most: fewer calls of slow ones")
    chosen = parser.parse_args()
    try:
        m = arms.load(chosen.folder, chosen.binding)
    except ImportError as error:
        said = {"missing": str(error)}
    else:
        said = check_all(m, chosen.calls, chosen.seconds, chosen.signature)
    print(json.dumps({chosen.binding: said}, ensure_ascii=False))


if __name__ == "__main__":
    main()
