"""The parts of pages that a run writes: `book/_generated/NAME.md`, where the pages include them.

Each is a function of the assembled source tree, in which sections are looked up and beside which files are put, and of
what this copy of the book found.
"""

from collections.abc import Callable, Mapping
from pathlib import Path

from ffilab.measure.reading import Session
from ffilab.page import (
    characteristics,
    corners,
    cost,
    evidence,
    front,
    guide,
    ledger_page,
    lessons,
    matrix,
    sources,
    words,
)
from ffilab.page.advice import Copy
from ffilab.page.chapter import left_out
from ffilab.page.contents import Chapter, chapters
from ffilab.page.fold import LANGUAGES
from ffilab.page.templates import filled
from ffilab.run import system
from ffilab.run.budget import BUDGETS
from ffilab.run.paths import ROOT
from ffilab.run.progress import minutes
from ffilab.setup.catalogue import FREE_THREADED, GIL
from ffilab.setup.installed import same_build
from ffilab.yours import worked_example


def interpreters_page() -> str:
    """Say which interpreters the pages were measured on, how they were built, which were left out, and how to add
    them."""
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


def in_order() -> list[Chapter]:
    """Return the chapters in the order of the table of contents."""
    toc = (ROOT / "_toc.yml").read_text()
    return sorted((one for one in chapters() if one.page in toc), key=lambda one: toc.index(one.page))


def minutes_page(sessions: Mapping[str, Session | None]) -> str:
    """Say how long the chapters of this copy measured, by budget. sessions: by chapter; None if its records are
    gone."""
    spent = {}
    for name, session in sessions.items():
        if session and (took := session.minutes):
            spent.setdefault(session.budget.name, {})[name] = 60 * took
    return filled("minutes.md", spent=spent, minutes=minutes)


def origin() -> str:
    """Return the public address that this clone came from; empty if it came from elsewhere, such as a folder."""
    address = system.output("git", "-C", str(ROOT), "config", "--get", "remote.origin.url") or ""
    # Without a name or a token of whoever cloned it.
    return address if address.startswith("https://") and "@" not in address else ""


def get_it_page(address: str) -> str:
    """Say how to clone the book from this address; without one, whom to ask."""
    if not address:
        return "Clone the book with git, from the address that whoever gave you these pages names.\n"
    return f"```sh\ngit clone {address} book\ncd book\n```\n"


def run_it_page() -> str:
    """What the README says of setting up and measuring all of it."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    return text[text.index("```sh\nmake test") : text.index("## Read it without")]


Part = Callable[[Path, Copy], str]
PARTS: dict[str, Part] = {
    "budgets": lambda tree, copy: filled("budgets.md", budgets=BUDGETS),
    "changed_rules": lambda tree, copy: filled("changed_rules.md", rows=evidence.kept_evidence("rules_changed")),
    "chapters": lambda tree, copy: filled("chapters.md", chapters=chapters(), minutes=minutes),
    "characteristics": lambda tree, copy: characteristics.page(
        *map(evidence.kept_evidence, ("operating_characteristics", "estimates"))
    ),
    "corners": lambda tree, copy: corners.page(copy.ledger),
    "course": lambda tree, copy: filled("course.md", chapters=in_order()),
    "coverage": lambda tree, copy: evidence.coverage_page(
        *map(evidence.kept_evidence, ("sessions", "calibration", "coverage", "levels"))
    ),
    "get_it": lambda tree, copy: get_it_page(origin()),
    "instructors": lambda tree, copy: lessons.notes_page(in_order()),
    "interpreters": lambda tree, copy: interpreters_page(),
    "ledger": lambda tree, copy: ledger_page.page(copy.ledger, tree),
    "matrix": lambda tree, copy: matrix.page(tree),
    "minutes": lambda tree, copy: minutes_page(copy.sessions),
    "object_model": lambda tree, copy: evidence.object_model_page(evidence.kept_evidence("object_model")),
    "patches": lambda tree, copy: evidence.patches_page(evidence.kept_evidence("patches")),
    "questions": guide.questions_page,
    "run_it": lambda tree, copy: run_it_page(),
    "scale": lambda tree, copy: evidence.scale_page(evidence.kept_evidence("scale")),
    "sources": lambda tree, copy: sources.page(tree, copy.ledger),
    "wheel_cost": lambda tree, copy: cost.page(evidence.kept_evidence("wheel_cost"), tree),
    "wheels": lambda tree, copy: evidence.wheels_page(evidence.kept_evidence("wheels")),
    "yours": lambda tree, copy: worked_example.page(),
}
# Those of pages that are there in every language, each in a folder of its own.
IN_EACH_LANGUAGE: dict[str, Part] = {
    "checklist": lambda tree, copy: guide.checklist_page(tree),
    "chooser": lambda tree, copy: front.chooser(tree),
    "clock": lambda tree, copy: front.ways_page("clock.md", tree),
    "decision_guide": guide.cards_page,
    "front_figure": lambda tree, copy: front.figure(tree),
    "questions_quick": lambda tree, copy: front.questions(tree, copy, "quick"),
    "questions_safe": lambda tree, copy: front.questions(tree, copy, "safe"),
    "surprises": front.surprises,
    "ways": lambda tree, copy: front.ways_page("ways.md", tree),
}


def write(tree: Path, copy: Copy) -> None:
    """Write all parts into an assembled tree."""
    generated = tree / "book" / "_generated"
    for language in ("", *LANGUAGES):
        (generated / language).mkdir(parents=True, exist_ok=True)
        with words.speaking(language):
            for name, part in (IN_EACH_LANGUAGE if language else PARTS | IN_EACH_LANGUAGE).items():
                (generated / language / f"{name}.md").write_text(part(tree, copy))
