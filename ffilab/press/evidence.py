"""The page of the studies that take long: what intervals were worth when builds, layouts and sessions were drawn anew."""

from pathlib import Path

from ffilab.judge import coverage as judged
from ffilab.judge.estimates import PREDICTION_LEVEL
from ffilab.paths import ROOT, read_json

FOLDER = ROOT / "book" / "evidence"
STUDY = "python3 ffilab/bootstrap.py study notebooks.measuring."
# What an interval over layouts has to reach.
GOAL = 0.9
INTERVALS = {
    "over_layouts": "over layouts",
    "next_build": "the next build",
    "this_binary": "one binary",
}


def read(name: str, folder: Path = FOLDER) -> list[dict]:
    """Read the rows that a study left; nothing if it was not run."""
    path = folder / f"{name}.json"
    return read_json(path) if path.exists() else []


def coverage_page(sessions: list[dict], coverage: list[dict], levels: list[dict]) -> str:
    """The studies, with what they say in words: fresh sessions, those by which a rule was chosen, and the levels."""
    fresh = judged.rows(sessions)
    parts = [
        "## Fresh sessions",
        fresh_in_words(sessions, fresh),
        fresh_table(fresh),
        "## The sessions by which a rule was chosen",
        coverage_in_words(coverage),
        coverage_table(coverage),
        "## Levels",
        levels_in_words(levels),
        levels_table(levels),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def fresh_in_words(sessions: list[dict], rows: list[dict]) -> str:
    """How many sessions on how many days, and what each kind of interval did on average."""
    if not sessions:
        return f"No fresh session was measured yet: `{STUDY}coverage`."
    last = sessions[-1]["machine"]
    days = len({session["machine"]["date"][:10] for session in sessions})
    builds = {build for session in sessions for ratio in session["ratios"].values() for build in ratio["layouts"]}
    words = [
        f"{amount(len(sessions), 'session')} on {amount(days, 'day')}, {amount(len(builds), 'build')}, {len(rows)} ratios; the last one "
        f"on {last['cpu']}, {last['cores']} cores, {last['date']}, commit {last['commit']}."
    ]
    for kind, title in judged.KINDS.items():
        if shares := [row[kind] for row in rows if row[kind] is not None]:
            words.append(
                f"*{title[0].upper()}{title[1:]}*: {sum(shares) / len(shares):.1%} on average, {min(shares):.0%} at least."
            )
    if len(words) == 1:
        return f"{words[0]} One session has no other to be held against."
    expected = sum(row["honest"] for row in rows) / len(rows)
    return " ".join(
        [
            *words,
            f"Of the first two, an honest interval would hold {expected:.1%}; of the predictions, {PREDICTION_LEVEL:.0%}.",
        ]
    )


def amount(number: int, thing: str) -> str:
    return f"{number} {thing}{'s' * (number != 1)}"


def fresh_table(rows: list[dict]) -> str:
    """A row for each ratio: shares inside by kind, and half-widths."""
    if not any(row[kind] is not None for row in rows for kind in judged.KINDS):
        return ""
    lines = [
        f"| Ratio | {' | '.join(judged.KINDS.values())} | half-width, over layouts | half-width, one binary |",
        "|---|" + "---|" * (len(judged.KINDS) + 2),
    ]
    for row in rows:
        cells = ["" if row[kind] is None else f"{row[kind]:.0%}" for kind in judged.KINDS]
        cells += [f"±{row[name]:.2%}" if row[name] == row[name] else "" for name in ("half_width", "half_width_binary")]
        lines.append(f"| {row['ratio']} | {' | '.join(cells)} |")
    return "\n".join(lines)


def coverage_in_words(rows: list[dict]) -> str:
    """Which kind of interval kept its promise for how many ratios."""
    if not rows:
        return "They are not here."
    first = rows[0]
    words = [
        f"Measured on {first['machine']['cpu']}, {first['machine']['cores']} cores, {first['machine']['date']}, commit "
        f"{first['machine']['commit']}: {first['sessions']} sessions over {first['builds']} builds, {len(rows)} ratios."
    ]
    for key, name in INTERVALS.items():
        kept = sum(row[key] >= GOAL for row in rows)
        mean = sum(row[key] for row in rows) / len(rows)
        words.append(
            f"*{name[0].upper()}{name[1:]}*: {mean:.0%} on average; {GOAL:.0%} or more for {kept} of {len(rows)} ratios."
        )
    if expected := [row["honest"] for row in rows if "honest" in row]:
        words.append(
            f"Both sides of a pair are uncertain: an honest interval over layouts would hold {sum(expected) / len(expected):.0%}."
        )
    if company := [first["company"] for row in rows for first in row.get("seen", [])]:
        words.append(
            f"Something else ran on the core in {min(company):.0%} to {max(company):.0%} of a session's work; batches with such "
            "company are discarded."
        )
    return " ".join(words)


def coverage_table(rows: list[dict]) -> str:
    """A row for each ratio: shares inside, and the half-widths that buy them."""
    if not rows:
        return ""
    lines = [
        "| Ratio | " + " | ".join(f"inside, {name} | half-width" for name in INTERVALS.values()) + " |",
        "|---|" + "---|---|" * len(INTERVALS),
    ]
    for row in rows:
        cells = [f"{row[key]:.0%} | ±{row['half_widths'][key]:.2%}" for key in INTERVALS]
        lines.append(f"| {row['ratio']} | {' | '.join(cells)} |")
    return "\n".join(lines)


def levels_in_words(rows: list[dict]) -> str:
    """Which level scatters most, what a copy adds, and how many restarts a layout should have."""
    if not rows:
        return f"The study of levels was not run yet: `{STUDY}levels`."
    first, design = rows[0], rows[0]["design"]
    largest = {row["ratio"]: max(row["levels"], key=lambda level: row["levels"][level][0]) for row in rows}
    counted = {level: list(largest.values()).count(level) for level in dict.fromkeys(largest.values())}
    alarms = sum(row["copies"]["p"] < 0.05 / len(rows) for row in rows)
    differ = first["differences"]
    return (
        f"The design: {design['builds']} builds × {design['layouts']} layouts × {design['sessions']} sessions × "
        f"{design['restarts']} restarts, and copies of one layout as a control, on {first['machine']['date']}. "
        f"The level that adds most (a restart with the noise of its blocks): {', '.join(f'{level} for {count} of {len(rows)} ratios' for level, count in counted.items())}. "
        f"Copies of one layout differed for {alarms} of {len(rows)} ratios (F test, Bonferroni). Two builds of one recipe differ in "
        f"{len(differ['differ'])} of {differ['objects']} object files. A layout costs {first['cost']['link_s']:.2f} s, a restart of this plan "
        f"{first['cost']['restart_s']:.2f} s; the last column is the cheapest number of restarts for each layout {{cite}}`kalibera2013`, if the "
        "links served this one plan. In the book they serve all plans of a run."
    )


def levels_table(rows: list[dict]) -> str:
    """A row for each ratio: the standard deviation that each level adds, in per cent, and the half-widths that follow for so
    many layouts with one restart each."""
    if not rows:
        return ""
    levels, numbers = list(rows[0]["levels"]), list(rows[0]["half_widths"])
    half_widths = [f"half-width, {number} layouts" for number in numbers]
    lines = [
        f"| Ratio | {' | '.join([*levels, 'restarts a layout', *half_widths])} |",
        "|---|" + "---|" * (len(levels) + 1 + len(numbers)),
    ]
    for row in rows:
        cells = [
            f"{100 * value:.2f} [{100 * low:.2f}, {100 * high:.2f}]" for value, low, high in row["levels"].values()
        ]
        times = row["restarts_a_layout"]
        cells.append("many" if times > 99 else f"{times:.1f}")
        cells += [f"±{row['half_widths'][number]:.2%}" for number in numbers]
        lines.append(f"| {row['ratio']} | {' | '.join(cells)} |")
    return "\n".join(lines)
