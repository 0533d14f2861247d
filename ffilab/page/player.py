"""The player of recorded runs: what it plays, as draw.player shows it and `book/_static/player.js` plays it.

A scene is a list of rows (lane, state, begin and end in ns); its key names the settings that it was recorded with.
"""

from collections.abc import Callable, Iterable

import pandas as pd

from ffilab.measure.case import Case
from ffilab.measure.session import Session
from ffilab.page.plots import PALETTE

Row = tuple[str, str, float, float]
Scenes = dict[tuple[str, ...], list[Row]]
# Of a CPython of which nobody changed it, in ns.
SWITCH_INTERVAL = 5e6
HAS, WAITS, OVER = "has the GIL", "waits for the GIL", "a switch interval is over"
RUNS, STILL, REQUEST = "runs; there is no GIL", "does not run", "request"
ASLEEP, HOLDING = "sleeps in C, without the GIL", "sleeps in C, with the GIL"
# How a state is drawn, and whether it has the token.
KINDS = {HAS: "has", HOLDING: "has", WAITS: "waits", **dict.fromkeys((REQUEST, ASLEEP, RUNS), "apart")}
KINDS |= {STILL: "still", OVER: "mark"}
WORDS = {
    "player": "Player",
    "play": "Play",
    "pause": "Pause",
    "back": "Back to the event before",
    "on": "On to the next event",
    "time": "Time",
    "nothing": "nothing noted",
    "token": "GIL",
}


def recorded(session: Session, title: str, cases: list[Case]) -> pd.DataFrame:
    """One process of each case, as a frame of the session."""
    return session.run(title, cases, 1)


def first_of_each(frame: pd.DataFrame, *columns: str) -> dict[tuple[str, ...], dict]:
    """The first process that ended well, for each combination of these columns."""
    found = frame[frame.ended == "ok"].sort_values(list(columns), kind="stable").drop_duplicates(list(columns))
    return {tuple(row[column] for column in columns): row for row in found.to_dict("records")}


def digits(number: float) -> str:
    """Two digits for prose."""
    return f"{number:,.0f}" if number >= 10 else f"{number:.2g}"


def as_data(scenes: Scenes, settings: tuple[str, ...], first: tuple[str, ...], say: Callable[[str], str]) -> dict:
    """What the script reads: lanes and states by number, times in µs, all words in the page's language, as `say` has
    them."""
    lanes = lanes_of(*scenes.values())
    states = [state for state in KINDS if any(state == row[1] for scene in scenes.values() for row in scene)]
    values = [list(dict.fromkeys(key[number] for key in scenes)) for number in range(len(settings))]

    def numbered(row: Row) -> list[int]:
        lane, state, begin, end = row
        return [lanes.index(lane), states.index(state), round(begin / 1e3), round(end / 1e3)]

    return {
        "words": {key: say(text) for key, text in WORDS.items()},
        "settings": [[say(name), list(map(say, found))] for name, found in zip(settings, values)],
        "first": list(map(say, first)),
        "lanes": list(map(say, lanes)),
        "states": [[say(state), KINDS[state]] for state in states],
        "scenes": {"|".join(map(say, key)): list(map(numbered, scene)) for key, scene in scenes.items()},
    }


def clipped(rows: Iterable[Row], begin: float, end: float) -> list[Row]:
    """What of these rows lies between two times, counted from the first of them."""
    return [
        (lane, state, max(a, begin) - begin, min(b, end) - begin)
        for lane, state, a, b in rows
        if a <= b and b >= begin and a <= end
    ]


def threads(
    gaps: dict[str, list],
    begin: float,
    end: float,
    running: str = HAS,
    noted: Iterable[float] = (),
    longer: float = SWITCH_INTERVAL / 20,
) -> list[Row]:
    """Rows of threads that note the gaps in which they did not run. Where another one had the GIL in a gap, its thread
    waited for it.

    noted: moments at which somebody else is known to have had the GIL. longer: what other gaps are shown, in ns.
    """
    long = {lane: [gap for gap in found if gap[1] - gap[0] > longer] for lane, found in gaps.items()}
    ran = {lane: between(found, begin, end) for lane, found in long.items()}
    rows: list[Row] = []
    for lane, found in gaps.items():
        others = [*((moment, moment) for moment in noted), *(pair for one in ran if one != lane for pair in ran[one])]
        waited = [gap for gap in found if any(a < gap[1] and gap[0] < b for a, b in others)]
        waited = waited if running == HAS else []
        rows += [(lane, WAITS, *gap) for gap in waited]
        rows += [(lane, STILL, *gap) for gap in long[lane] if gap not in waited]
        rows += [(lane, running, *pair) for pair in between([*waited, *long[lane]], begin, end)]
    return clipped(rows, begin, end)


def between(gaps: Iterable, begin: float, end: float) -> list[tuple[float, float]]:
    """What of the time from begin to end lies in none of these gaps."""
    found, last = [], begin
    for a, b in sorted(gaps):
        if a > last:
            found.append((last, min(a, end)))
        last = max(last, b)
    found.append((last, end))
    return [(a, b) for a, b in found if b > a and b > begin and a < end]


def interval_over(rows: list[Row], interval: float = SWITCH_INTERVAL) -> list[Row]:
    """A mark in each wait that lasts longer than a switch interval (ns), where the first one is over."""
    return [
        (lane, OVER, a + interval, a + interval) for lane, state, a, b in rows if state == WAITS and b - a > interval
    ]


def lanes_of(*scenes: list[Row]) -> list[str]:
    return list(dict.fromkeys(lane for scene in scenes for lane, *_ in scene))


# Colours of the palette, and hatches, by kind.
LOOKS = {"has": (0, ""), "waits": (1, "///"), "apart": (2, ""), "still": (5, "")}


def plot_scene(figure, scene: list[Row]) -> None:
    """The whole scene as bars: what is seen where nothing can be played."""
    axes, lanes, named = figure.subplots(), lanes_of(scene), set()
    for lane, state, begin, end in sorted(scene, key=lambda row: row[2] - row[3]):
        place, kind = len(lanes) - 1 - lanes.index(lane), KINDS[state]
        label = None if state in named else state
        named.add(state)
        if kind == "mark":
            axes.plot(begin / 1e6, place + 0.4, "v", color=PALETTE[5], markersize=5, label=label)
            continue
        number, hatch = LOOKS[kind]
        color = PALETTE[number]
        look = {"color": color} if kind == "has" else {"facecolor": "none", "edgecolor": color, "hatch": hatch}
        axes.barh(place, (end - begin) / 1e6, 0.12 if kind == "still" else 0.6, begin / 1e6, label=label, **look)
    axes.set_yticks(range(len(lanes)), lanes[::-1])
    axes.set(xlabel="ms", ylim=(-0.6, len(lanes) - 0.3))
    axes.grid(axis="y", visible=False)
    figure.legend(*axes.get_legend_handles_labels(), loc="outside upper center", ncols=3)
