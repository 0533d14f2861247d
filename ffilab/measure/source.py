"""The source of functions, as it goes to a worker: with every import, constant and function of ours that they name.

A cell of a notebook is what runs: a worker is a plain CPython without the book, and gets the text of the functions that
it is to run. pickle would not do, as byte code is another in each version.
"""

import ast
import builtins
import inspect
import linecache
import re
import symtable
import sys
import textwrap
from types import BuiltinFunctionType, FunctionType, ModuleType

from ffilab.run.errors import UserError

BOOK = "ffilab"


def source_of(**names) -> str:
    """Python source that defines these names: functions, classes, modules, and values that have a literal.

    What a function or a class names of its own module comes before it. Raises UserError for what no worker can have:
    objects of the book, and values without a literal.
    """
    written: dict[str, str] = {}
    for name, value in names.items():
        _write(name, value, written)
    return "\n".join(filter(None, written.values()))


def _write(name: str, value, written: dict[str, str]) -> None:
    if name in written:
        return
    # Before what it names: a function may name itself.
    written[name] = ""
    if isinstance(value, ModuleType):
        _check(value.__name__, name)
        text = f"import {value.__name__}" if value.__name__ == name else f"import {value.__name__} as {name}"
    elif is_ours(value):
        _check(value.__module__, name)
        text = textwrap.dedent(_text(value))
        for needed, inner in _named_by(text, value):
            _write(needed, inner, written)
            if isinstance(inner, ModuleType):
                # `import concurrent.futures` gives the name `concurrent`.
                parts = (name for name in sys.modules if name.startswith(f"{inner.__name__}.") and name in text)
                written |= {part: f"import {part}" for part in parts}
        text += "" if value.__name__ == name else f"{name} = {value.__name__}\n"
    else:
        text = f"{name} = {_literal(name, value, written)}"
    # Behind what it names.
    del written[name]
    written[name] = text


def _text(value) -> str:
    """The source of a function or a class. inspect finds no class of a cell; it stands in the last one that defines its
    name."""
    if not isinstance(value, type) or value.__module__ != "__main__":
        return inspect.getsource(value)
    head = re.compile(rf"^class {value.__name__}\b", re.MULTILINE)
    cells = ("".join(entry[2]) for entry in reversed(list(linecache.cache.values())) if len(entry) > 2)
    cell = next(text for text in cells if head.search(text))
    classes = (node for node in ast.parse(cell).body if isinstance(node, ast.ClassDef))
    return ast.get_source_segment(cell, next(node for node in classes if node.name == value.__name__)) + "\n"


def is_ours(value) -> bool:
    """Is it a function or a class that a worker cannot import from the standard library or a package?"""
    if not isinstance(value, FunctionType | type):
        return False
    file = getattr(sys.modules[value.__module__], "__file__", None) or ""
    return value.__module__.partition(".")[0] not in sys.stdlib_module_names and "site-packages" not in file


def _check(module: str, name: str) -> None:
    if module.partition(".")[0] == BOOK:
        raise UserError(
            f"{name} belongs to the book ({module}), and a worker is a plain CPython: leave it out of the function."
        )


def _named_by(text: str, value) -> list[tuple[str, object]]:
    """The global names that this function or class uses, with what they stand for. Raises UserError for one that stands
    for nothing."""
    # Below its decorators, such as that of a context manager.
    module = sys.modules[value.__module__].__dict__ if isinstance(value, type) else inspect.unwrap(value).__globals__
    table = symtable.symtable(text, "<cell>", "exec")
    named = _globals(table)
    for name in sorted(named - set(module) - set(dir(builtins)) - _made_global(table)):
        line = next(line.strip() for line in text.splitlines() if re.search(rf"\b{name}\b", line))
        raise UserError(
            f"{value.__name__} names {name}, which is defined nowhere ({line}): correct it, or run the cell that "
            "defines it, and then the cell of this function and this one again."
        )
    return [(name, module[name]) for name in sorted(named) if name in module]


def _made_global(table: symtable.SymbolTable) -> set[str]:
    """The names that functions make global as they run."""
    here = {one.get_name() for one in table.get_symbols() if one.is_declared_global() and one.is_assigned()}
    return here.union(*map(_made_global, table.get_children()))


def _globals(table: symtable.SymbolTable) -> set[str]:
    # At the top: decorators, defaults and base classes.
    at_top = table.get_type() == "module"
    names = {
        one.get_name()
        for one in table.get_symbols()
        if one.is_referenced() and (not one.is_assigned() if at_top else one.is_global())
    }
    return names.union(*map(_globals, table.get_children()))


def _literal(name: str, value, written: dict[str, str]) -> str:
    match value:
        case dict():
            return f"{{{', '.join(': '.join(_literal(name, one, written) for one in item) for item in value.items())}}}"
        case list():
            return f"[{', '.join(_literal(name, one, written) for one in value)}]"
        case tuple():
            return f"({''.join(f'{_literal(name, one, written)}, ' for one in value)})"
        case FunctionType() | type() if is_ours(value):
            _write(value.__name__, value, written)
            return value.__name__
        case FunctionType() | BuiltinFunctionType() | type():
            return f"__import__({value.__module__!r}, fromlist=['*']).{value.__qualname__}"
    try:
        ast.literal_eval(repr(value))
    except (ValueError, SyntaxError):
        raise UserError(
            f"{name} is a {type(value).__name__}, which cannot go to a worker: hand over a plain value."
        ) from None
    return repr(value)
