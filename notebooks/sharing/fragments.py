"""What the sentences of the chapter "Sharing" list, and no form can say."""

from collections.abc import Callable

from ffilab.judge.numbers import numbers_of
from ffilab.judge.questions import NO, YES, above
from ffilab.judge.wording import capital, listed
from ffilab.measure.session import Session
from notebooks.boundary import experiment as boundary
from notebooks.sharing import experiment as e
from notebooks.sharing import numbers, numbers_waiting

# What scales brings half a thread more at least; what does not brings a fifth at most.
SCALES, NO_GAIN = 1.5, 1.2


def fragments(session: Session) -> dict[str, Callable[[], str]]:
    return {
        "calibrated": lambda: capital("; ".join(f"{one.what}: {one.found}" for one in numbers.controls(session))),
        "functions": lambda: by_way(session, "function"),
        "calls": lambda: by_gain(session, f"call of {{}}, {e.AS_IT_IS}", e.CALLED),
        "objects": lambda: by_gain(session, f"new object of {{}}, {e.AS_IT_IS}", e.MAKERS),
        "elsewhere": lambda: elsewhere(session),
        "refused": lambda: refused(session),
        "then": lambda: by_benchmark(session, e.DID_NOT),
        "still": lambda: by_benchmark(session, e.SCALED),
    }


def by_way(session: Session, what: str) -> str:
    """`immortal in nanobind; plain in PyO3 and pybind11`."""
    found = numbers.ways_of(session, what)
    return "; ".join(f"{way} in {listed(found[way])}" for way in e.WAYS if found[way])


def sorted_by_gain(session: Session, names: dict[str, str]) -> str:
    """`scaling: A; not scaling: B; between the two, or too close to call: C`."""
    cases: dict[str, list[str]] = {"scaling": [], "not scaling": [], "between the two, or too close to call": []}
    for word, name in names.items():
        if estimate := numbers_of(session)[name].estimate:
            if above(estimate.interval, SCALES) == YES:
                cases["scaling"].append(word)
            elif above(estimate.interval, NO_GAIN) == NO:
                cases["not scaling"].append(word)
            else:
                cases["between the two, or too close to call"].append(word)
    said = [f"{how}: {listed(words)}" for how, words in cases.items() if words]
    return "; ".join(said) if said else "nothing was measured"


def by_gain(session: Session, name: str, bindings: tuple[str, ...]) -> str:
    return sorted_by_gain(session, {binding: f"{name.format(binding)}: two threads / one" for binding in bindings})


def by_benchmark(session: Session, benchmarks: tuple[str, ...]) -> str:
    return sorted_by_gain(session, {name: f"CPython's script, {name}: two threads / one" for name in benchmarks})


def elsewhere(session: Session) -> str:
    """`imported on both builds: A and B; on neither: C`: bindings in another interpreter."""
    frame = session.frame(numbers_waiting.ELSEWHERE)
    imports = frame[frame.said == e.ANSWERS_THERE].groupby("binding").interpreter.nunique()
    builds = frame.groupby("binding").interpreter.nunique()
    cases = {"wherever it was tried": [], "on one build only": [], "nowhere": []}
    for binding in [name for name in boundary.BINDINGS if name in builds.index]:
        count = imports.get(binding, 0)
        how = "nowhere" if not count else "wherever it was tried" if count == builds[binding] else "on one build only"
        cases[how].append(binding)
    return "; ".join(f"{how}: {listed(names)}" for how, names in cases.items() if names)


def refused(session: Session) -> str:
    """Modules of C of the standard library that another interpreter refuses, on any build."""
    frame = session.frame(numbers_waiting.MODULES)
    return listed(sorted({name for names in frame.names.dropna() for name in names.split()})) or "none"
