"""The exercise of the chapter "The boundary": its self-check, from the page's own measurements, with the GIL."""

import pandas as pd

from ffilab import draw
from ffilab.bench.record import Record
from ffilab.judge import statistics
from ffilab.provision.catalogue import GIL
from notebooks.boundary import results
from notebooks.boundary.experiment import CONTRACTS, DECLARED, FLOOR, INT, name

TEXT = "str in, ASCII"
# It keeps the thread state attached during a call.
BLOCKS = "ctypes PyDLL"


def check_binding(choice: dict[str, str], record: Record, rules: pd.DataFrame) -> list[str]:
    """Correct first, then fast.

    choice: a binding for `parser` (texts, must refuse a wrong number loudly) and for `plugin` (no compiler on
    the user's machine when the library is loaded). Returns what to say, one line each.
    """
    return [check_parser(choice.get("parser"), record, rules), check_plugin(choice.get("plugin"), record)]


def check_parser(parser: str | None, record: Record, rules: pd.DataFrame) -> str:
    here, answers = results.present(record, GIL), rules.set_index("call").loc[CONTRACTS[0]]
    if parser not in here:
        return f"parser: still open. Choose one of {', '.join(here)}."
    if "Error" not in str(answers[parser]):
        return f"parser: not correct. {parser} answered {answers[parser]} to 2**31."
    if parser == FLOOR:
        return "parser: correct and fastest, and all of it written by hand. Try a tool."
    tools = [
        binding
        for binding in results.present(record, GIL, TEXT)
        if binding != FLOOR and "Error" in str(answers[binding])
    ]
    cost = {binding: results.over_floor(record, GIL, binding, TEXT) for binding in tools}
    best = min(tools, key=lambda binding: cost[binding].value)
    if parser == best or not statistics.finding(
        statistics.compare(record, (GIL, name(parser, TEXT)), (GIL, name(best, TEXT)))
    ):
        return "parser: correct, and no tool is faster here."
    return (
        f"parser: correct, not yet fast. A text costs {draw.text(cost[parser], 'ns')} over the floor; "
        f"one tool needs {draw.text(cost[best], 'ns')}."
    )


def check_plugin(plugin: str | None, record: Record) -> str:
    here = results.present(record, GIL)
    if plugin not in here:
        return f"plugin: still open. Choose one of {', '.join(here)}."
    if not DECLARED[plugin].loads_at_run_time:
        return f"plugin: not correct. {plugin} needs a compiler for each library and each version of Python."
    if plugin == BLOCKS:
        return "plugin: not correct. Through PyDLL, an unknown function that blocks stops every thread of a GIL build."
    fit = [binding for binding in here if DECLARED[binding].loads_at_run_time and binding != BLOCKS]
    best = min(fit, key=lambda binding: results.net(record, GIL, name(binding, INT)).value)
    if plugin == best:
        return "plugin: correct, and no other that fits is faster."
    return (
        f"plugin: correct, not yet fast: {best} takes "
        f"{draw.text(results.net(record, GIL, name(best, INT)), 'ns')} for an int."
    )
