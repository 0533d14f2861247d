"""The figures and tables of the chapter "Sharing"."""

import pandas as pd

from ffilab.judge.numbers import numbers_of
from ffilab.measure.session import Session
from ffilab.page import draw
from ffilab.run.paths import ROOT, read_json
from ffilab.setup.catalogue import FREE_THREADED
from notebooks.boundary import experiment as boundary
from notebooks.sharing import experiment as e
from notebooks.sharing import numbers

RATIO = "two threads / one"
NOTHING_GAINED = 1.0


def one_item(session: Session) -> pd.DataFrame:
    """Two threads over one by what was cured, for the picture at the top."""
    found = {
        (f"{cured} cured",): numbers_of(session)[f"one item, {cured} cured: {RATIO}"].estimate for cured in e.CURED
    }
    return draw.points(found, "cured")


def plot_one_item(figure, found: pd.DataFrame) -> None:
    draw.intervals(figure, found, "cured", line=NOTHING_GAINED, xlabel="work of two threads / work of one")


def ways(session: Session) -> pd.DataFrame:
    """How the objects of each binding are counted, a row for each binding."""
    frame = session.frame(numbers.WHO)
    frame = frame[frame.interpreter == FREE_THREADED]
    rows = []
    for binding in [name for name in boundary.BINDINGS if name in set(frame.binding)]:
        of_binding = frame[frame.binding == binding].drop_duplicates("what").set_index("what").way
        rows.append(
            {"binding": binding} | {what: of_binding.get(what, "–") for what in (*e.READ, "enum", "enum member")}
        )
    return pd.DataFrame(rows)


def calls(session: Session, what: str) -> pd.DataFrame:
    """Two threads over one for each binding, by what was cured."""
    built, found, rows = set(session.frame(numbers.CALLS).binding), numbers_of(session), []
    for binding in [name for name in e.CALLED if name in built]:
        names = {how: f"{what} of {binding}, {how}: {RATIO}" for how in e.HOW[what]}
        ratios = {how: draw.Quantity(found[name].estimate) if name in found else "–" for how, name in names.items()}
        rows.append({"binding": binding} | ratios)
    return pd.DataFrame(rows)


def sevens(session: Session) -> pd.DataFrame:
    """abs by two threads over one, by what was cured."""
    cases = (e.NONE, e.ALL, *(f"all but {name}" for name in e.SEVEN))
    return pd.DataFrame(
        [{"immortal": cured, RATIO: draw.quantity(session, f"ctypes, {cured} cured: {RATIO}")} for cured in cases]
    )


def published(session: Session) -> pd.DataFrame:
    """Each benchmark of CPython's script, with what it did in 2024."""
    then = dict.fromkeys(e.SCALED, "scales") | dict.fromkeys(e.DID_NOT, "does not")
    return pd.DataFrame(
        [
            {"benchmark": name, "2024": said, RATIO: draw.quantity(session, f"CPython's script, {name}: {RATIO}")}
            for name, said in then.items()
        ]
    )


def apart(session: Session) -> pd.DataFrame:
    """Two threads over one, by how far apart they write."""
    found = {
        (str(distance), piece): numbers_of(session)[f"{piece} writes {distance} bytes apart: {RATIO}"].estimate
        for distance in e.APART
        for piece in e.WRITES
    }
    return draw.points(found, "bytes apart", "write")


def plot_apart(figure, found: pd.DataFrame) -> None:
    draw.intervals(
        figure, found, "bytes apart", "write", xlabel="work of two threads / work of one", ylabel="bytes apart"
    )


def readers(session: Session) -> pd.DataFrame:
    """ns of a reader, alone and beside a count."""
    return pd.DataFrame(
        [
            {
                "the number lies": field,
                "alone, ns": draw.quantity(session, f"a number {field}, alone: ns to read it"),
                "beside a count, ns": draw.quantity(session, f"a number {field}, beside: ns to read it"),
                "times as long": draw.quantity(session, f"a number {field}: a reader beside a count / alone"),
            }
            for field in e.FIELDS
        ]
    )


def threads(session: Session) -> pd.DataFrame:
    """What a new thread pays and takes, with its own copy of the bytecode and without."""
    return pd.DataFrame(
        [
            {
                "bytecode": bytecode,
                "first call, µs": draw.quantity(session, f"first call in a new thread, bytecode {bytecode}: µs"),
                "a later one, µs": draw.quantity(session, f"later call in a new thread, bytecode {bytecode}: µs"),
                "bytes a function": draw.quantity(session, f"bytes a function added, bytecode {bytecode}"),
                "left when it ended": draw.quantity(session, f"bytes a function left, bytecode {bytecode}"),
                "a next thread adds": draw.quantity(session, f"bytes a function again, bytecode {bytecode}"),
            }
            for bytecode in e.BYTECODE
        ]
    )


# Each step of "where do I look?", and its specimen among those of `ffilab scale`'s study.
STEPS = {
    "Is the GIL on?": "a module that turns the GIL on",
    "Two cores for you?": "arithmetic",
    "Is it a count?": "list item",
    "A count of what?": "seven objects of a ctypes call",
    "A lock of a library?": "random numbers of the C library",
    "A line of memory?": "two numbers of C on one cache line",
}
NOT_SEEN = "It lets each thread run before it counts, so it sees nothing of them: time them yourself."


def scale_said() -> pd.DataFrame:
    """What `ffilab scale` said of each step's specimen, in the newest run of the study that is kept."""
    newest = {session["part"]: session for session in read_json(ROOT / "book" / "evidence" / "scale.json")}
    kept = {run["name"]: run for run in newest["idle"]["runs"]} if "idle" in newest else {}
    rows = [{"ask": ask, "specimen": name, **said_of(kept.get(name))} for ask, name in STEPS.items()]
    rows.append({"ask": "The first calls alone?", "specimen": "a new thread", "it said": NOT_SEEN})
    return pd.DataFrame(rows).fillna("")


def said_of(run: dict | None) -> dict[str, str]:
    """Its words for one specimen, its ratio of two threads over one, and what it found to help."""
    if run is None:
        return {"it said": draw.NOT_MEASURED}
    kinds = " and ".join(run["kinds"]) if run["verdict"] == "held back" else ""
    names = ", ".join(name for name, _ in run["culprits"])
    helped = ", ".join(how for how, _, is_enough in run["cures"] if is_enough)
    said = f"{run['verdict']}: {kinds}" if kinds else run["verdict"]
    # Where all slices were left out, as under the GIL, there is no ratio.
    ratio = "{:.2f} [{:.2f}, {:.2f}]".format(*run["ratio"]) if run["left_out"] < 1 else ""
    return {"it said": f"{said} ({names})" if names else said, RATIO: ratio, "what helped": helped}
