"""What is asked of each kind of string in the chapter on GIL Balm. Standard library only.

A module of its own: pickle finds the classes of what it takes by the name of their module.
"""

import copy
import ctypes
import functools
import gc
import json
import marshal
import os
import pickle
import re
import sys
import weakref

import arms


class Ordinary(str):
    """What any programmer can have: a subclass of str."""


class Thing:
    pi = "found"


def keyword(**named):
    return named


def utf8(x):
    """What a C function gets that asks for a `char *` with a NUL at its end."""
    function = ctypes.pythonapi.PyUnicode_AsUTF8
    function.restype, function.argtypes = ctypes.c_char_p, [ctypes.py_object]
    return function(x)


def assigned(x):
    thing = Thing()
    setattr(thing, x, 1)
    return vars(thing)


def matched(x):
    match x:
        case str():
            return True
    return False


# What is asked of a string whose characters are `pi` or, in the numbers, `314`.
PROBES = {
    "isinstance(x, str)": lambda x, n: isinstance(x, str),
    "type(x) is str": lambda x, n: type(x) is str,
    "type(x).__name__": lambda x, n: type(x).__name__,
    "match x: case str()": lambda x, n: matched(x),
    "hash(x) == hash('pi')": lambda x, n: hash(x) == hash("pi"),
    "x == 'pi', 'pi' == x": lambda x, n: (x == "pi", x == "pi"),
    "x < 'pj', x > 'pi'": lambda x, n: (x < "pj", x > "pi"),
    "{'pi': 1}[x], {x: 1}['pi']": lambda x, n: ({"pi": 1}[x], {x: 1}["pi"]),
    "x in {'pi'}, 'pi' in {x}": lambda x, n: (x in {"pi"}, "pi" in {x}),
    "x + x, x * 2, x[1:], x[::-1]": lambda x, n: (x + x, x * 2, x[1:], x[::-1]),
    "type(x[:]), type(x + ''), type(str(x))": lambda x, n: (type(x[:]), type(x + ""), type(str(x))),
    "list(x), sorted(x), len(x)": lambda x, n: (list(x), sorted(x), len(x)),
    "x.upper(), x.find('i'), x.split('p')": lambda x, n: (x.upper(), x.find("i"), x.split("p")),
    "x.encode(), bytes(x, 'utf-16-le')": lambda x, n: (x.encode(), bytes(x, "utf-16-le")),
    "', '.join([x, x]), x.join('ab')": lambda x, n: (", ".join([x, x]), x.join("ab")),
    "f'{x:>4}', '%s' % x, repr(x)": lambda x, n: (f"{x:>4}", "%s" % x, repr(x)),  # noqa: UP031
    "int(n), float(n)": lambda x, n: (int(n), float(n)),
    "PyUnicode_AsUTF8(x)": lambda x, n: utf8(x),
    "os.stat(x)": lambda x, n: os.stat(x),
    "re.match('p(.)', x)[1]": lambda x, n: re.match("p(.)", x)[1],
    "re.compile(x).match('pi')": lambda x, n: re.compile(x).match("pi") is not None,
    "json.dumps(x), json.loads(n)": lambda x, n: (json.dumps(x), json.loads(n)),
    "eval(n), compile(n)": lambda x, n: (eval(n), compile(n, "n", "eval") is not None),
    "getattr(thing, x), setattr(thing, x, 1)": lambda x, n: (getattr(Thing, x), assigned(x)),
    "f(**{x: 1})": lambda x, n: keyword(**{x: 1}),
    "pickle.loads(pickle.dumps(x))": lambda x, n: pickle.loads(pickle.dumps(x)),
    "type(copy.copy(x)), type(copy.deepcopy(x))": lambda x, n: (
        type(copy.copy(x)).__name__,
        type(copy.deepcopy(x)).__name__,
    ),
    "marshal.dumps(x)": lambda x, n: len(marshal.dumps(x)) > 0,
    "sys.intern(x)": lambda x, n: sys.intern(x),
    "type(x)('pi')": lambda x, n: type(x)("pi") == "pi",
    "weakref.ref(x)": lambda x, n: weakref.ref(x)() is x,
    "x.name = 1": lambda x, n: setattr(x, "name", 1),
    "class Sub(type(x))": lambda x, n: type("Sub", (type(x),), {}) is not None,
    "gc.is_tracked(x)": lambda x, n: gc.is_tracked(x),
    "sys.getsizeof(x)": lambda x, n: sys.getsizeof(x),
    "functools.cache": lambda x, n: functools.cache(len)(x),
}


def answer(probe, x, n):
    try:
        return repr(probe(x, n))
    except Exception as error:
        return f"{type(error).__name__}: {error}"


def kinds(module):
    """Name: two strings of each kind, `pi` and `314`."""
    text = module.Text(b"pi314", [2, 3])
    found = {"str": ("".join(["p", "i"]), str(314)), "subclass of str": (Ordinary("pi"), Ordinary("314"))}
    for method in arms.OURS:
        found[method] = text.strings(method)
    found["block, copied type"] = text.strings("block", copied_type=True)
    return found
