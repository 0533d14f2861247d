"""What the sentences of the chapter "GIL Balm" name and no form can say: CPythons and probes by their answers."""

from collections.abc import Callable
from functools import partial

from ffilab.judge.wording import capital, listed
from ffilab.measure.session import Session
from notebooks.balm import outcomes
from notebooks.balm.experiment import PAIR

CONSEQUENCES = {
    "hash": ("a hash of 0", "it was equal and was not found"),
    "nul": ("no NUL at the end", "x == '12' was true and int(x) took it for no number"),
    "ascii": ("bytes that are not ASCII", "the process died of it"),
    "borrowed": ("a borrowed reference", "the address held another string"),
    "interpreter": ("another interpreter", "the import was refused"),
    "thread": ("the maker's thread is gone", "strings outlived their thread with the right hash"),
    "exit": ("alive at exit", "the process ended well with strings alive"),
}


def fragments(session: Session) -> dict[str, Callable[[], str]]:
    def appending() -> str:
        well = outcomes.own_append(session.frame(outcomes.LISTS))
        return listed(well.index[well].tolist())

    return {
        **{f"misuse-{name}": partial(misused, session, *both) for name, both in CONSEQUENCES.items()},
        **{name: partial(named, session, find) for name, find in outcomes.LISTED.items()},
        "both builds": lambda: listed(list(PAIR)),
        "name of the copied type": lambda: outcomes.copied(session.frame(outcomes.WORKS), "type(x).__name__"),
        "copied type, pickled": lambda: outcomes.copied(session.frame(outcomes.WORKS), outcomes.PICKLED).rstrip("."),
        "CPythons where an append of its own works": appending,
    }


def named(session: Session, find: Callable[[Session], list[str]]) -> str:
    """What is counted, one by one."""
    return listed(find(session))


def misused(session: Session, misuse: str, what: str) -> str:
    """On which CPythons a misuse had its consequence."""
    happened = outcomes.happened(session.frame(outcomes.MISUSED), misuse)
    where = {
        answer: listed([label for label, one in happened.items() if one is answer]) for answer in (True, False, None)
    }
    forms = {True: "on {}, {}", False: "not so on {}", None: "no answer on {}, as the process died"}
    parts = [forms[answer].format(labels, what) for answer, labels in where.items() if labels]
    return f"{capital('; '.join(parts))}." if parts else f"Whether {what} was not asked here."
