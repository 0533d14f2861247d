"""Pages that only a run can write: the state of the chapters, interpreters, contents, course, ledger."""

from pathlib import Path

from ffilab.judge import characteristics
from ffilab.judge.estimates import Share
from ffilab.measure.reading import Reading
from ffilab.page import corners, cost, evidence, lessons, matrix
from ffilab.page.chapter import left_out
from ffilab.page.contents import Chapter, chapters
from ffilab.page.templates import filled
from ffilab.run.budget import BUDGETS
from ffilab.run.paths import ROOT
from ffilab.run.progress import minutes
from ffilab.setup.catalogue import FREE_THREADED, GIL
from ffilab.setup.installed import same_build


def interpreters_page() -> str:
    """Say which interpreters the pages were measured on, how they were built, which were left out, and how to add them."""
    builds = {}
    for chapter in chapters():
        for label, facts in chapter.facts.get("builds", {}).items():
            builds[label, facts["version"], facts["route"], facts["config_args"]] = facts
    rows = []
    for (label, version, route, flags), facts in sorted(builds.items()):
        # The catalogue need not know it: records may come from elsewhere.
        partner = label.removesuffix("t") if label.endswith("t") else f"{label}t"
        partners = [other for (name, *_), other in builds.items() if name == partner]
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
        often = sum(study.right_share(row) >= study.MIN_RIGHT for row in usual)
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
    return sorted((one for one in chapters() if one.page in toc), key=lambda one: toc.index(one.page))


def course_page() -> str:
    """Show the minutes that each chapter states, and the Jupyter kernel that it needs."""
    return filled("course.md", chapters=in_order())


def minutes_page(sessions: dict[str, Reading | None]) -> str:
    """Say how long the chapters of this copy measured, by budget. sessions: by chapter; None if its records are gone."""
    spent = {}
    for name, session in sessions.items():
        if session and (took := session.minutes):
            spent.setdefault(session.budget.name, {})[name] = 60 * took
    return filled("minutes.md", spent=spent, minutes=minutes)


def write(folder: Path, rows: list[dict], sessions: dict[str, Reading | None]) -> None:
    """Write the generated parts into `folder`, from where the pages include them."""
    folder.mkdir(parents=True, exist_ok=True)
    kept = evidence.read
    for name, text in {
        "budgets": filled("budgets.md", budgets=BUDGETS),
        "course": course_page(),
        "instructors": lessons.notes_page(in_order()),
        "chapters": filled("chapters.md", chapters=chapters(), minutes=minutes),
        "interpreters": interpreters_page(),
        "matrix": matrix.page(folder.parents[1]),
        "corners": corners.page(rows),
        "minutes": minutes_page(sessions),
        "coverage": evidence.coverage_page(kept("sessions"), kept("coverage"), kept("levels")),
        "characteristics": characteristics_page(characteristics.kept()),
        "wheels": evidence.wheels_page(kept("wheels")),
        "wheel_cost": cost.page(kept("cost"), folder.parents[1]),
        "object_model": evidence.object_model_page(kept("object_model")),
        "changed_rules": filled("changed_rules.md", rows=kept("rules_changed")),
    }.items():
        (folder / f"{name}.md").write_text(text)
