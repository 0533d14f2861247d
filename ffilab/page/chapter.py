"""The frame of a chapter: its first and last cell, its verdicts, and the provenance of its numbers."""

import sys
from pathlib import Path

from IPython.display import Markdown, display

from ffilab.judge import basis, controls, ledger, statistics
from ffilab.judge import sentences as engine
from ffilab.judge.poured import NOTHING
from ffilab.measure.session import Session, open_session, source
from ffilab.page import draw, lab, words
from ffilab.page.forgiving import forgive
from ffilab.run import settings
from ffilab.run.errors import UserError
from ffilab.run.paths import BUILD, NOTEBOOKS
from ffilab.setup import installed, mine  # noqa: F401
from ffilab.setup.catalogue import ALL, BY_LABEL, FREE_THREADED, GIL
from ffilab.setup.chapters import notebook_of

# Under this name the notebook keeps the facts of its page.
PAGE = "page"
# What JupyterLab says first where it reads records.
STORED = "**Stored results: a line that you change is not measured here.** `make lab NAME={chapter}` measures."


def assert_gil(enabled: bool) -> None:
    """First and last cell: is the GIL of this Jupyter kernel as the chapter says?

    Raises RuntimeError if not, for instance when an import turned it back on.
    """
    actual = getattr(sys, "_is_gil_enabled", lambda: True)()
    if actual != enabled:
        raise RuntimeError(
            f"the GIL of this interpreter is {'on' if actual else 'off'}, and the chapter needs it otherwise"
        )


def assert_own(chapter: str, label: str) -> None:
    """First cell: is this the chapter's own Jupyter kernel? An editor may have chosen another, and noted it in the
    notebook.

    Raises UserError if not.
    """
    if Path(sys.prefix).resolve() != installed.python(BY_LABEL[label]).parents[1].resolve():
        raise UserError(
            f"The chapter {chapter} measures on CPython {label}, and this Jupyter kernel is "
            f"{sys.version.split()[0]} in {sys.prefix}: choose the kernel {BY_LABEL[label].name}."
        )


def runs_on(gil_enabled: bool) -> str:
    """Return the label of the interpreter that measures a chapter. A page made from records may be made by another
    one."""
    return GIL if gil_enabled else FREE_THREADED


def begin(chapter: str, gil_enabled: bool) -> Session:
    """Check the interpreter, open the session through which the chapter measures, say what it can show."""
    if source() is None:
        assert_own(chapter, runs_on(gil_enabled))
        assert_gil(gil_enabled)
    if settings.in_lab():
        notebook_of(chapter)
        forgive(chapter)
        if source():
            display(Markdown(STORED.format(chapter=chapter)))
    labels = [interpreter.label for interpreter in installed.present()]
    measures_in_lab = source() is None and settings.in_lab()
    session = lab.Laboratory(chapter, labels) if measures_in_lab else open_session(chapter, labels)
    draw.start_page(session.budget.is_result)
    words.look_in(NOTEBOOKS / chapter)
    facts, builds, lines = session.machine, session.record.run["interpreters"], []

    def say(text: str, **poured) -> None:
        lines.append(words.translated(text).format(**poured))

    if not session.budget.is_result:
        smoke = "**This is a smoke test. It proves that the code runs; none of its figures is a result.**"
        display(Markdown(words.translated(smoke)))
    say(
        "CPython {label}, {gil}. Budget: {budget}. Measured on {cpu}, {cores} cores, at {date}.",
        label=runs_on(gil_enabled),
        gil=words.translated("GIL on" if gil_enabled else "GIL off"),
        budget=session.budget.name,
        cpu=facts["cpu"],
        cores=facts["cores"],
        date=facts["date"].replace("T", " "),
    )
    say("Interpreters: {labels}.", labels=", ".join(session.interpreters))
    if facts["cores_usable"] < 2:
        say("This run had one core: what threads gain or lose at once, it cannot show.")
    if alone := ", ".join(basis.one_binary(session.rests_on)):
        only = (
            "No layouts were drawn of {labels}: what this page says holds for *this binary*, and not for the version; "
            "*n* counts restarts."
        )
        say(only, labels=alone)
    if absent := ", ".join(left_out(session.interpreters)):
        say("Left out: {labels} (add them with `make book KERNELS=all`).", labels=absent)
    for label in session.interpreters:
        partner = label.removesuffix("t")
        if partner != label and partner in builds and not installed.same_build(builds[label], builds[partner]):
            differ = "{partner} and {label} come from different builds: compare them with care."
            say(differ, partner=partner, label=label)
    measured, *further = lines
    display(Markdown(draw.folded(measured, "\n\n".join(["", *further, ""]))))
    return session


def left_out(labels: list[str]) -> list[str]:
    """Return the labels of the book's interpreters that are not among these."""
    return [interpreter.label for interpreter in ALL if interpreter.label not in labels]


def sentence(session: Session, name: str) -> str:
    """Return what this run says under that name in sentences.toml, for a caption: in JupyterLab at once, as far as it
    was measured.

    In a run of the book, its place: the verdicts that a sentence may ask for rest on the whole chapter, so execute.py
    fills it in.
    """
    return _said(session, name) if settings.in_lab() else f"⟦{name}⟧"


def _said(session: Session, name: str) -> str:
    try:
        return words.translated(engine.sentences_of(session)[name])
    except UserError:
        # In JupyterLab a reader may have left out a section.
        if not settings.in_lab():
            raise
        return words.translated(NOTHING)


def sentences(session: Session) -> None:
    """Hand every sentence that this run chooses to the prose: {glue:text}`name`."""
    for name in engine.sentences_of(session):
        draw.glue(name, _said(session, name))


def verdicts(session: Session) -> None:
    """Say what was measured again, show the run's controls, show the ledger's rows of its claims."""
    display(Markdown(f"Disturbed by others: {controls.repaired(session) or 'nothing that could be'}."))
    draw.table(
        controls.table(controls.everything(session)), "What the run says of itself, before any effect is looked at."
    )
    for row in ledger.judged(session):
        draw.verdict(row)


def end(session: Session, gil_enabled: bool) -> None:
    """End the chapter: check that the GIL is as it was, close the session, show where the numbers come from."""
    if source() is None:
        assert_gil(gil_enabled)
    session.close()
    facts, noise = session.provenance, session.record.end["machine"]
    packages = session.record.run["interpreters"].get(runs_on(gil_enabled), {}).get("packages", {})
    rows = {
        "Machine": f"{facts['cpu']}, {facts['cores']} cores, {facts['memory_gib']} GiB"
        + (f", a quota of {facts['cpu_quota']:g} cores' time" if facts.get("cpu_quota") else "")
        + (", virtual machine" if facts["virtual_machine"] else ""),
        "System": f"{facts['system']}, {facts['libc']}, {facts['compiler']}",
        "Linker of the layouts": facts.get("linker", "not known"),
        "Frequency governor": facts["governor"] or "not visible here",
        "Noise": f"load {facts['load']:.2f} at the start, {noise['load']:.2f} at the end; "
        f"{noise['steal_s'] - facts['steal_s']:.2f} s stolen by the hypervisor"
        + ("" if facts.get("can_pin", True) else "; nothing was kept on one core, as this system does not allow it"),
        "Disturbed": "; ".join(disturbed(session)) or "no process",
        **default_links(session),
        "Run": f"{facts['date']}, commit {facts['commit']}, budget {facts['budget']}",
        "Rests on": basis.in_words(facts["rests_on"]),
        "Seed": ", ".join(map(str, facts["seeds"])),
        **{f"CPython {label}": build for label, build in facts["kernels"].items()},
        f"Packages of {runs_on(gil_enabled)}": ", ".join(
            f"{name} {packages[name]}" for name in ("numpy", "scipy", "pandas", "seaborn") if name in packages
        ),
        "Records": ", ".join(facts["records"]),
    }
    display(Markdown("| | |\n|---|---|\n" + "\n".join(f"| {k} | {v} |" for k, v in rows.items())))
    draw.keep(PAGE, described(session, gil_enabled))


def default_links(session: Session) -> dict[str, str]:
    """Describe where the linker's own order lies among the layouts, in each timed plan that tried it."""
    plans = []
    for path in session.files[1:]:
        record = session.timed(path.stem)
        arms, faster, slower = statistics.among_lots(record)
        if arms:
            found = f"{path.stem}: of {arms} arms {faster} were faster and {slower} slower than on every layout"
            plans.append(f"{found} (by chance about {arms / (len(record.kept) + 1):.0f} each)")
    return {"The linker's own order": "; ".join(plans)} if plans else {}


def disturbed(session: Session) -> list[str]:
    """Describe what was measured again or left out: of each timed plan, and of each experiment of which something
    was."""
    touched = [title for title in session.record.titles if any(session.disturbed(title)[:2])]
    plans = [path.stem for path in session.files[1:]]
    return [f"{name}: {session.said(name)}" for name in (*plans, *touched)]


def described(session: Session, gil_enabled: bool) -> dict:
    """Return the facts that the press keeps with the page: what it was made from, and how."""
    builds = session.record.run["interpreters"]
    files = [path for part_of_run in (*session.earlier, session) for path in part_of_run.files]
    return {
        "chapter": session.chapter,
        "gil": gil_enabled,
        "budget": session.budget.name,
        "interpreters": {label: of["stamp"] for label, of in builds.items()},
        "builds": {
            label: {key: of[key] for key in ("version", "route", "config_args")} for label, of in builds.items()
        },
        "machine": session.machine["cpu"],
        "date": session.machine["date"],
        "read": source() is not None,
        # Below _build, if they lie there: a clone may be moved.
        "records": [str(p.relative_to(BUILD) if p.is_relative_to(BUILD) else p) for p in files],
    }
