"""Records that nobody measured, and whose truth is known: of timed plans, and of experiments in processes."""

import numpy as np

from ffilab.measure.record import Record
from ffilab.measure.session import Session
from ffilab.setup.catalogue import GIL

LOOPS = 1_000_000
MACHINE = {
    "cpu": "a CPU",
    "cores": 2,
    "cores_usable": 2,
    "memory_gib": 4,
    "virtual_machine": None,
    "system": "Linux",
    "libc": "glibc",
    "compiler": "gcc",
    "commit": "c",
    "date": "2026-01-01T00:00:00",
    "governor": None,
    "load": 0.1,
    "steal_s": 0.0,
}
BUILT = {"version": f"{GIL}.7", "route": "source", "config_args": "", "stamp": "s"}
# Of a block or a process.
UNDISTURBED = {"strangers_s": 0.0, "throttled_s": 0.0, "steal_s": 0.0, "wall_s": 0.1}


def timed(logs: dict, layouts=None, loops=LOOPS, builds=1, ns=1e3, **columns) -> Record:
    """The record of a timed plan. logs: by cell, or by arm on GIL, the logarithms of its times, in units of `ns`, shape
    (restarts, blocks). layouts: the number of each restart's; none, if there is one binary. columns: further ones of
    each block."""
    times = {key if "/" in key else f"{GIL}/{key}": ns * loops * np.exp(values) for key, values in logs.items()}
    labels, arms = (list(dict.fromkeys(key.partition("/")[part] for key in times)) for part in (0, 2))
    restarts, blocks = next(iter(times.values())).shape
    drawn = [None if layouts is None else int(layouts[number]) for number in range(restarts)]

    def layout(number: int | None) -> dict:
        described = {"number": number, "id": f"id{number}", "seed": number, "build": (number or 0) % builds + 1}
        return {"layout": number, "layouts": {} if number is None else dict.fromkeys(labels, described)}

    made = {"name": "calls", "interpreters": labels, "blocks": blocks, "seed": 1, "budget": "quick"}
    return Record(
        None,
        {
            "plan": {**made, "arms": [{"name": arm} for arm in arms]},
            "machine": MACHINE,
            "interpreters": {label: BUILT for label in labels},
        },
        loops=dict.fromkeys(times, loops),
        restarts=[
            {"restart": number, "missing": {label: {} for label in labels}, **layout(which)}
            for number, which in enumerate(drawn)
        ],
        blocks=[
            {"restart": restart, "block": block, **UNDISTURBED, **columns}
            | {"ns": {key: float(found[restart, block]) for key, found in times.items()}}
            for restart in range(restarts)
            for block in range(blocks)
        ],
        end={"machine": {"load": 0.1, "steal_s": 0.0}},
    )


def matrix_cell(label: str, binding: str, signature: str, ns: float | None = None, **further) -> dict:
    """A row of the matrix as its chapter keeps it; without `ns` it was not measured. further: other columns."""
    numbers = {"ns": ns, "over the floor": 5.0, "ratio to the floor": ns and 0.075 * ns}
    intervals = {
        f"{name}{end}": value * by if ns else None
        for name, value in numbers.items()
        for end, by in (("", 1), (", low", 0.9), (", high", 1.1))
    }
    return {
        **{"CPython": label, "binding": binding, "signature": signature, **intervals, "instructions": None, "n": 4},
        **{"section": "notebooks/x/x.html#there", "code": "notebooks/x/y.html#binding-pyo3"},
        **{"record": "x/1/matrix.jsonl", "why": "" if ns else "no compiler <here>"},
        **further,
    }


class MadeUp(Session):
    """A session of a chapter, to which processes and timed plans are added."""

    def __init__(self, chapter: str, **plans: Record):
        plan = {"name": chapter, "session": "made up", "seed": 0, "budget": "full", "interpreters": [GIL]}
        run = {"plan": {**plan, "earlier": [], "blocks": 0}, "machine": MACHINE, "interpreters": {}, "layouts": {}}
        super().__init__(chapter, None, Record(None, run))
        self._timed |= plans

    @property
    def plans(self) -> list[str]:
        return sorted(self._timed)

    def add_processes(self, title: str, cases: list[tuple[dict, list]]) -> None:
        """An experiment in processes on GIL: for each case its factors, and what each of its processes brought (a row,
        or a list of rows)."""
        named, number = {"title": title, "run": 1}, 0
        for factors, results in cases:
            for round_, result in enumerate(results):
                child = {**named, "process": number, "round": round_, "interpreter": GIL, "factors": factors}
                self.record.children.append({**child, **UNDISTURBED, "result": result, "ended": "ok"})
                number += 1
        self.record.experiments.append({**named, "processes": number})
