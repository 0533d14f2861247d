"""What a reader asks a session for in JupyterLab, looked at before anything starts: a slip ends in one sentence."""

import ast
from collections.abc import Iterable

from ffilab.measure.case import Case, Program, Step
from ffilab.measure.plan import OURS, Arm
from ffilab.page.forgiving import AGAIN
from ffilab.run.errors import UserError
from ffilab.setup.catalogue import BY_LABEL

ARMS = 'write a list of arms, such as [Arm("mine", "f()", "f = len")]'
CASES = "write a list of cases, such as [Case(GIL, my_function, {}, {})]"


def must_be_named(name) -> None:
    """The name of a run is that of a file, too."""
    if not isinstance(name, str) or not name.strip() or "/" in name:
        raise UserError(f"{name!r} is no name for a run: write a short text without a slash. {AGAIN}")


def must_be_labels(labels, here: list[str]) -> None:
    """Interpreters are named in a list, and are there."""
    if isinstance(labels, str) or not set(labels) <= set(here):
        raise UserError(f"The interpreters are {labels!r}: write a list of some of {', '.join(here)}. {AGAIN}")


def must_be_arms(arms) -> None:
    """Is each an arm with a name of its own, and with something to time?"""
    if not arms or not are_all(arms, Arm):
        raise UserError(f"There is nothing to time in {shown(arms)}: {ARMS}. {AGAIN}")
    names = [arm.name for arm in arms]
    for arm in arms:
        for part in ("name", "statement", "setup"):
            if not isinstance(given := getattr(arm, part), str):
                raise UserError(f"The {part} of {arm.name!r} is {shown(given)}: write it as text, in quotes. {AGAIN}")
        if arm.name.startswith(OURS):
            raise UserError(f"{arm.name!r} is a name of the instrument's own: give this arm another one. {AGAIN}")
        if names.count(arm.name) > 1:
            raise UserError(f"Two arms are called {arm.name!r}: give one of them another name. {AGAIN}")
        if not arm.file and all(line.strip()[:1] in ("", "#") for line in arm.statement.splitlines()):
            raise UserError(f'{arm.name!r} has no statement to time: Arm("{arm.name}", "f()", "f = len"). {AGAIN}')
        if isinstance(arm.interpreters, str) or not set(arm.interpreters) <= set(BY_LABEL):
            known = ", ".join(BY_LABEL)
            raise UserError(f"{arm.name!r} names {arm.interpreters!r}: write a tuple of some of {known}. {AGAIN}")


def must_call(arms: Iterable[Arm]) -> None:
    """Does each do something? A name alone is looked up, and what it names is not called. To read an attribute is a
    fair question, but more often a call without its brackets: it is timed, and said."""
    for arm in arms:
        try:
            (line,) = ast.parse(arm.statement).body
        except (SyntaxError, ValueError):
            # Told when it is made; or it has several lines.
            continue
        alone = line.value if isinstance(line, ast.Expr) else None
        if isinstance(alone, ast.Attribute):
            print(f"{arm.name!r} reads an attribute and calls nothing: write {arm.statement.strip()}() to time a call.")
        if isinstance(alone, ast.Name | ast.Constant):
            called = alone.id if isinstance(alone, ast.Name) else "f"
            raise UserError(f"{arm.name!r} calls nothing: write {called}() to time a call. {AGAIN}")


def must_be_cases(cases) -> None:
    """Is each a case, whose function can be called on an interpreter that the book knows?"""
    if not are_all(cases, Case | Program | Step):
        raise UserError(f"There is nothing to run in {shown(cases)}: {CASES}. {AGAIN}")
    for case in cases:
        if isinstance(case, Case) and not case.file and not callable(case.function):
            named = f"{case.function} without quotes" if isinstance(case.function, str) else "a function"
            raise UserError(f"A case calls {shown(case.function)}, which is no function: write {named}. {AGAIN}")
        if isinstance(case, Case) and case.interpreter not in BY_LABEL:
            raise UserError(f"A case names {case.interpreter!r}: write one of {', '.join(BY_LABEL)}. {AGAIN}")


def are_all(given, kind) -> bool:
    """Is it a list, or the like, of this kind alone?"""
    return isinstance(given, Iterable) and not isinstance(given, str) and all(isinstance(one, kind) for one in given)


def shown(given) -> str:
    """It, as short as a sentence can hold it."""
    text = f"the function {given.__name__}" if hasattr(given, "__name__") else repr(given)
    return text if len(text) <= 60 else f"{text[:57]}..."
