"""What the sentences of the chapter "Code placement" name and no form can say: names of commits and of the machine."""

from collections.abc import Callable

from ffilab.measure.session import Session
from notebooks.placement import geometry, history


def fragments(session: Session) -> dict[str, Callable[[], str]]:
    def blamed_others() -> str:
        """What the other bisections with the trap blame."""
        trap = history.of_history(session.frame("git bisect"), history.TRAP)
        others = trap[trap.found == 0].message.value_counts().items()
        return "".join(f"; {count} {'blames' if count == 1 else 'blame'} “{message}”" for message, count in others)

    def processor() -> str:
        """Its name, and who governs its frequency."""
        name, governor = (session.machine.get(what) for what in ("cpu", "governor"))
        pinned = f"is governed by {governor}" if governor else "cannot be pinned or read here"
        called = f"The processor is called {name or 'by no name'}; the post's was a Xeon X5680 of 2010."
        return f"{called} Its frequency {pinned}"

    return {"cache": lambda: geometry.cache(session).name, "blamed-others": blamed_others, "processor": processor}
