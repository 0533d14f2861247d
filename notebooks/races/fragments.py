"""What the sentences of the chapter "Races" name and no form can say: lists."""

from collections.abc import Callable
from functools import partial

from ffilab.judge.estimates import Share
from ffilab.judge.wording import listed
from ffilab.measure.session import Session
from notebooks.races import numbers, results


def fragments(session: Session) -> dict[str, Callable[[], str]]:
    return {
        "meeting": lambda: meeting(session),
        "wrong-with-the-gil": lambda: went_wrong(numbers.wrong_with_the_gil(session)),
        "wrong-atomic-banks": lambda: went_wrong(numbers.atomic_banks(session)),
        "missed-alone": partial(missed, session, "window"),
        "missed-with-check": partial(missed, session, "with check"),
    }


def meeting(session: Session) -> str:
    """The control: did threads meet where nothing keeps them apart?"""
    checks = numbers.controls(session)
    if not checks:
        return "Whether the threads met cannot be told: no such run was measured here."
    failed = [f"{check.what} ({check.found})" for check in checks if not check.passed]
    if not failed:
        return f"The threads met: {'; '.join(f'{check.what}, {check.found}' for check in checks)}."
    return (
        f"The threads did not meet often enough in {listed(failed)}. Who never met cannot have lost anything: that nothing "
        "was lost there says nothing."
    )


def went_wrong(found: dict[str, Share | None]) -> str:
    """Those of which a run went wrong, and in how many."""
    return "; ".join(
        f"{what} in {share.events} of {share.trials} runs" for what, share in found.items() if share and share.events
    )


def missed(session: Session, model: str) -> str:
    """The windows at which a model lies outside of the interval."""
    found = results.misses(results.payments(session.frame("width of the window")))
    return listed([f"{window / 1000:g} µs" for window in found[model]])
