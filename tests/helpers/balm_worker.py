"""What runs in a process of its own for the tests of GIL Balm's strings, with what the chapter's cells define.

`source_of` takes the functions from here to the worker.
"""

import copy
import json
import os
import pickle
import queue
import signal
import sys
import threading

from native.balm.corpus import LINES, ascii_text
from native.threads import together
from notebooks.balm.experiment import OURS, behaviour, in_batches, layouts, lives, load, resident, text, utf8


def forked(folder, forks):
    """Forks while another thread makes and ends strings in every way; each child makes some too. How many children
    ended well.

    A child that hangs is ended by an alarm, and did not end well.
    """
    make, over = text(folder).strings, threading.Event()

    def body():
        while not over.is_set():
            for method in OURS:
                make(method, released=True)

    thread = threading.Thread(target=body)
    thread.start()
    well = 0
    for _ in range(forks):
        child = os.fork()
        if not child:
            signal.alarm(10)
            for method in OURS:
                make(method, released=True)
            os._exit(0)
        well += os.waitpid(child, 0)[1] == 0
    over.set()
    thread.join()
    return {"well": well}


def sanitized(folder, strings):
    """Two threads make strings in every way, and hand part of them to each other to end; how many there were."""
    rounds = -(-strings // (2 * len(OURS) * LINES))  # no fewer than asked for
    module = load(folder)
    make = module.Text(*ascii_text()).strings
    right, wrong = hash(make("new")[0]), []
    mail = [queue.SimpleQueue(), queue.SimpleQueue()]

    def body(number):
        for i in range(rounds):
            for method in OURS:
                made = make(method, released=bool(i % 2))
                mail[number].put(made if i % 3 == 0 else made[:100])
                del made
                with_mail = mail[1 - number]
                while not with_mail.empty():
                    got = with_mail.get()
                    if hash(got[0]) != right:
                        wrong.append(method)
                    del got

    together([lambda n=n: body(n) for n in range(2)])
    mail = None
    before = resident()
    for _ in range(max(1, rounds // 4)):
        for method in OURS:
            make(method)
    grown = resident() - before
    return {
        "strings": 2 * rounds * len(OURS) * LINES,
        "buffers": module.buffers_alive(),
        "grown": grown,
        "wrong": len(wrong),
    }


def everything(folder):
    """All of the module, in one thread and in several: for the sanitizers. What it answers is not looked at."""
    behaviour(folder)
    layouts(folder)
    sanitized(folder, 150_000)
    module, few = load(folder), (b"mind the gap", [4, 8])
    kept = [module.Text(*few) for _ in range(3)]
    together([lambda: kept.extend(module.Text(*few) for _ in range(100))] * 3)
    for method in OURS:
        lives(folder, method)
        in_batches(folder, method, 2000, (300, 2000))
        shared = module.Text(*ascii_text(2000)).batches(method, 7)
        together([lambda shared=shared: kept.extend(batch[0] for batch in shared)] * 2)
    return {"lines": sum(map(len, kept))}


def read(x):
    return list(x), len(x), repr(x), ascii(x), f"{x}", x.upper(), x.strip(), x.split(), x.encode()


def violations(module, lines):
    """Laws of str that the strings of `lines` break, in words; each is compared with the real one."""
    encoded = [line.encode() for line in lines]
    text = module.Text(b"".join(encoded), list(map(len, encoded)))
    found = []
    for method in OURS:
        ours = text.strings(method)
        others = text.strings(OURS[0], copied_type=True)
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
                "text": read(x) == read(real),
                "join": "".join([x, y]) == real + real and x.join(["1", "2"]) == real.join(["1", "2"]),
                "pickle": pickle.loads(pickle.dumps(x)) == real and type(copy.copy(x)) is str,
                "json": json.loads(json.dumps(x)) == real,
                "is a str": isinstance(x, str) and (type(x) is str) == (not real.isascii()),
                "terminated": utf8(x) == real.encode().split(b"\0")[0],
            }
            found += [f"{law} of {real!r} made by {method}" for law, holds in laws.items() if not holds]
    return found


def laws(folder):
    """Answer every line, a JSON list of texts, with the laws that are broken."""
    module = load(folder)
    for line in sys.stdin:
        print(json.dumps(violations(module, json.loads(line))), flush=True)
