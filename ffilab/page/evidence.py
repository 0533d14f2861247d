"""The page of the studies that take long: what intervals were worth when builds, layouts and sessions were drawn
anew."""

import statistics

from ffilab.judge import wording
from ffilab.judge.estimates import PREDICTION_LEVEL, Interval, Share
from ffilab.page.templates import filled
from ffilab.run.paths import ROOT, read_json

FOLDER = ROOT / "book" / "evidence"
# The parts of the study of `ffilab scale`, as the page has them.
SCALE_PARTS = ("idle", "blind", "silent", "loaded", "cases")
STUDY = "python3 ffilab/bootstrap.py study "
# What an interval over layouts has to reach.
GOAL = 0.9
WHEELS_LEVEL = 0.95
INTERVALS = {
    "over_layouts": "over layouts",
    "next_build": "the next build",
    "this_binary": "one binary",
}


# What is counted of fresh sessions, and the title of each.
KINDS = {
    "another_session": "another session, same build",
    "another_build": "another session and build",
    "expected": "another session, where it was expected",
    "next_build": "next build, one link",
    "this_binary": "one binary",
}


def kept_evidence(name: str):
    """Read what a study left, a list of its rows or the table that it made of them; an empty list if it was not run."""
    path = FOLDER / f"{name}.json"
    return read_json(path) if path.exists() else []


def coverage_page(sessions: list[dict], fresh: list[dict], coverage: list[dict], levels: list[dict]) -> str:
    """What the study of calibration found: fresh sessions and a row for each of their ratios, those by which a rule was
    chosen, and the levels."""
    largest = [max(row["levels"], key=lambda level: row["levels"][level][0]) for row in levels]
    return filled(
        "coverage.md",
        study=STUDY,
        goal=GOAL,
        kinds=KINDS,
        intervals=INTERVALS,
        prediction=PREDICTION_LEVEL,
        sessions=sessions,
        days={session["machine"]["date"][:10] for session in sessions},
        builds={build for session in sessions for ratio in session["ratios"].values() for build in ratio["layouts"]},
        fresh=fresh,
        shares={kind: [row[kind] for row in fresh if row[kind] is not None] for kind in KINDS},
        coverage=coverage,
        honest=[row["honest"] for row in coverage if "honest" in row],
        company=[seen["company"] for row in coverage for seen in row.get("seen", [])],
        levels=levels,
        largest={level: largest.count(level) for level in dict.fromkeys(largest)},
        alarms=sum(row["copies"]["p"] < 0.05 / len(levels) for row in levels),
        mean=lambda values: sum(values) / len(values),
        percent=lambda value, digits=0: f"{value:.{digits}%}",
    )


def tools(rounds: list[dict]) -> list[dict]:
    """What each tool of the study of wheels said.

    right, wrong: in how many of its runs it found the slower wheel, and called a copy different. seconds: of a run.
    """
    runs = [run for one in rounds for run in one["runs"]]
    rows = []
    for name in dict.fromkeys(run["row"] for run in runs):
        own = [run for run in runs if run["row"] == name]
        more, copy = ([run["said"] for run in own if run["other"] == other] for other in ("more", "copy"))
        right, wrong = more.count("slower"), len(copy) - copy.count("no difference")
        rows.append(
            {"name": name, "right": Share(right, len(more)), "wrong": Share(wrong, len(copy))}
            | {"seconds": statistics.median(run["seconds"] for run in own)}
        )
    return rows


def wheels_page(rounds: list[dict]) -> str:
    """How often each tool tells a wheel with 1 % more instructions from its original, and a copy from it."""
    return filled("wheels.md", study=STUDY, rounds=rounds, tools=tools(rounds), level=WHEELS_LEVEL)


def scale_page(sessions: list[dict]) -> str:
    """What `ffilab scale` says of planted statements: of each part the newest session."""
    newest = {
        session["part"]: session for session in sorted(sessions, key=lambda session: SCALE_PARTS.index(session["part"]))
    }

    def said(row: dict) -> str:
        names = ", ".join(f"`{name.replace('|', '')}` ({kind})" for name, kind in row["culprits"])
        return names or row["verdict"]

    def rest(rows: list[dict]) -> str:
        still = [row for row in rows if not row["right"]]
        false, left_open = [row for row in still if row["false"]], [row for row in still if row["open"]]
        partly = len(still) - len(false) - len(left_open)
        return f"{len(left_open)} left open, {len(false)} with a false name, {partly} with a name or a kind missing."

    return filled(
        "scale.md",
        study=STUDY,
        sessions=list(newest.values()),
        said=said,
        rest=rest,
        enough=lambda row: ", ".join(how for how, _, is_enough in row["cures"] if is_enough) or "nothing alone",
        ratio=lambda found: "{:.2f} [{:.2f}, {:.2f}]".format(*found) if found else "",
        middle=lambda session: statistics.median(row["seconds"] for row in session["runs"]),
        longest=lambda session: max(row["seconds"] for row in session["runs"]),
        wrong=lambda session: sum(not row["right"] and not row["open"] for row in session["runs"]),
    )


def patches_page(sessions: list[dict]) -> str:
    """What the patches of book/upstream change: each time that a report's program prints, before and after."""
    found = sessions[-1] if sessions else None
    return filled("patches.md", study=STUDY, found=found, text=lambda one: wording.text(Interval(*one)))


def object_model_page(sessions: list[dict]) -> str:
    """What bindings do with classes: times, the questions on which they differ or agree, and further tools."""
    if not sessions:
        return filled("object_model.md", study=STUDY, found=None, tools={}, questions={}, alike=set())
    (found,) = sessions
    questions = {}
    for topic, question in [(topic, question) for topic, asked in found["questions"].items() for question in asked]:
        given = [[answered(of[tool], topic, question) for of in found["answers"].values()] for tool in found["tools"]]
        # By tool; both builds, where they differ.
        questions[topic, question] = [" / ".join(dict.fromkeys(answers)) for answers in given]
    return filled(
        "object_model.md",
        study=STUDY,
        found=found,
        tools=found["tools"],
        questions=questions,
        alike={asked for asked, answers in questions.items() if len(set(answers) - {""}) == 1},
        time=lambda tool, call, interval: " / ".join(
            time_text(times[tool][call], interval) for times in found["times"].values()
        ),
        time_text=time_text,
        span=lambda call: span(found, call),
    )


def span(found: dict, call: str) -> tuple[tuple, tuple]:
    """The shortest time of a call on the first build and the longest, each with its tool; what is written by hand is no
    tool's."""
    (topic,) = [topic for topic, calls in found["calls"].items() if call in calls]
    times = next(iter(found["times"].values()))
    known = [
        (of_tool[call], tool)
        for tool, of_tool in times.items()
        if call in of_tool and topic not in found["tools"][tool]["by-hand"]
    ]
    return min(known), max(known)


def answered(answers: list[list[str]], topic: str, question: str) -> str:
    """One answer, as a table shows it; nothing, where the tool has no such thing."""
    (text,) = [given for *asked, given in answers if asked == [topic, question]] or [""]
    return {"True": "yes", "False": "no", "": ""}.get(text, f"`{text}`")


def time_text(time: list[float], interval: bool = False) -> str:
    """A time with its interval, or with the digits that this justifies."""
    known = Interval(*time)
    return wording.text(known) if interval else wording.number(known.value, 10 * known.half_width)
