"""Experiments of the chapter on GIL Balm that need a process of their own.

Standard library only: `ffilab/measure/worker.py case` calls one of these functions and prints what it returns.
"""

import copy
import ctypes
import gc
import glob
import heapq
import importlib
import importlib.machinery
import importlib.util
import json
import os
import pickle
import queue
import resource
import signal
import statistics
import struct
import sys
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import arms
import corpus
import probes
import threads as threads_of_all_chapters


# [churn]
def churn(folder, method, threads, tuples, how, arenas="as they come"):
    """B1-B3: `tuples` tuples of all lines made and dropped, shared out over threads that start together.

    Returns ns for each string and page faults for each tuple.

    how: `kept` or `released`, what we do with the GIL.
    arenas: of CPython's allocator. `held`: strings stay alive all over them, so that none can go back to the system. `given
    back`: what is free in them is filled first, so that one is empty and goes back whenever a tuple is dropped.
    """
    make = arms.text(arms.load(folder)).strings
    make(method)  # pools and blocks are there before the clock runs
    kept_alive = ARENAS[arenas](make)
    each = max(1, tuples // threads)

    def body():
        for _ in range(each):
            make(method, how == "released")

    faults = page_faults()
    if threads == 1:  # in the main thread, as a program without threads would
        started = time.perf_counter_ns()
        body()
        ns = time.perf_counter_ns() - started
    else:
        ns = threads_of_all_chapters.together([body] * threads)
    faults = page_faults() - faults
    made = each * threads
    del kept_alive
    return {"ns": ns / (made * corpus.LINES), "faults": faults / made}


def page_faults(whose=resource.RUSAGE_SELF):
    return resource.getrusage(whose).ru_minflt


def filled(make):
    """What is free is filled bit by bit, until the pages of a tuple go back to the system with it."""
    filling = []
    for _ in range(200):
        before = page_faults()
        make("new")
        if page_faults() - before > 100:
            break
        filling.append([f"{number:150}" for number in range(80)])
    return filling


# What stays alive meanwhile: nothing, a few strings in every arena, or what leaves each tuple arenas of its own.
ARENAS = {"as they come": lambda make: None, "held": arms.scattered, "given back": filled}


# [/churn]


# [started]
def started(folder, method, threads, each, state):
    """`each` tuples by each of some threads that have just started. Returns ns for each string, and page faults for each tuple.

    state: `warm`, if each thread makes and drops one tuple before the clock runs, or `cold`.
    """
    make = arms.text(arms.load(folder)).strings
    make(method)
    faults = []

    def prepared():
        if state == "warm":
            make(method)
        return body

    def body():
        before = page_faults(resource.RUSAGE_THREAD)
        for _ in range(each):
            make(method)
        faults.append(page_faults(resource.RUSAGE_THREAD) - before)

    ns = threads_of_all_chapters.made_and_run([prepared] * threads)
    made = each * threads
    return {"ns": ns / (made * corpus.LINES), "faults": sum(faults) / made}


# [/started]


# [texts]
def texts(folder, method, strings, lines):
    """Texts of several lengths by turns in one process, each until `strings` strings are made and dropped.

    A row for each length: ns for each string, the median of five turns.
    """
    module = arms.load(folder)
    makers = [module.Text(*corpus.ascii_text(count)).strings for count in lines]
    turns = []
    for _ in range(5):
        ns = []
        for make, count in zip(makers, lines, strict=True):
            make(method)
            started = time.perf_counter_ns()
            for _ in range(strings // count):
                make(method)
            ns.append((time.perf_counter_ns() - started) / (strings // count * count))
        turns.append(ns)
    return [{"lines": count, "ns": statistics.median(ns)} for count, ns in zip(lines, zip(*turns), strict=True)]


# [/texts]


# [memory]
def resident():
    """Bytes resident, counted page by page: /proc/self/status is behind by what each core has not added yet."""
    with open("/proc/self/smaps_rollup") as file:
        return next(int(line.split()[1]) * 1024 for line in file if line.startswith("Rss:"))


def memory(folder, method, tuples):
    """Bytes for each string while `tuples` tuples are alive, after all are dropped, and the least that is written for one.

    What is free goes back to the system first, or is filled with tuples that stay: else strings would move into memory that was
    resident before, and seem to take less than is written for them.
    """
    make = arms.text(arms.load(folder)).strings
    filling = [make(method)]
    written = least(folder, method, filling[0])
    gc.collect()
    if hasattr(ctypes.CDLL(None), "malloc_trim"):
        ctypes.CDLL(None).malloc_trim(0)
    in_a_row = 0
    while in_a_row < 5 and len(filling) < MOST:
        before = resident()
        filling.append(make(method))
        in_a_row = in_a_row + 1 if resident() - before >= written * corpus.LINES else 0
    held = [None] * tuples
    before = resident()
    for i in range(tuples):
        held[i] = make(method)
    alive = resident()
    held = None
    after = resident()
    strings = tuples * corpus.LINES
    return {"alive": (alive - before) / strings, "after": (after - before) / strings, "written": written}


# Tuples that fill what is free, at most.
MOST = 100


def least(folder, method, made):
    """Bytes written for each string and its place in the tuple: of CPython's own, the string with its characters."""
    if method == "new":
        return sum(map(sys.getsizeof, made)) / len(made) + struct.calcsize("P")
    return arms.written(folder)["pages" if method.startswith("pages") else "block"]


# [/memory]


# [behaviour]
def behaviour(folder):
    """B4, B6: what every kind of string answers to every probe, a row for each answer."""
    module = arms.load(folder)
    return [
        {"probe": name, "kind": kind, "answer": probes.answer(probe, *pair)}
        for name, probe in probes.PROBES.items()
        for kind, pair in probes.kinds(module).items()
    ]


# [/behaviour]


# [layouts]
def layouts(folder):
    """B5: by way of making and text, how many lines differ from CPython's own in text or hash."""
    module, rows = arms.load(folder), []
    for which, (data, lengths) in (("ASCII", corpus.ascii_text()), ("mixed", corpus.mixed_text())):
        text = module.Text(data, lengths)
        real = text.strings("new")
        for method in arms.OURS:
            ours = text.strings(method)
            wrong = sum(a != b or hash(a) != hash(b) for a, b in zip(ours, real, strict=True))
            rows.append({"method": method, "text": which, "wrong": wrong})
    return rows


# [/layouts]


# [misuse]
def hash_of_zero(module):
    """The original sets the hash to 0 and not to -1, which means "not known yet"."""
    x = module.counterfeit(b"key", 3, hash=0)
    return {"x == 'key'": x == "key", "x in {'key'}": x in {"key"}, "hash(x)": hash(x)}


def no_nul(module):
    """A view of the first two of four characters."""
    x = module.counterfeit(b"1234", 2)
    return {
        "x == '12'": x == "12",
        "PyUnicode_AsUTF8(x)": probes.utf8(x).decode(),
        "int(x)": probes.answer(lambda x, n: int(x), x, x),
    }


def not_ascii(module):
    """Bytes of UTF-8 that are flagged as ASCII, as where the original's corpus was cut."""
    data = "é".encode() * 8
    return {"list(x)": repr(list(module.counterfeit(data, len(data), compact=True)))}


def sub_interpreter(module):
    """Its types and pools belong to the process."""
    _interpreters = importlib.import_module("_interpreters")  # private, and the same from 3.13 to 3.15

    place = [p for p in sys.path if "balm" in p]
    found = _interpreters.create()
    code = f"import sys; sys.path[:0] = {place!r}\nimport balm"
    error = _interpreters.exec(found, code)
    return {"import balm": error.formatted if error else "works"}


def borrowed(module):
    """An address that is kept while the reference to it is not: the memory is still there, and is another string."""
    kept = module.Text(b"first", [5]).strings("pooled")
    address, was = id(kept[0]), str(kept[0])
    del kept
    again = module.Text(b"another", [7]).strings("pooled")
    found = ctypes.cast(address, ctypes.py_object).value
    return {"was": was, "is now": str(found), "found in the new tuple": any(found is x for x in again)}


def thread_is_gone(module):
    """Strings outlive the thread that made them, and the text that they are made of."""
    kept = []

    def body():
        text = module.Text(*corpus.ascii_text())
        kept.extend(text.strings(method) for method in arms.OURS)

    worker = threading.Thread(target=body)
    worker.start()
    worker.join()
    gc.collect()
    right = [hash(t) == hash(tuple(map(str, t))) for t in kept]
    kept.clear()
    return {"hash of every tuple": repr(right), "buffers left": module.buffers_alive()}


def at_exit(module):
    """Strings are alive when the interpreter ends."""
    module.kept = sys.modules["kept"] = [arms.text(module).strings(method) for method in arms.OURS]
    return {"strings alive": sum(map(len, module.kept))}


MISUSE = {
    "a hash of 0": hash_of_zero,
    "no NUL at the end": no_nul,
    "bytes that are not ASCII": not_ascii,
    "a borrowed reference": borrowed,
    "another interpreter": sub_interpreter,
    "the maker's thread is gone": thread_is_gone,
    "alive at exit": at_exit,
}


def misuse(folder, what):
    """One of MISUSE: what was asked after it and the answer, a row for each. The process may end by it."""
    return [{"asked": asked, "answer": str(said)} for asked, said in MISUSE[what](arms.load(folder)).items()]


# [/misuse]


# [layout facts]
def layout_facts(folder):
    """Where this build keeps what a forgery has to fill in: a row for each field."""
    return [{"field": name, "is": value} for name, value in arms.load(folder).layout().items()]


# [/layout facts]


# [another layout]
# Of an object that is never freed, in all builds.
FOR_GOOD = (0xFFFFFFFF).to_bytes(4, sys.byteorder)


def written(layout, kind, fields):
    """An object of our own bytes, by the layout of some build. fields: 8 bytes each, or 4 for bits, by name."""
    at = layout["before a tuple, for the garbage collector"]
    memory = ctypes.create_string_buffer(256)
    fields = {"PyObject, reference count": FOR_GOOD, "PyObject, ob_type": id(kind), **fields}
    for name, value in fields.items():
        here = value if isinstance(value, bytes) else value.to_bytes(8, sys.byteorder, signed=True)
        offset = at + layout[name]
        memory[offset : offset + len(here)] = here
    kept.append(memory)
    return ctypes.cast(ctypes.addressof(memory) + at, ctypes.py_object).value


kept = []


def as_str(layout):
    text = ctypes.create_string_buffer(b"pi")
    kept.append(text)
    bits = sum(layout[name] for name in ("state, one byte a character", "state, compact", "state, ascii"))
    bits -= layout["state, compact"]
    x = written(
        layout,
        probes.Ordinary,
        {
            "PyASCIIObject, length": 2,
            "PyASCIIObject, hash": -1,
            "PyASCIIObject, state": bits.to_bytes(4, sys.byteorder),
            "PyCompactUnicodeObject, utf8_length": 2,
            "PyCompactUnicodeObject, utf8": ctypes.addressof(text),
            "PyUnicodeObject, data": ctypes.addressof(text),
        },
    )
    return {
        "len(x) == 2": lambda: len(x) == 2,
        "x == 'pi'": lambda: x == "pi",
        "x in {'pi'}": lambda: x in {"pi"},
        "x + x == 'pipi'": lambda: x + x == "pipi",
    }


def as_tuple(layout):
    # The number of items stands right behind the head, in all builds. Not all have a place for the hash.
    fields = {"PyTupleObject, ob_size": 1, "PyTupleObject, ob_item": id("pi")}
    if layout["PyTupleObject, ob_hash"] is not None:
        fields["PyTupleObject, ob_hash"] = -1
    x = written({**layout, "PyTupleObject, ob_size": layout["PyObject, size"]}, tuple, fields)
    return {
        "len(x) == 1": lambda: len(x) == 1,
        "x == ('pi',)": lambda: x == ("pi",),
        "x in {('pi',)}": lambda: x in {("pi",)},
    }


def our_module(layout):
    """Our module as it was built for another CPython, loaded by force: its file's name alone would keep it out."""
    (path,) = glob.glob(os.path.join(layout["folder"], layout["tag"], "balm.*"))
    loader = importlib.machinery.ExtensionFileLoader("balm", path)
    found = importlib.util.spec_from_file_location("balm", path, loader=loader)

    def imported():
        module = importlib.util.module_from_spec(found)
        loader.exec_module(module)
        kept.append(module.Text(b"pi", [2]).strings("block")[0])
        return True

    return {"import balm": imported, "x == 'pi'": lambda: kept[0] == "pi", "x in {'pi'}": lambda: kept[0] in {"pi"}}


BY_LAYOUT = {"a str": as_str, "a tuple": as_tuple, "our module": our_module}


def another_layout(made, layout):
    """One of BY_LAYOUT: the first question to which the answer is not True, with the answer; empty if there is none.

    The process may end by it.
    """
    for name, ask in BY_LAYOUT[made](layout).items():
        said = probes.answer(lambda ask, n: ask(), ask, None)
        if said != "True":
            # Of an error, what it says, without the folder of the file that it speaks of.
            return {"wrong": f"{name}: {said}".replace(os.path.join(layout.get("folder", ""), ""), "")}
    return {"wrong": ""}


# [/another layout]


# [mutable]
def appended(x, more):
    for item in more:
        x.append(item)
    return list(x)


def pushed(x):
    """heapq is C, and appends as any C code does: by PyList_Append, which asks no method."""
    heapq.heappush(x, 9)
    return list(x)


def cleared(x):
    x.clear()
    return list(x)


# What is done with a list of three items that has room for four, and whether its type has an append of its own.
MUTABLE = {
    "sort it": (False, lambda x: (x.sort(reverse=True), list(x))[1]),
    "append one item, for which there is room": (False, lambda x: appended(x, [4])),
    "append two items, one too many": (False, lambda x: appended(x, [4, 5])),
    "clear it": (False, cleared),
    "its own append: append two items": (True, lambda x: appended(x, [4, 5])),
    "its own append: append one item, then heapq.heappush": (True, lambda x: (appended(x, [4]), pushed(x))[1]),
}


def mutable(folder, what):
    """One of MUTABLE: what came of it. The process may end by it."""
    appends, act = MUTABLE[what]
    return [{"asked": "x is now", "answer": str(act(arms.load(folder).foreign_list((1, 2, 3), 4, appends)))}]


# [/mutable]


# [forged]
def forged(folder, data, length, unknown_hash):
    """The exercise: a counterfeit of `12`, and what a `12` must do."""
    x = arms.load(folder).counterfeit(bytes.fromhex(data), length, hash=unknown_hash)
    return {
        "x == '12'": x == "12",
        "x in {'12'}": x in {"12"},
        "{x: 1}['12']": {x: 1}.get("12") == 1,
        "int(x) == 12": probes.answer(lambda x, n: int(x), x, x) == "12",
    }


# [/forged]


# [forked]
def forked(folder, forks):
    """Forks while another thread makes and ends strings in every way; each child makes some too. How many children ended well.

    A child that hangs is ended by an alarm, and did not end well.
    """
    text, over = arms.text(arms.load(folder)), threading.Event()

    def body():
        while not over.is_set():
            for method in arms.OURS:
                text.strings(method, released=True)

    thread = threading.Thread(target=body)
    thread.start()
    well = 0
    for _ in range(forks):
        child = os.fork()
        if not child:
            signal.alarm(10)
            for method in arms.OURS:
                text.strings(method, released=True)
            os._exit(0)
        well += os.waitpid(child, 0)[1] == 0
    over.set()
    thread.join()
    return {"well": well}


# [/forked]


# [sanitized]
def sanitized(folder, strings):
    """Two threads make strings in every way, and hand part of them to each other to end; how many there were."""
    module = arms.load(folder)
    rounds = -(-strings // (2 * len(arms.OURS) * corpus.LINES))  # no fewer than asked for
    text = arms.text(module)
    right, wrong = hash(text.strings("new")[0]), []
    mail = [queue.SimpleQueue(), queue.SimpleQueue()]

    def body(number):
        for i in range(rounds):
            for method in arms.OURS:
                made = text.strings(method, released=bool(i % 2))
                mail[number].put(made if i % 3 == 0 else made[:100])
                del made
                with_mail = mail[1 - number]
                while not with_mail.empty():
                    got = with_mail.get()
                    if hash(got[0]) != right:
                        wrong.append(method)
                    del got

    threads_of_all_chapters.together([lambda n=n: body(n) for n in range(2)])
    mail = None
    before = resident()
    for _ in range(max(1, rounds // 4)):
        for method in arms.OURS:
            text.strings(method)
    grown = resident() - before
    return {
        "strings": 2 * rounds * len(arms.OURS) * corpus.LINES,
        "buffers": module.buffers_alive(),
        "grown": grown,
        "wrong": len(wrong),
    }


# [/sanitized]


def violations(module, lines):
    """Laws of str that the strings of `lines` break, in words; each is compared with the real one."""
    encoded = [line.encode() for line in lines]
    text = module.Text(b"".join(encoded), list(map(len, encoded)))
    found = []
    for method in arms.OURS:
        ours = text.strings(method)
        others = text.strings(arms.OURS[0], copied_type=True)
        for x, y, real in zip(ours, others, lines, strict=True):
            laws = {
                "equality": x == real and real == x and x == y and not x != real,  # noqa: SIM202
                "hash": hash(x) == hash(real) == hash(y),
                "lookup": {real: 1}.get(x) == 1 and {x: 1}.get(real) == 1 and {x} == {real} and len({x, y, real}) == 1,
                "order": [x < o for o in lines] == [real < o for o in lines]
                and [x <= o for o in ours] == [real <= o for o in lines],
                "slices": all(x[i:j] == real[i:j] for i in range(-3, 4) for j in range(-3, 4))
                and x[::-1] == real[::-1],
                "concatenation": x + x == real + real and "a" + x == "a" + real and x * 3 == real * 3,
                "text": (list(x), len(x), repr(x), ascii(x), f"{x}", x.upper(), x.strip(), x.split(), x.encode())
                == (
                    list(real),
                    len(real),
                    repr(real),
                    ascii(real),
                    f"{real}",
                    real.upper(),
                    real.strip(),
                    real.split(),
                    real.encode(),
                ),
                "join": "".join([x, y]) == real + real and x.join(["1", "2"]) == real.join(["1", "2"]),
                "pickle": pickle.loads(pickle.dumps(x)) == real and type(copy.copy(x)) is str,
                "json": json.loads(json.dumps(x)) == real,
                "is a str": isinstance(x, str) and (type(x) is str) == (not real.isascii()),
                "terminated": probes.utf8(x) == real.encode().split(b"\0")[0],
            }
            found += [f"{law} of {real!r} made by {method}" for law, holds in laws.items() if not holds]
    return found


def laws(folder):
    """Answer every line, a JSON list of texts, with the laws that are broken."""
    module = arms.load(folder)
    for line in sys.stdin:
        print(json.dumps(violations(module, json.loads(line))), flush=True)
