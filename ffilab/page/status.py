"""Pages that only a run can write: the state of the chapters, interpreters, contents, course, ledger."""

import re
from pathlib import Path

from ffilab.judge import characteristics
from ffilab.judge.estimates import Share
from ffilab.page import cost, evidence, lessons, matrix
from ffilab.page import map as corner_map
from ffilab.page.chapter import left_out
from ffilab.page.chapters import Chapter, chapters
from ffilab.page.templates import filled
from ffilab.run.budget import BUDGETS
from ffilab.run.paths import ROOT
from ffilab.run.progress import minutes
from ffilab.setup.catalogue import FREE_THREADED, GIL
from ffilab.setup.installed import same_build


def chapters_page() -> str:
    """Make a table of the facts of each page: Jupyter kernel, GIL, budget, duration, when, and whether it is fresh."""
    return filled("chapters.md", chapters=chapters(), minutes=minutes)


def partner_of(label: str) -> str:
    """Return the label of the other build of a version. The catalogue need not know it: records may come from elsewhere."""
    return label.removesuffix("t") if label.endswith("t") else f"{label}t"


def interpreters_page() -> str:
    """Say which interpreters the pages were measured on, how they were built, which were left out, and how to add them."""
    builds = {}
    for chapter in chapters():
        for label, facts in chapter.facts.get("builds", {}).items():
            builds[label, facts["version"], facts["route"], facts["config_args"]] = facts
    rows = []
    for (label, version, route, flags), facts in sorted(builds.items()):
        partners = [other for (name, *_), other in builds.items() if name == partner_of(label)]
        same = "no partner here" if not partners else "yes" if any(same_build(facts, p) for p in partners) else "no"
        rows.append((label, version.split(" (")[0], route, same, f"`{flags}`"))
    return filled(
        "interpreters.md", rows=rows, absent=left_out([label for label, *_ in builds]), pair=(GIL, FREE_THREADED)
    )


def characteristics_page(rows: list[dict]) -> str:
    """Show the operating characteristics: a row for each claim and truth, with what each budget gives."""
    found, study = {characteristics.key(row): row for row in rows}, characteristics
    claims, budgets = list(dict.fromkeys(row["claim"] for row in rows)), {}
    for budget in study.BUDGETS:
        usual = [found[claim, "as published", budget] for claim in claims if (claim, "as published", budget) in found]
        parts = [study.part_wrong(part) for row in rows if row["budget"] == budget for part in row["parts"]]
        often = sum(not study.falls_short(row) for row in usual)
        budgets[budget] = {"usual": len(usual), "often": often, "worst": max(parts, default=0)}
    fewest = min(row["runs"] for row in rows)
    return filled(
        "characteristics.md",
        fewest=fewest,
        room=Share(0, fewest).at().high,
        commits=sorted({row["provenance"]["commit"] for row in rows}),
        budgets=budgets,
        min_right=study.MIN_RIGHT,
        right_share=study.right_share,
        table={
            (claim, truth): [found.get((claim, truth, budget)) for budget in budgets]
            for claim, truth in dict.fromkeys(study.key(row)[:2] for row in rows)
        },
    )


def in_order() -> list[Chapter]:
    """Return the chapters in the order of the table of contents."""
    toc = (ROOT / "_toc.yml").read_text()
    return sorted(
        (chapter for chapter in chapters() if chapter.page in toc), key=lambda chapter: toc.index(chapter.page)
    )


def course_page() -> str:
    """Show the minutes that each chapter states, and the Jupyter kernel that it needs."""
    rows = []
    for chapter in in_order():
        text = "\n".join(chapter.openings)
        stated = [sum(map(int, re.findall(rf"{part}: (\d+) minutes", text))) for part in ("Teaching", "Exercises?")]
        rows.append((chapter, *stated))
    return filled("course.md", rows=rows)


def budgets_page() -> str:
    """Show the budgets, with the numbers that experiments take from them."""
    return filled("budgets.md", budgets=BUDGETS)


def minutes_page(rows: list[dict]) -> str:
    """Say how long the chapters of this copy measured, by budget."""
    spent = {}
    for row in rows:
        if took := row["provenance"].get("minutes"):
            spent.setdefault(row["provenance"]["budget"], {})[row["chapter"]] = 60 * took
    return filled("minutes.md", spent=spent, minutes=minutes)


def write(folder: Path, rows: list[dict]) -> None:
    """Write the generated parts into `folder`, from where the pages include them."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "budgets.md").write_text(budgets_page())
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
    (folder / "wheels.md").write_text(evidence.wheels_page(evidence.read("wheels")))
    (folder / "wheel_cost.md").write_text(cost.page(evidence.read("cost"), folder.parents[1]))
    (folder / "object_model.md").write_text(evidence.object_model_page(evidence.read("object_model")))
    (folder / "changed_rules.md").write_text(filled("changed_rules.md", rows=evidence.read("rules_changed")))
