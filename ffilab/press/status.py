"""Pages that only a run can write: the state of the chapters, interpreters, contents, course, ledger."""

import re
from pathlib import Path

from ffilab.budget import BUDGETS
from ffilab.chapter import left_out
from ffilab.draw import plain
from ffilab.judge import characteristics
from ffilab.judge.estimates import Share
from ffilab.paths import ROOT
from ffilab.press import evidence, lessons, matrix
from ffilab.press import map as corner_map
from ffilab.press.chapters import Chapter, chapters
from ffilab.progress import minutes
from ffilab.provision.catalogue import FREE_THREADED, GIL
from ffilab.provision.installed import same_build


def chapters_page() -> str:
    """Make a table of the facts of each page: Jupyter kernel, GIL, budget, duration, when, and whether it is fresh."""
    rows = [
        "| Chapter | Jupyter kernel | GIL | Budget | Duration | Measured (UTC) | State |",
        "|---|---|---|---|---|---|---|",
    ]
    rows += [_row(chapter) for chapter in chapters()]
    return "\n".join(rows) + "\n"


def _row(chapter: Chapter) -> str:
    if not chapter.is_executed:
        return f"| {{doc}}`{chapter.corner} <../{chapter.page}>` | | | | | | not measured yet |"
    notebook, facts = chapter.executed_notebook, chapter.facts
    changed = chapter.changed()
    state = f"**stale**: {', '.join(changed)} changed since" if changed else "fresh"
    if facts.get("read"):
        state += f"; made from records, measured on {plain(facts['machine'])}"
    return (
        f"| {{doc}}`{chapter.corner} <../{chapter.page}>` | {notebook.metadata.kernelspec.name} "
        f"| {'on' if facts.get('gil') else 'off'} | {facts.get('budget', '')} "
        f"| {minutes(notebook.metadata['papermill']['duration'])} | {facts.get('measured', '')[:16].replace('T', ' ')} | {state} |"
    )


def partner_of(label: str) -> str:
    """Return the label of the other build of a version. The catalogue need not know it: records may come from elsewhere."""
    return label.removesuffix("t") if label.endswith("t") else f"{label}t"


def interpreters_page() -> str:
    """Say which interpreters the pages were measured on, how they were built, which were left out, and how to add them."""
    builds = {}
    for chapter in chapters():
        for label, facts in chapter.facts.get("builds", {}).items():
            builds[label, facts["version"], facts["route"], facts["config_args"]] = facts
    rows = ["| CPython | Version | Route | Same build as its partner | Configured with |", "|---|---|---|---|---|"]
    for (label, version, route, flags), facts in sorted(builds.items()):
        partners = [other for (name, *_), other in builds.items() if name == partner_of(label)]
        same = "no partner here" if not partners else "yes" if any(same_build(facts, p) for p in partners) else "no"
        rows.append(f"| {label} | {version.split(' (')[0]} | {route} | {same} | `{flags}` |")
    if absent := left_out([label for label, *_ in builds]):
        rows.append(
            f"\nLeft out of this run: {', '.join(absent)}. They would have to be compiled, about five minutes each on two "
            f'cores. Add them with `make book KERNELS=all`, or one by one with `make book KERNELS="{GIL} {FREE_THREADED} {absent[0]}"`.'
        )
    return "\n".join(rows) + "\n"


def characteristics_page(rows: list[dict]) -> str:
    """Show the operating characteristics: a row for each claim and truth, with what each budget gives."""
    budgets, found = characteristics.BUDGETS, {characteristics.key(row): row for row in rows}
    claims = list(dict.fromkeys(row["claim"] for row in rows))
    fewest, commits = min(row["runs"] for row in rows), sorted({row["provenance"]["commit"] for row in rows})
    lines = [
        f"{fewest:,} simulated sessions for each row and budget, so that a rare wrong answer may be missed: none in {fewest:,} leaves "
        f"room for {Share(0, fewest).at().high:.0%}. Made at {len(commits)} commits ({', '.join(commits)})."
    ]
    for budget in budgets:
        usual = [found[claim, "as published", budget] for claim in claims if (claim, "as published", budget) in found]
        often = sum(not characteristics.falls_short(row) for row in usual)
        parts = [characteristics.part_wrong(part) for row in rows if row["budget"] == budget for part in row["parts"]]
        lines.append(
            f"At `{budget}`, {often} of {len(usual)} claims reach their right verdict in at least {characteristics.MIN_RIGHT:.0%} of the runs if "
            f"the publication is exactly right; the largest share of wrong answers of any part is {max(parts, default=0):.1%}."
        )
    heads = [f"{what}, `{budget}`" for budget in budgets for what in ("right", "before", "open", "wrong")]
    lines += ["", f"| Claim | True is | Right verdict | {' | '.join(heads)} |", "|---|---|---|" + "---|" * len(heads)]
    for claim, truth in dict.fromkeys(characteristics.key(row)[:2] for row in rows):
        cells = []
        for row in (found.get((claim, truth, budget)) for budget in budgets):
            cells += shares(row) if row else [""] * 4
        right = next(row["right"] for row in rows if characteristics.key(row)[:2] == (claim, truth))
        lines.append(f"| {claim} | {truth} | {right} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def changed_rules(rows: list[dict]) -> str:
    """Show what the rules before and those of now say of one set of records, where that differs."""
    lines = ["| Claim | Before | Now | Published size | Why |", "|---|---|---|---|---|"]
    lines += [f"| {row['claim']} | {row['before']} | {row['now']} | {row['size']} | {row['why']} |" for row in rows]
    return "\n".join(lines) + "\n"


def shares(row: dict) -> list[str]:
    """Show one row of the table: how often it is right, was right by the rules before, is open, is wrong."""
    before = row.get("before")
    was = f"{characteristics.right_share(before):.0%}" if before else ""
    return [f"{characteristics.right_share(row):.0%}", was, f"{row['open']:.0%}", f"{row['wrong']:.1%}"]


def in_order() -> list[Chapter]:
    """Return the chapters in the order of the table of contents."""
    toc = (ROOT / "_toc.yml").read_text()
    return sorted(
        (chapter for chapter in chapters() if chapter.page in toc), key=lambda chapter: toc.index(chapter.page)
    )


def contents_page() -> str:
    """List the chapters with their titles."""
    return "\n".join(f"- {{doc}}`../{chapter.page}`" for chapter in in_order()) + "\n"


def course_page() -> str:
    """Show the minutes that each chapter states, and the Jupyter kernel that it needs."""
    rows = ["| Chapter | Teaching | Exercise | Jupyter kernel |", "|---|---|---|---|"]
    for chapter in in_order():
        text = "\n".join(chapter.openings)
        stated = [sum(map(int, re.findall(rf"{part}: (\d+) minutes", text))) for part in ("Teaching", "Exercises?")]
        times = [f"{minutes} min" if minutes else "" for minutes in stated]
        rows.append(f"| {{doc}}`../{chapter.page}` | {times[0]} | {times[1]} | {chapter.jupyter_kernel} |")
    return "\n".join(rows) + "\n"


# What each budget is for.
PURPOSES = {
    "smoke": "proves that the code runs. Its figures are marked, and they are no result",
    "room": "for a workshop: a result in a minute or two for each chapter. The intervals are wide, and many parts stay open",
    "quick": "the default",
    "full": "more restarts, and several builds",
}


def budgets_page() -> str:
    """Show the budgets, with the numbers that experiments take from them."""
    rows = [
        "| `BUDGET` | what it is for | `repeats` | `few` | `scale` | restarts × blocks |",
        "|---|---|---|---|---|---|",
    ]
    for name, budget in BUDGETS.items():
        numbers = f"{budget.repeats} | {budget.few} | {budget.scale} | {budget.restarts} × {budget.blocks}"
        rows.append(f"| `{name}` | {PURPOSES[name]} | {numbers} |")
    return "\n".join(rows) + "\n"


def minutes_page(rows: list[dict]) -> str:
    """Say how long the chapters of this copy measured, by budget."""
    spent = {}
    for row in rows:
        if took := row["provenance"].get("minutes"):
            spent.setdefault(row["provenance"]["budget"], {})[row["chapter"]] = 60 * took
    words = [_minutes_in_words(budget, chapters) for budget, chapters in spent.items()]
    return (" ".join(words) or "No chapter was measured yet.") + "\n"


def _minutes_in_words(budget: str, seconds: dict[str, float]) -> str:
    """Write the sentence for one budget. seconds: by chapter."""
    where = "in the one chapter" if len(seconds) == 1 else f"in each of {len(seconds)} chapters"
    least, most = minutes(min(seconds.values())), minutes(max(seconds.values()))
    together = f", {minutes(sum(seconds.values()))} in all" if len(seconds) > 1 else ""
    span = most if least == most else f"{least} to {most}"
    return f"In this copy, `{budget}` measured for {span} {where}{together}."


def write(folder: Path, rows: list[dict]) -> None:
    """Write the generated parts into `folder`, from where the pages include them."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "budgets.md").write_text(budgets_page())
    (folder / "contents.md").write_text(contents_page())
    (folder / "course.md").write_text(course_page())
    (folder / "instructors.md").write_text(lessons.notes_page(in_order()))
    (folder / "chapters.md").write_text(chapters_page())
    (folder / "interpreters.md").write_text(interpreters_page())
    (folder / "matrix.md").write_text(matrix.page(folder.parents[1]))
    (folder / "map.md").write_text(corner_map.page(rows))
    (folder / "minutes.md").write_text(minutes_page(rows))
    studies = (evidence.read(name) for name in ("sessions", "coverage", "levels"))
    (folder / "coverage.md").write_text(evidence.coverage_page(*studies))
    (folder / "characteristics.md").write_text(characteristics_page(characteristics.kept()))
    (folder / "changed_rules.md").write_text(changed_rules(evidence.read("rules_changed")))
