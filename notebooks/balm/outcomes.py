"""What Python answered in the chapter "GIL Balm", and what became of processes that misused a string.

Numbers of what was looked at, mostly once in each case.
"""

from collections.abc import Callable
from functools import partial

import pandas as pd

from ffilab.judge.estimates import Counted, Share
from ffilab.judge.numbers import Declarations
from ffilab.judge.processes import chosen, exact
from ffilab.measure.session import Session
from ffilab.setup.catalogue import BY_LABEL, GIL
from notebooks.balm import experiment as e

WORKS, MISUSED, FACTS, LIVES = "what works", "what must not be done", "layouts of objects", "what stays alive"
OTHERS, LISTS = "the layout of another build", "a list in memory of ours"
HEAD = "PyUnicodeObject, size"
COPIED, PICKLED = "block, copied type", "pickle.loads(pickle.dumps(x))"
# The calls of the second prediction, as they were asked.
PREDICTED = (
    "hash(x) == hash('pi')",
    "x in {'pi'}, 'pi' in {x}",
    "int(n), float(n)",
    "json.dumps(x), json.loads(n)",
    PICKLED,
    "sys.intern(x)",
)
ZERO, NO_NUL, *_ = e.MISUSE
# By misuse, what its answers show if it had the consequence that the page describes; bytes that are not ASCII end the
# process.
SHOWN_BY = {
    ZERO: lambda said: said["x == 'key'"] == "True" and said["x in {'key'}"] == "False",
    NO_NUL: lambda said: said["x == '12'"] == "True" and "ValueError" in said["int(x)"],
    "a borrowed reference": lambda said: said["is now"] != said["was"],
    "another interpreter": lambda said: "Error" in said["import balm"],
    "the maker's thread is gone": lambda said: "False" not in said["hash of every tuple"],
    "alive at exit": lambda said: True,
}
number = Declarations()
number("calls of the second prediction")(lambda session: Counted(len(PREDICTED)))


# ---- what works ----


def answers(runs: pd.DataFrame) -> pd.DataFrame:
    """What Python answered: a row for each interpreter and probe, a column for each kind of string."""
    return runs.pivot(index=["interpreter", "probe"], columns="kind", values="answer")


@number("share of forgeries that are instances of str and not of exact type str", frame=WORKS)
def forged_share(runs: pd.DataFrame) -> Counted:
    """B4: of our strings, over kinds and interpreters."""
    given = answers(runs)
    # Records that are older than one of the ways hold the others.
    given = given[[kind for kind in (*e.OURS, COPIED) if kind in given]]
    instance, exactly = (given.xs(probe, level="probe") for probe in ("isinstance(x, str)", "type(x) is str"))
    return exact((instance.eq("True") & exactly.eq("False")).to_numpy().mean())


@number("share of layouts whose strings all equal CPython's", frame="layouts")
def equal_share(runs: pd.DataFrame) -> Counted:
    return exact((runs.wrong == 0).mean())


@number("probes", frame=WORKS, alike=(True, False))
@number("probes with one answer", frame=WORKS, alike=(True,))
@number("probes with several answers", frame=WORKS, alike=(False,))
def probes(runs: pd.DataFrame, alike: tuple[bool, ...]) -> Counted:
    """Probes that get one answer from every kind of string on the chapter's interpreter, or several."""
    return Counted(int((answers(runs).loc[GIL].nunique(axis="columns") == 1).isin(alike).sum()))


def copied(runs: pd.DataFrame, probe: str) -> str:
    """What a string of the copied type answers, on the chapter's interpreter."""
    return answers(runs).loc[(GIL, probe), COPIED]


@number("copied types that pickle refuses", frame=WORKS)
def refused_by_pickle(runs: pd.DataFrame) -> Counted:
    return Counted("Error" in copied(runs, PICKLED))


def unlike(runs: pd.DataFrame, other: str) -> list[str]:
    """Probes to which a block gives another answer than this kind of string, on the chapter's interpreter."""
    given = answers(runs).loc[GIL]
    return [probe for probe in dict.fromkeys(runs.probe) if given.loc[probe, e.BLOCK] != given.loc[probe, other]]


@number("probes that tell ours from a subclass", frame=WORKS)
def unlike_subclass(runs: pd.DataFrame) -> Counted:
    return Counted(len(unlike(runs, "subclass of str")))


# ---- layouts of objects ----


def fields(facts: pd.DataFrame) -> pd.DataFrame:
    """Where each build keeps what a forgery fills in: a row for each field, a column for each interpreter."""
    order = list(dict.fromkeys(facts.field))
    return facts.pivot(index="field", columns="interpreter", values="is").loc[order]


@number("heads of the longest text, in MB: {label}", frame=FACTS, over={"label": e.PAIR})
def heads_in_mb(facts: pd.DataFrame, label: str) -> Counted:
    return Counted(float(e.TEXTS[-1] * fields(facts)[label][HEAD] / 1e6))


# ---- what must not be done ----


def answered(runs: pd.DataFrame, what: str) -> dict[str, dict[str, str] | str]:
    """What one misuse said, by interpreter: the answers by question, or how the process ended without any."""
    return {
        label: dict(zip(part.asked, part.answer)) if part.ended.iloc[0] == "ok" else part.ended.iloc[0]
        for label, part in chosen(runs, what=what).groupby("interpreter")
    }


def happened(runs: pd.DataFrame, what: str) -> dict[str, bool | None]:
    """By interpreter: had a misuse the consequence that the page describes? None: its process ended without an
    answer."""
    dies = None if what in SHOWN_BY else True
    return {
        label: dies if isinstance(said, str) else what in SHOWN_BY and SHOWN_BY[what](said)
        for label, said in answered(runs, what).items()
    }


# ---- what is counted, and named one by one ----


def keeping(session: Session, when: str) -> list[str]:
    """Ways, on any interpreter, that keep a text alive after its last string was `dropped`, or after it was
    `collected`."""
    runs = session.frame(LIVES)
    return list(dict.fromkeys(runs.method[runs[when] > 0]))


def wrong_for_ours(session: Session) -> list[str]:
    """Calls of the second prediction to which a block gives another answer than a string of CPython."""
    wrong = unlike(session.frame(WORKS), "str")
    return [probe for probe in PREDICTED if probe in wrong]


def careless(session: Session) -> list[str]:
    """What goes wrong, on any interpreter, with a hash of 0, without a NUL, or with a copied type; as it was asked."""
    misused, works = session.frame(MISUSED), session.frame(WORKS)
    pickles = answers(works)[COPIED].xs(PICKLED, level="probe")
    events = {
        "hash(x)": [said["hash(x)"] == "0" for said in answered(misused, ZERO).values() if isinstance(said, dict)],
        "a lookup such as x in {'key'}": happened(misused, ZERO).values(),
        "int(x)": happened(misused, NO_NUL).values(),
        "pickle.dumps(x)": ["Error" in answer for answer in pickles],
    }
    return [name for name, wrong in events.items() if any(wrong)]


def differing(session: Session) -> list[str]:
    """Fields that the builds of the pair keep in different places."""
    table = fields(session.frame(FACTS)).fillna(-1)
    return [field for field in table.index if table.loc[field, e.PAIR[0]] != table.loc[field, e.PAIR[1]]]


LISTED = {
    "ways that keep a text without a string": partial(keeping, when="dropped"),
    "ways that keep a text after a collection": partial(keeping, when="collected"),
    "calls that go wrong for ours": wrong_for_ours,
    "calls that go wrong without care": careless,
    "fields that differ between the builds": differing,
}


@number("{name}", over={"name": LISTED})
def count(session: Session, name: Callable[[Session], list[str]]) -> Counted:
    return Counted(len(name(session)))


# ---- what was looked at once in each case ----


def looked_at(name: str, frame: str, why: str = ""):
    """Declare a share of cases, and the same as what was counted. A case is no sample of many: what a build does to
    such an object, it does again. why: said where there is none."""

    def declare(find: Callable[[pd.DataFrame], Share | None]):
        def counted(runs: pd.DataFrame) -> Counted | str:
            share = find(runs)
            return exact(share.events / share.trials) if share else why

        number(f"{name}, of all", frame=frame)(find)
        number(name, frame=frame)(counted)
        return find

    return declare


@looked_at(
    "CPythons that misread a number without a NUL",
    MISUSED,
    "no process that was asked about a string without a NUL ended well",
)
def misread(runs: pd.DataFrame) -> Share | None:
    """B6: interpreters that take a string without a NUL for `12`, and int() of it for no number.

    Of those whose process ended well; None if none did.
    """
    return Share.of(pd.Series(happened(runs, NO_NUL), dtype=object).dropna())


def by_layout(runs: pd.DataFrame) -> pd.DataFrame:
    """What came of each object by the layout of each build. Columns CPython, layout_of, made, outcome, right."""
    died = runs.ended != "ok"
    said = runs.wrong.fillna("") if "wrong" in runs else pd.Series("", index=runs.index)
    outcome = said.where(said != "", "works").where(~died, runs.ended)
    return pd.DataFrame(
        {
            "CPython": runs.interpreter,
            "layout_of": runs.layout_of,
            "made": runs.made,
            "outcome": outcome,
            "right": (outcome == "works") & ~died,
        }
    )


def other_builds(runs: pd.DataFrame, *made: str) -> pd.DataFrame:
    """Of `by_layout`, what was written by the layout of another build."""
    objects = by_layout(runs)
    return objects[(objects.CPython != objects.layout_of) & objects.made.isin(made)]


@looked_at(
    "forgeries by another build's layout that went wrong",
    OTHERS,
    "one interpreter was there alone: no other layout to try",
)
def wrong_of_other_builds(runs: pd.DataFrame) -> Share | None:
    """How many went wrong: they died, or gave an answer that is not the real one's."""
    return Share.of(~other_builds(runs, e.A_STRING, e.A_TUPLE).right)


@looked_at(
    "forgeries by another version's layout that went wrong", OTHERS, "no two versions of one kind of build were there"
)
def wrong_of_other_versions(runs: pd.DataFrame) -> Share | None:
    """Of the forgeries by another build's layout, those by that of another version of the same kind of build."""
    part = other_builds(runs, e.A_STRING, e.A_TUPLE)
    alike = [BY_LABEL[a].free_threaded == BY_LABEL[b].free_threaded for a, b in zip(part.CPython, part.layout_of)]
    return Share.of(~part.right[alike])


@looked_at("modules of another build that were refused", OTHERS, "there was no module of another build")
def refused(runs: pd.DataFrame) -> Share | None:
    """How many of our modules that were built for another CPython did not let themselves be imported, and brought no
    process down."""
    return Share.of(other_builds(runs, e.A_MODULE).outcome.str.startswith("import balm"))


@looked_at("processes that ended when a list in memory of ours grew or was cleared", LISTS)
def grown(runs: pd.DataFrame) -> Share | None:
    """B6: of the acts that make CPython's allocator take or free our memory, how many brought their process down."""
    return Share.of(chosen(runs, what=e.GROWS).ended != "ok")


def own_append(runs: pd.DataFrame) -> pd.Series:
    """By interpreter: did a list grow well by an append of its own?"""
    return chosen(runs, what=e.OWN_APPEND).set_index("interpreter").ended.eq("ok").sort_index()


@looked_at("CPythons on which an append of its own works", LISTS)
def appending(runs: pd.DataFrame) -> Share | None:
    return Share.of(own_append(runs))
