"""What the bindings of native/objects are asked: calls to time, and questions with their answers. Standard library
only.

What a binding has not, and what it answers otherwise than most, is in tools.toml.

    model.py FOLDER TOOL    answer all questions, a JSON line for each; FOLDER holds what was built of native/objects
"""

import enum  # noqa: F401 (expressions use it)
import gc
import importlib
import json
import os
import sys
import sysconfig
import tomllib
import types  # noqa: F401
import weakref

HERE = os.path.dirname(os.path.abspath(__file__))


def tools():
    """What the bindings say of themselves, by title."""
    with open(os.path.join(HERE, "tools.toml"), "rb") as file:
        return {
            title: {"not-here": {}, "by-hand": {}, "answers": {}} | said for title, said in tomllib.load(file).items()
        }


# [calls]
# Topic: {call: (statement that is timed, setup)}. `m` is the module of a binding.
CALLS = {
    "keywords": {
        "two arguments by position": ("f(3.0, 5.0)", "f = m.scaled"),
        "one by keyword": ("f(3.0, by=5.0)", "f = m.scaled"),
        "one by default": ("f(3.0)", "f = m.scaled"),
    },
    "overloads": {
        "first overload": ("f(7)", "f = m.kind"),
        "second overload": ("f(7.5)", "f = m.kind"),
    },
    "virtual methods": {
        "C++ calls a virtual method": ("f(s)", "f, s = m.area_of, m.Shape(3.0)"),
        "C++ calls a method that Python overrides": ("f(s)", "f, s = m.area_of, overriding(m)(3.0)"),
    },
    "unique_ptr": {"unique_ptr out and back in": ("take(make(3.0))", "take, make = m.take_shape, m.make_shape")},
    "shared_ptr": {
        "shared_ptr in": ("s.inner = t", "s, t = m.Shape(3.0), m.Shape(2.0)"),
        "shared_ptr out": ("s.inner", "s, t = m.Shape(3.0), m.Shape(2.0); s.inner = t"),
    },
    "enums": {"enum in and out": ("f(c)", "f, c = m.next_color, m.Color.red")},
    "copied containers": {
        "list of 100 floats → vector": ("f(x)", "f, x = m.total, [0.5] * 100"),
        "dict of 10 → map": ("f(x)", "f, x = m.total_by_name, {f'name {n}': 0.5 for n in range(10)}"),
    },
    "opaque vector": {"vector of 100 doubles, opaque": ("f(x)", "f, x = m.total_of, m.Doubles([0.5] * 100)")},
    "properties": {
        "property, read": ("s.side", "s = m.Shape(3.0)"),
        "property, written": ("s.side = 2.0", "s = m.Shape(3.0)"),
    },
    "subclasses": {
        "new object": ("C(3.0)", "C = m.Shape"),
        "new object of a Python subclass": ("C(3.0)", "C = overriding(m)"),
    },
    "callbacks": {"stored callback": ("f(3.0)", "b = m.Bell(); b.listener = lambda x: x; f = b.ring")},
}
# [/calls]


class Index:
    def __index__(self):
        return 7


class Real:
    def __float__(self):
        return 7.5


def overriding(m, answer=7.0):
    """A class derived in Python whose area() is what is given: a value, or a function of the object."""

    class Overriding(m.Shape):
        def area(self):
            return answer(self) if callable(answer) else answer

    return Overriding


def doubling(m):
    class Doubling(m.Shape):
        def area(self):
            return 2 * super().area()

    return Doubling


def fails(shape):
    raise LookupError


def plain(m):
    return type("Plain", (m.Shape,), {})


def forgetful(m):
    return type("Forgetful", (m.Shape,), {"__init__": lambda self, side: None})


def assigned(m):
    """A shape of a class derived in Python, with an area() of its own in its __dict__."""
    shape = plain(m)(3.0)
    shape.area = lambda: 7.0
    return shape


def after(changed, change):
    """What was changed."""
    change(changed)
    return changed


def holding(m, inner):
    """A shape that holds another one, of which Python has no name any more."""
    shape = m.Shape(3.0)
    shape.inner = inner
    del inner
    gc.collect()
    return shape


def collected(bell_type):
    """Is a bell freed that stores a function which knows the bell?"""

    class Witness:
        pass

    def made():
        bell, witness = bell_type(), Witness()
        bell.listener = lambda x: (bell, witness, x)[2]
        bell.ring(1.0)
        return weakref.ref(witness)

    seen = made()
    gc.collect()
    return seen() is None


LEFT = "at its end the process says that something was left"

# [questions]
# Topic: {what is asked: (expression, what most bindings answer)}.
QUESTIONS = {
    "keywords": {
        "defaults and keywords are those of the C++ signature": (
            "m.scaled(3.0), m.scaled(3.0, plus=1.0), m.scaled(x=3.0, by=5.0), m.scaled(3)",
            "(6.0, 7.0, 15.0, 6.0)",
        ),
        "a keyword that does not exist": ("m.scaled(3.0, wrong=1.0)", "TypeError"),
        "an argument given twice": ("m.scaled(3.0, x=1.0)", "TypeError"),
    },
    "overloads": {
        "an int, a float, a bool": ("m.kind(7), m.kind(7.5), m.kind(True)", "('int', 'float', 'int')"),
        "a str": ("m.kind('7')", "TypeError"),
        "an int of 100 bits": ("m.kind(2**99)", "'float'"),
        "an object with `__index__`": ("m.kind(Index())", "'int'"),
        "an object with `__float__`": ("m.kind(Real())", "'float'"),
    },
    "virtual methods": {
        "an override is called": ("m.area_of(overriding(m)(3.0))", "7.0"),
        "a class without one": ("m.area_of(plain(m)(3.0))", "9.0"),
        "an override calls `super().area()`": ("m.area_of(doubling(m)(3.0))", "18.0"),
        "an override calls it in a function of its own": (
            "m.area_of(overriding(m, lambda s: 2 * m.Shape.area(s))(3.0))",
            "18.0",
        ),
        "an exception in it comes through C++": ("m.area_of(overriding(m, fails)(3.0))", "LookupError"),
        "an override that returns a str": ("m.area_of(overriding(m, 'x')(3.0))", "TypeError"),
        "an override put into the object": ("m.area_of(assigned(m))", "7.0"),
    },
    "unique_ptr": {
        "out and back in": ("m.take_shape(m.make_shape(3.0))", "9.0"),
        "the object after it was given away": ("after(m.make_shape(3.0), m.take_shape).side", "TypeError"),
        "given away, made by Python": ("m.take_shape(m.Shape(3.0))", "9.0"),
        "given away, with an override": ("m.take_shape(overriding(m)(3.0))", "7.0"),
    },
    "shared_ptr": {
        "what comes back is the same object": ("(t := m.Shape(2.0)) is holding(m, t).inner", "True"),
        "an object of a Python class stays one without a name": (
            "type(holding(m, plain(m)(2.0)).inner) is not m.Shape",
            "True",
        ),
        "so does its override": ("m.area_of(holding(m, overriding(m)(2.0)).inner)", "7.0"),
    },
    "enums": {
        "in and out": ("m.next_color(m.Color.red) is m.Color.green", "True"),
        "it is an `enum.Enum`": ("issubclass(m.Color, enum.Enum)", "True"),
        "`list(Color)`": ("len(list(m.Color))", "3"),
        "equal to its number": ("m.Color.red == 0", "False"),
        "an int in its place": ("m.next_color(0) is m.Color.green", "TypeError"),
    },
    "copied containers": {
        "a list that C++ appends to": ("after([1.0], m.grow_copy)", "[1.0]"),
        "a tuple": ("m.total((1.0, 2.0))", "3.0"),
        "a set": ("m.total({1.0, 2.0})", "TypeError"),
        "a generator": ("m.total(x for x in [1.0])", "TypeError"),
        "a str": ("m.total('12')", "TypeError"),
        "a str in a list": ("m.total([1.0, 'x'])", "TypeError"),
        "a dict": ("m.total_by_name({'a': 1.0, 'b': 2})", "3.0"),
        "a dict with an int for a name": ("m.total_by_name({1: 1.0})", "TypeError"),
        "another mapping": ("m.total_by_name(types.MappingProxyType({'a': 1.0}))", "TypeError"),
    },
    "opaque vector": {
        "a vector that C++ appends to": ("list(after(m.Doubles([1.0]), m.grow))", "[1.0, 1.0]"),
        "Python appends, C++ sees it": ("m.total_of(after(m.Doubles([1.0]), lambda v: v.append(2.0)))", "3.0"),
        "a list in its place": ("m.total_of([1.0])", "TypeError"),
    },
    "properties": {
        "read after written": ("after(m.Shape(3.0), lambda s: setattr(s, 'side', 2)).side", "2.0"),
        "a str": ("setattr(m.Shape(3.0), 'side', 'x')", "TypeError"),
        "deleted": ("delattr(m.Shape(3.0), 'side')", "AttributeError"),
        "an attribute that does not exist is written": ("setattr(m.Shape(3.0), 'sied', 2.0)", "AttributeError"),
    },
    "subclasses": {
        "attributes of its own": ("after(plain(m)(3.0), lambda s: setattr(s, 'name', 'x')).name", "'x'"),
        "`__init__` without `super().__init__`": ("forgetful(m)(3.0).side", "3.0"),
        "a weak reference to an object": ("bool(weakref.ref(m.Shape(3.0)))", "TypeError"),
    },
    "callbacks": {
        "called from native code": (
            "after(m.Bell(), lambda b: setattr(b, 'listener', lambda x: 2 * x)).ring(3.0)",
            "6.0",
        ),
        "a cycle through it, as in the tool's first example": ("collected(m.Bell)", "False"),
        "a cycle through it, with what the tool has for the collector": ("collected(m.TracedBell)", "True"),
        # Who starts the process looks what it says.
        LEFT: ("None", "False"),
    },
}
# [/questions]


def load(folder, tool):
    """The module of a binding, for this interpreter."""
    sys.path.insert(0, os.path.join(folder, sysconfig.get_config_var("SOABI")))
    return importlib.import_module(tools()[tool]["module"])


def answer(m, expression):
    """A value's repr, or the name of the exception."""
    try:
        return repr(eval(expression, {**globals(), "m": m}))
    except Exception as error:
        return type(error).__name__


def main(folder, tool):
    m = load(folder, tool)
    for topic, questions in QUESTIONS.items():
        for asked, (expression, _) in questions.items():
            if topic not in tools()[tool]["not-here"]:
                print(json.dumps([topic, asked, answer(m, expression)]), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
