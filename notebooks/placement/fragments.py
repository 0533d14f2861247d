"""What the sentences of the chapter "Code placement" name and no form can say: lists by answer, names of commits and of the machine."""

from collections.abc import Callable
from functools import partial

from ffilab.judge import sentences
from ffilab.judge.wording import listed, text
from ffilab.measure.session import Session
from notebooks.placement import results
from notebooks.placement.experiment import APART
from notebooks.placement.numbers import cache


def fragments(session: Session) -> dict[str, Callable[[], str]]:
    return {
        "lots-by-answer": lambda: " ".join(by_answer(session, "lots")),
        "own-order-by-answer": lambda: " ".join(by_answer(session, "own-order")),
        "prediction-3": lambda: " ".join(by_answer(session, "prediction-3")),
        "misses-by-answer": lambda: " ".join(by_answer(session, "misses")),
        "no-misses": lambda: " ".join(by_answer(session, "no-misses")),
        "pages-of-fewer": lambda: " ".join(by_answer(session, "pages")),
        "stalls-by-lot": lambda: " ".join(by_answer(session, "stalls-by-lot")),
        "hot": lambda: " ".join(by_answer(session, "hot")),
        "takeaway-orders": lambda: by_answer(session, "takeaway")[0],
        "too-slow-before": partial(too_slow_before, session),
        "cache": lambda: cache(session).name,
        "blamed-others": partial(blamed_others, session),
        "processor": partial(processor, session),
    }


def by_answer(session: Session, what: str) -> list[str]:
    """The parts `what: ...`, in the order of their forms. Of those that say the same, what stands between « and » becomes a list; where
    all lack their number for one reason, there is nothing to list."""
    parts = {name: part for name, part in sentences.read(session.chapter).items() if name.startswith(f"{what}: ")}
    first = next(iter(parts.values()))
    order = [form.partition("«")[0] for form in (*first.forms.values(), first.few)]
    alike: dict[tuple[str, str], list[str]] = {}
    for name in parts:
        before, _, rest = sentences.said(session)[name].partition("«")
        named, _, after = rest.partition("»")
        alike.setdefault((before, after), []).append(named)
    said = []
    for (before, after), names in sorted(alike.items(), key=lambda found: order.index(found[0][0])):
        if before == order[-1] and names[0] and len(names) == len(parts):
            said.append(before.removesuffix(" in ") + after)
        elif before:
            said.append(before + listed([name for name in names if name]) + after)
    return said


def too_slow_before(session: Session) -> str:
    """Numbers of functions below the largest that keeps its time, and which do not."""
    found = results.too_slow_before(session.frame("distances"), APART)
    return "".join(f"With {n} functions it is {text(one)} all the same. " for n, one in found.items())


def blamed_others(session: Session) -> str:
    """What the other bisections with the trap blame."""
    trap = results.of_history(session.frame("git bisect"), results.TRAP)
    others = trap[trap.found == 0].message.value_counts().items()
    return "".join(f"; {count} {'blames' if count == 1 else 'blame'} “{message}”" for message, count in others)


def processor(session: Session) -> str:
    """Its name beside that of the document's, and who governs its frequency."""
    name, governor = session.machine.get("cpu"), session.machine.get("governor")
    said = (
        f"The document's processor was an Intel Xeon X5680 (Westmere, 2010), and this one is called {name}: how it fetches, decodes and "
        "predicts may be quite another matter."
        if name
        else "Which processor this is, is not known; the document's was an Intel Xeon X5680 (Westmere, 2010)."
    )
    if governor:
        return f"{said} The system governs the frequency (its governor is called {governor})"
    return f"{said} The frequency cannot be pinned or read here"
