"""Records that nobody measured: what they hold is known."""

import numpy as np

from ffilab.judge.estimates import Counted, Location, Measurement, Share
from ffilab.measure.lines import Writer
from ffilab.measure.reading import Session
from ffilab.measure.record import Record
from ffilab.setup.catalogue import GIL

# Of a block that nothing disturbed.
QUIET = {"strangers_s": 0.0, "throttled_s": 0.0, "wall_s": 0.1, "involuntary": 0, "steal_s": 0.0}
FACTS = {
    "cpu": "a CPU", "cores": 2, "memory_gib": 4, "virtual_machine": None, "system": "Linux", "libc": "glibc",
    "compiler": "gcc", "commit": "c", "date": "2026-01-01T00:00:00", "governor": None, "load": 0.1, "steal_s": 0.0,
}  # fmt: skip
BUILT = {"version": "3.14.7", "route": "source", "config_args": "", "stamp": "s"}


def timed(logs, drawn=None, loops=1000, builds=1, name="calls", ns=1e3, **columns):
    """A record of one plan: by arm on GIL, or by cell, the logarithms of its times, in units of `ns`, shape (restarts, blocks).

    drawn: the number of the layout of each restart; none, if there is one binary. columns: further ones of each block.
    """
    logs = {arm if "/" in arm else f"{GIL}/{arm}": np.asarray(values, dtype=float) for arm, values in logs.items()}
    labels = list(dict.fromkeys(key.partition("/")[0] for key in logs))
    restarts, blocks = next(iter(logs.values())).shape
    times = {key: (ns * loops * np.exp(values)).tolist() for key, values in logs.items()}

    def layouts(number):
        return {GIL: {"number": number, "id": f"id{number}", "seed": number, "build": number % builds + 1}}

    return Record(
        None,
        {
            "plan": {
                "name": name, "interpreters": labels, "blocks": blocks, "seed": 1, "budget": "quick",
                "arms": [{"name": arm} for arm in dict.fromkeys(key.partition("/")[2] for key in logs)],
            },
            "machine": FACTS,
            "interpreters": dict.fromkeys(labels, BUILT),
        },
        loops=dict.fromkeys(logs, loops),
        restarts=[
            {"restart": number, "missing": {label: {} for label in labels}}
            | ({"layout": None, "layouts": {}} if drawn is None else {"layout": int(drawn[number]), "layouts": layouts(int(drawn[number]))})
            for number in range(restarts)
        ],
        blocks=[
            {"restart": restart, "block": block, "ns": {key: found[restart][block] for key, found in times.items()}, **QUIET | columns}
            for restart in range(restarts)
            for block in range(blocks)
        ],
        end={"machine": {"load": 0.1, "steal_s": 0.0}},
    )  # fmt: skip


def about(value, error=0.005, n=20):
    """A measurement with this centre."""
    return Measurement(Location(value, error, n - 1, n), "")


def seen(events, trials=30):
    """An event that was seen in so many runs."""
    return Measurement(Share(events, trials), "")


def counted(value):
    """What was counted, and has no width."""
    return Measurement(Counted(value), "")


def write(record, path):
    """A record as a measurement leaves it on disk; returns the path."""
    writer = Writer(path)
    writer.write("run", **record.run)
    writer.write("loops", loops=record.loops)
    for kind, lines in (("restart", record.restarts), ("block", record.blocks), ("failure", record.failures)):
        for line in lines:
            writer.write(kind, **line)
    writer.write("end", **record.end)
    writer.close()
    return path


class Made(Session):
    """A session of made-up records. children: lines of its processes; timed: its plans by name."""

    def __init__(self, chapter="loaders", children=(), **plans):
        run = {
            "plan": {
                "name": chapter,
                "session": "made up",
                "seed": 1,
                "budget": "quick",
                "interpreters": [GIL],
                "earlier": [],
            }
        }
        titles = {
            title: [line for line in children if line["title"] == title]
            for title in dict.fromkeys(line["title"] for line in children)
        }
        experiments = [{"title": title, "run": 1, "processes": len(lines)} for title, lines in titles.items()]
        super().__init__(chapter, None, Record(None, run, experiments=experiments, children=list(children)))
        self._timed.update(plans)

    @property
    def plans(self):
        return sorted(self._timed)


def processes(title, others=(), cases=1, n=10):
    """Lines of n processes of each case that lasted a tenth of a second. others: the numbers of those that strangers disturbed."""
    return [
        {
            "title": title, "run": 1, "process": number, "round": number // cases, "interpreter": GIL,
            "factors": {"case": number % cases}, "result": {"x": 1.0}, "ended": "ok",
            **QUIET, "strangers_s": 0.1 * (number in others),
        }
        for number in range(n * cases)
    ]  # fmt: skip
