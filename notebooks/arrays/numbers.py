"""The numbers of the chapter "Arrays in and out", by name."""

import itertools
from collections.abc import Callable, Collection

import pandas as pd

from ffilab.judge.estimates import Counted
from ffilab.judge.numbers import Makers
from ffilab.judge.processes import chosen
from ffilab.measure.session import Session
from ffilab.setup.catalogue import FREE_THREADED
from notebooks.arrays import experiment as e
from notebooks.arrays import results


def numbers(session: Session) -> Makers:
    made: Makers = {}

    def price(name: str, label: str, arm: str) -> None:
        made[f"{name}, ns on {label}"] = lambda: results.price(session.timed("ways"), label, arm)

    def over(name: str, label: str, one: str, other: str) -> None:
        made[f"{name} on {label}"] = lambda: results.over(session.timed("ways"), label, one, other)

    def tried(title: str, find: Callable[[pd.DataFrame], Collection]) -> Counted | str:
        rows = session.frame(title)
        return Counted(len(find(rows))) if (rows.ended == "ok").any() else "no process brought a result"

    for label, tool in itertools.product(e.PAIR, e.TOOLS):
        price(f"{tool}, in", label, f"{tool}, in, {e.SMALL}")
        over(f"{tool}, 1 MiB / 1 KiB", label, f"{tool}, in, {e.LARGE}", f"{tool}, in, {e.SMALL}")
    for label in e.PAIR:
        for tool in e.CONVERTS:
            price(f"{tool} {e.SINGLE}, in", label, f"{tool} {e.SINGLE}, in, {e.LARGE}")
            price(f"{tool}, large, in", label, f"{tool}, in, {e.LARGE}")
        over("nanobind, array / memoryview", label, f"nanobind, in, {e.SMALL}", f"{e.BUFFER}, in, {e.SMALL}")
        over("array in, pybind11 / nanobind", label, f"pybind11, in, {e.SMALL}", f"nanobind, in, {e.SMALL}")
        for way in e.WAYS_OUT:
            price(f"{way}, out", label, f"{way}, out")
    made |= {
        "tools that read wrongly": lambda: tried("fates", lambda rows: results.by_tool(rows, e.WRONG)),
        "ways in": lambda: tried("fates", lambda rows: set(chosen(rows, ended="ok").tool)),
        "tools that copy": lambda: tried("fates", lambda rows: results.by_tool(rows, e.COPIED)),
        "ways out that lose memory": lambda: tried("ownership", lambda rows: faulty(session)),
        "tools that keep what came in": lambda: tried("ownership", lambda rows: results.not_always(rows, "lets go")),
    }
    for tool in e.TOOLS:
        made[f"{tool}, mixtures on {FREE_THREADED}"] = lambda tool=tool: results.mixtures(
            session.frame("a writer beside"), tool
        )
    return made


def faulty(session: Session) -> list[str]:
    """Ways out whose memory is not freed, or freed under a view."""
    owners = session.frame("ownership")
    return sorted({*results.not_always(owners, "freed"), *results.not_always(owners, "outlives")})


ALL = tuple(e.TOOLS)
