"""The exercises of the chapter "The boundary": their self-checks, from the page's own measurements and from child
processes."""

from functools import partial

import pandas as pd

from ffilab.judge import statistics
from ffilab.judge.estimates import Interval
from ffilab.judge.questions import OPEN, above
from ffilab.judge.selfcheck import correct_then_fast
from ffilab.measure.case import Case
from ffilab.measure.plan import Arm
from ffilab.measure.record import Record
from ffilab.measure.session import Session, raised
from ffilab.page import draw
from ffilab.setup.catalogue import GIL
from native.boundary import arms
from notebooks.boundary import tools
from notebooks.boundary.costs import TEXT, cell, over_floor, present, ranked
from notebooks.boundary.experiment import CONTRACTS, DECLARED, FLOOR, INT, call, loaded

# What `ends` has to answer in the exercise; None stands for an exception.
ENDS = {"m.ends(array('d', [1.0, 9.0, 2.5]))": "3.5", "m.ends(array('d'))": "0.0", "m.ends([1.0])": None}

ARRAY, EVALUATE = "1,000 doubles", "native/boundary/evaluate.py"
# No tools: the code that converts is the author's own.
BY_HAND = (FLOOR, "C API, limited")
# It keeps the thread state attached during a call.
BLOCKS = "ctypes PyDLL"
NOTHING_FASTER = "correct, and nothing on the list is faster."


def check_binding(choice: dict[str, str], record: Record, rules: pd.DataFrame) -> list[str]:
    """Correct first, then fast.

    choice: a binding for `parser` (texts, must refuse a wrong number loudly) and for `plugin` (no compiler on
    the user's machine when the library is loaded). Returns what to say, one line each.
    """
    here, answers = present(record, GIL), rules.set_index("call").loc[CONTRACTS[0]]
    checks = {"parser": partial(check_parser, answers=answers), "plugin": check_plugin}
    lines = []
    for use, check in checks.items():
        binding = choice.get(use)
        said = check(binding, record) if binding in here else f"still open. Choose one of {'; '.join(here)}."
        lines.append(f"{use}: {said}")
    return lines


def check_parser(parser: str, record: Record, answers: pd.Series) -> str:
    """What to say of a tool for texts. answers: what each makes of a number that does not fit."""
    if not tools.is_error(answers[parser]):
        return f"not correct. {parser} answered {answers[parser]} to 2**31."
    if parser in BY_HAND:
        return "correct, and all of it written by hand. Try a tool."
    fit = [one for one in present(record, GIL, TEXT) if one not in BY_HAND and tools.is_error(answers[one])]
    cost = {binding: over_floor(record, TEXT, binding) for binding in fit}
    best = min(fit, key=lambda binding: cost[binding].value)
    if parser == best or above(time_over(record, parser, best, TEXT), 1) == OPEN:
        return NOTHING_FASTER
    slow, fast = (f"{cost[one].value:.0f} ns" for one in (parser, best))
    return f"correct, not yet fast. A text costs {slow} more than hand-written C; one tool needs {fast}."


def check_plugin(plugin: str, record: Record) -> str:
    """What to say of a tool for a library that is loaded on a machine without a compiler."""
    if not DECLARED[plugin].loads_at_run_time:
        return f"not correct. {plugin} needs a compiler for each library."
    if plugin == BLOCKS:
        return "not correct. Through PyDLL, an unknown function that blocks stops every thread of a GIL build."
    best = next(one for one in ranked(record, GIL) if DECLARED[one].loads_at_run_time and one != BLOCKS)
    ratio = time_over(record, plugin, best, INT)
    if plugin == best or above(ratio, 1) == OPEN:
        return NOTHING_FASTER
    return f"correct, not yet fast. {best} is faster: for an int, {plugin} takes {ratio.value:.2g} times as long."


def time_over(record: Record, binding: str, other: str, signature: str) -> Interval:
    """Time of a call through one binding over that through another, with the GIL."""
    return statistics.ratio(record, cell(GIL, binding, signature), cell(GIL, other, signature))


# [contract]
# The argument of C's abs, and the answer or exception.
CONTRACT = {
    "-7": "7",
    "2**31 - 1": "2147483647",
    "-(2**31) + 1": "2147483647",
    "2**31": "OverflowError",
    "-(2**31) - 1": "OverflowError",
    "2**32 + 7": "OverflowError",
    "1.5": "TypeError",
    "'7'": "TypeError",
    "None": "TypeError",
}
# [/contract]


def check_declaration(declaration: str) -> list[str]:
    """Ask C's `abs`, declared with the class `Int` of `declaration`, for everything in CONTRACT: each time in a process
    of its own, which may die of it."""
    wrong = []
    for expression, asked in CONTRACT.items():
        fixed = {"declaration": declaration}
        outcome = Case(GIL, "declared", {"expression": expression}, fixed, file=EVALUATE, timeout_s=4).run()
        if outcome.result is None:
            why = f"{outcome.ended} {raised(outcome.error)}".rstrip()
            return [*wrong, f"not correct: the process ended before it answered abs({expression}): {why}"]
        if (answer := outcome.result["answer"]) != asked:
            wrong.append(f"not correct: abs({expression}) gave {answer}, and the contract asks for {asked}.")
    return wrong or [f"correct: all {len(CONTRACT)} calls are answered as the contract asks."]


def check_ends(session: Session, mine: str) -> list[str]:
    """Does the reader's `ends` through ctypes answer as the original does, in no more than 0.8 times its time? mine:
    what `mine.build` returned."""
    binding, wrong = "ctypes CDLL", []
    for expression, expected in ENDS.items():
        asked = {"binding": binding, "expression": expression}
        outcome = Case(GIL, "evaluate", asked, {"folder": mine}, file=EVALUATE, timeout_s=4).run()
        answer = (outcome.result or {"error": outcome.ended}).get("value")
        if answer != expected:
            wrong.append(f"{expression} gives {answer or 'an exception'}, not {expected or 'an exception'}.")
    if wrong:
        return correct_then_fast(wrong, None)
    ours = call(binding, ARRAY)
    statement, setup = arms.SIGNATURES[ARRAY]
    # A process of its own: both modules have one name.
    theirs = Arm(f"{ours.name}, mine", statement, loaded(binding, mine) + setup, beside=ARRAY, group="mine")
    record = session.time("my ends", [ours, theirs], [GIL])
    draw.arms(record)
    return correct_then_fast([], statistics.compare(record, (GIL, theirs.name), (GIL, ours.name)), 0.8)
