"""The scenes of the chapter's player: recorded requests, the server's calls that wait, and when each CPU thread
runs."""

import pandas as pd

from ffilab.page import draw
from ffilab.page.player import HAS, REQUEST, WAITS, Row, Scenes, clipped, digits, interval_over, recorded, threads  # noqa: F401
from notebooks.convoy import numbers
from notebooks.convoy.experiment import DEFAULT_S
from notebooks.convoy.figures import cpu_threads, duration

SETTINGS = "switch interval", "beside the server"
FIRST = duration(DEFAULT_S), cpu_threads(1)
REQUESTS = 3
PLAIN = "Who has the GIL, from moment to moment, as one process noted it."
FOUND = (
    "Who has the GIL, as one process noted it: beside one CPU thread an answer took {there} ms at a switch interval of "
    "{default}, and {here} ms at {shortest}."
)


def scenes(timelines: pd.DataFrame) -> Scenes:
    """The first requests of one process for each switch interval and number of CPU threads."""
    found = numbers.done(timelines).sort_values(["interval", "count"], ascending=[False, True], kind="stable")
    made: Scenes = {}
    for row in found.to_dict("records"):
        made.setdefault((duration(row["interval"]), cpu_threads(row["count"])), of_process(row))
    return {key: scene for key, scene in made.items() if scene}


def of_process(timeline: dict) -> list[Row]:
    """Who had the GIL, who waited for it, and where a switch interval was over."""
    interval, calls = timeline["interval"] * 1e9, numbers.calls(timeline)
    # A wait of the first request would begin before what was noted.
    spans = timeline["spans"][1 : 1 + REQUESTS]
    if len(calls) < 2 * len(spans) or not spans:
        return []
    begin, end = spans[0][0], max(spans[-1][1], calls.end.iloc[2 * len(spans) - 1]) + interval / 5
    rows = [("client", REQUEST, *span) for span in spans]
    for call in calls.itertuples():
        if call.end - call.begin > numbers.LONG * interval:
            rows.append(("server", WAITS, call.begin, call.end))
        # It lets go of the GIL at once: with the next call.
        rows.append(("server", HAS, call.end, call.end))
    gaps = [timeline["gaps"], *timeline["further"]]
    names = ["CPU thread", *(f"CPU thread {number}" for number in range(2, len(gaps) + 1))]
    shown = clipped(rows, begin, end)
    shown += threads(dict(zip(names, gaps)), begin, end, noted=calls.end, longer=interval / 20)
    return [*shown, *interval_over(shown, interval)]


def alt_text(made: Scenes) -> str:
    """The finding, for the caption: how long a client of this recording waits for its answers, at the default interval
    and at the shortest."""
    took = {}
    for key, scene in made.items():
        answered = [end - begin for _, state, begin, end in scene if state == REQUEST]
        if key[1] == FIRST[1] and answered:
            took[key[0]] = sum(answered) / len(answered) / 1e6
    if FIRST[0] not in took:
        return draw.translated(PLAIN)
    shortest = list(took)[-1]
    facts = {"default": FIRST[0], "there": digits(took[FIRST[0]]), "shortest": shortest, "here": digits(took[shortest])}
    return draw.translated(FOUND).format(**facts)
