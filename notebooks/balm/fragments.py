"""What the sentences of the chapter "GIL Balm" name and no form can say: CPythons and probes by their answers."""

from collections.abc import Callable
from functools import partial

from ffilab.judge.wording import capital, listed
from ffilab.measure.session import Session
from notebooks.balm import numbers, results
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
    def copied(probe: str) -> str:
        return results.copied(session.frame(numbers.WORKS), probe)

    return {
        **{f"misuse-{name}": partial(misused, session, *both) for name, both in CONSEQUENCES.items()},
        **{name: lambda find=find: listed(find()) for name, find in numbers.lists(session).items()},
        "both builds": lambda: listed(list(PAIR)),
        "name of the copied type": lambda: copied("type(x).__name__"),
        "copied type, pickled": lambda: copied("pickle.loads(pickle.dumps(x))").rstrip("."),
        "CPythons where an append of its own works": lambda: listed(
            [label for label, well in results.own_append(session.frame(numbers.LISTS)).items() if well]
        ),
    }


def misused(session: Session, misuse: str, what: str) -> str:
    """On which CPythons a misuse had its consequence."""
    happened = results.happened(session.frame(numbers.MISUSED), misuse)
    where = {
        answer: listed([label for label, one in happened.items() if one is answer]) for answer in (True, False, None)
    }
    forms = {True: "on {}, {}", False: "not so on {}", None: "no answer on {}, as the process died"}
    parts = [forms[answer].format(labels, what) for answer, labels in where.items() if labels]
    return f"{capital('; '.join(parts))}." if parts else f"Whether {what} was not asked here."
