"""What a statement reaches, with the names that a reader would type."""

import builtins
import functools
import gc
import itertools
import re
import reprlib
import sys
import types

from .objects import reachable

# What a walk from the statement may find, how deep, and how many items of one container.
MOST, DEPTH, ITEMS = 600, 4, 40
ATOMS = (int, float, complex, str, bytes, bool, type(None), type(...))
CALLED = (
    "__init__",
    "__new__",
    "__call__",
    "__enter__",
    "__exit__",
    "__getitem__",
    "__setitem__",
    "__match_args__",
    "_type_",
)
# How modules are called that are of this process, or the statement's own.
OURS = ("__main__", "ffilab_")
REPR = reprlib.Repr()
# Of what is cut in the middle of an address no other process would have the same.
REPR.maxother = REPR.maxstring = 120
INSIDE = ("__self__", "__wrapped__", "func", "args", "keywords", "fget", "restype", "argtypes", "errcheck")


def codes(code):
    """A code object and those in it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from codes(constant)


def of_function(function, name, used):
    """What a function names: globals, builtins, constants, what it closes over, defaults."""
    above = "" if name == "ffilab_loop" else f"{name}: "
    its = function.__globals__.get("__name__", "ffilab_")
    for code in codes(function.__code__):
        used.update(code.co_names)
        for word in code.co_names:
            if word in function.__globals__:
                thing = function.__globals__[word]
                yield word if its.startswith(OURS) else of_another(its, word, thing), thing
            elif hasattr(builtins, word):
                yield word, getattr(builtins, word)
        for constant in code.co_consts:
            if not isinstance(constant, types.CodeType):
                yield f"{above}constant {short(constant)}", constant
    yield "the module's globals" if not above else f"the globals of {name}", function.__globals__
    for word, cell in zip(function.__code__.co_freevars, function.__closure__ or ()):
        try:
            yield f"{above}{word}, closed over", cell.cell_contents
        except ValueError:
            pass
        yield f"{above}cell of {word}", cell
    arguments = function.__code__.co_varnames[: function.__code__.co_argcount]
    defaults = function.__defaults__ or ()
    last = arguments[len(arguments) - len(defaults) :]
    for word, value in [*zip(last, defaults), *(function.__kwdefaults__ or {}).items()]:
        yield f"{above}default of {word}", value
    if above:
        yield f"{name}.__code__", function.__code__


def of_another(module, word, thing):
    """What the reader would type for a global of another module than the statement's."""
    return thing.__name__ if isinstance(thing, types.ModuleType) else of_modules()[0].get(id(thing), f"{module}.{word}")


def of_type(kind, used):
    """What code reaches through a type: what it names of it and of its bases, and what calls go through."""
    for base in kind.__mro__:
        if base is not kind and base is not object:
            yield base.__qualname__, base
        for word, value in list(vars(base).items()):
            if word in used or word in CALLED:
                yield f"{base.__qualname__}.{word}", value


def inside(thing, name, used):
    """Yield what code reaches from a thing, each with a name that a reader would type."""
    if isinstance(thing, types.FunctionType):
        yield from of_function(thing, name, used)
    elif isinstance(thing, types.ModuleType):
        yield from ((f"{name}.{word}", vars(thing)[word]) for word in list(used) if word in vars(thing))
    elif isinstance(thing, type):
        yield from of_type(thing, used)
    elif isinstance(thing, dict):
        for key, value in itertools.islice(list(thing.items()), ITEMS):
            yield f"{name}[{short(key)}]", value
            yield f"key {short(key)} of {name}", key
    elif isinstance(thing, (list, tuple)):
        yield from ((f"{name}[{number}]", value) for number, value in enumerate(thing[:ITEMS]))
    elif not isinstance(thing, ATOMS):
        yield type(thing).__qualname__, type(thing)
        if isinstance(thing, types.MethodType):
            yield f"{name}.__func__", thing.__func__
        yield from attributes(thing, name, used)
        slots = (word for kind in type(thing).__mro__ for word in slots_of(kind))
        for word in (*INSIDE, *slots):
            try:
                yield f"{name}.{word}", object.__getattribute__(thing, word)
            except Exception:
                pass
        for other in gc.get_referents(thing)[:ITEMS]:
            if not isinstance(other, (types.ModuleType, types.CodeType, dict)):
                yield f"{short(other)} in {name}", other


def attributes(thing, name, used):
    """The attributes of its own that code names. Its `__dict__` has them all, but is made when it is asked for: then
    other code runs, under another lock (Objects/dictobject.c, `_PyObject_MaterializeManagedDict`)."""
    held = {id(other) for other in gc.get_referents(thing)}
    if type(thing).__dictoffset__ > 0:
        # One that is always there.
        its = object.__getattribute__(thing, "__dict__")
        yield f"{name}.__dict__", its
        held.update(map(id, its.values()))
    of_class = {word for kind in type(thing).__mro__ for word in vars(kind)}
    for word in sorted(used - of_class):
        try:
            value = object.__getattribute__(thing, word)
        except Exception:
            continue
        if id(value) in held:
            yield f"{name}.{word}", value


def slots_of(kind):
    """The names of `__slots__` of one class."""
    slots = vars(kind).get("__slots__", ())
    return (slots,) if isinstance(slots, str) else tuple(slots)


def walk(loop):
    """What the statement reaches, by name, those nearest to it first."""
    used = set()
    # The names that functions use are known behind the first walk, which goes further.
    walked(loop, used, 2 * DEPTH)
    return walked(loop, used, DEPTH)


def walked(loop, used, most):
    """What the statement reaches in so many steps, by the names in `used`; adds to them the names that it meets."""
    found, seen, queue = {}, {id(loop)}, [(loop, "ffilab_loop", 0)]
    for thing, name, depth in queue:
        for word, other in inside(thing, name, used):
            if id(other) in seen or other is loop:
                continue
            seen.add(id(other))
            word = word if word not in found else f"{word} ({len(found)})"
            found[word] = other
            # The globals are all names of the module: those that the statement uses are found without them.
            if depth < most and other is not loop.__globals__ and not isinstance(other, ATOMS):
                queue.append((other, word, depth + 1))
        if len(found) > MOST:
            break
    return found


def short(thing):
    """Its repr, on one line and without addresses."""
    try:
        text = REPR.repr(thing)
    except Exception:
        text = f"a {type(thing).__name__}"
    return " ".join(re.sub(r"( at )?0x[0-9a-f]+", "", text).split())[:60]


@functools.cache
def of_modules():
    """What the globals of imported modules hold, by id, and by the names that a reader would type."""
    by_id, by_name = {}, {}
    theirs = {name: module for name, module in sys.modules.items() if not name.startswith(OURS)}
    # Public modules and packages first: others import from them.
    for name in sorted(theirs, key=lambda name: (name.startswith("_"), name.count("."), name)):
        for word, value in list(getattr(theirs[name], "__dict__", {}).items()):
            if not isinstance(value, (*ATOMS, types.ModuleType)):
                by_name[f"{name}.{word}"] = value
                by_id.setdefault(id(value), f"{name}.{word}")
    return by_id, by_name


def imported(names):
    """The names of the setup of which a process has one object, whatever is copied: modules and what is theirs."""
    theirs = of_modules()[0]
    return [name for name, thing in names.items() if isinstance(thing, types.ModuleType) or id(thing) in theirs]


def described(thing):
    """What the walk missed: by the module whose global it is, else by type and short repr."""
    return of_modules()[0].get(id(thing)) or f"{type(thing).__name__} {short(thing)}"


def chosen(keys, names):
    """The objects that keys mean in this process: by the walk's names, else all that have that description."""
    if not keys:
        return []
    by_name = {**of_modules()[1], **names}
    found = [by_name[key] for key in keys if key in by_name]
    others = [key for key in keys if key not in by_name]
    kinds = {key.split(" ", 1)[0] for key in others}
    near = (thing for thing in reachable().values() if type(thing).__name__ in kinds) if others else ()
    return found + [thing for thing in near if described(thing) in others]
