"""The verbs, one function each. Errors of the reader end in one sentence, not in a traceback."""

import importlib
import os
import re
import secrets
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import click

from ffilab import paths
from ffilab.bench.alone import disturbs
from ffilab.budget import BUDGETS
from ffilab.errors import UserError
from ffilab.progress import say, step
from ffilab.provision import catalogue, environments
from ffilab.provision.interpreters import uv
from ffilab.subprocesses import end_leftovers, explain_os_errors

# Set from outside, they change what every interpreter is or how it allocates, also of chapters that measure just that.
DISTURBING = (
    "PYTHON_GIL",
    "PYTHON_JIT",
    "PYTHONDEVMODE",
    "PYTHONINSPECT",
    "PYTHONMALLOC",
    "PYTHONOPTIMIZE",
    "PYTHONPROFILEIMPORTTIME",
    "PYTHONTRACEMALLOC",
    "PYTHON_CONTEXT_AWARE_WARNINGS",
    "PYTHON_THREAD_INHERIT_CONTEXT",
)
MEASURING = {"book", "chapter", "more", "study", "lab"}


# A module that not every verb needs.
late = importlib.import_module


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.pass_context
def verbs(context):
    """Hidden Corners of the Python FFI: set up, measure, judge, render."""
    disturbing = [name for name in DISTURBING if os.environ.get(name)]
    if disturbing and context.invoked_subcommand in MEASURING:
        said = ", ".join(f"{name}={os.environ[name]}" for name in disturbing)
        raise UserError(
            f"{said} would change the interpreters that are measured: `unset {' '.join(disturbing)}`, "
            "then run the same command again."
        )
    if disturbs():
        say(
            "  something measures on this machine just now; what runs beside it takes time from it, and its page will say so"
        )


kernels_option = click.option(
    "--kernels", envvar="KERNELS", default="", help="Labels such as '3.14 3.14t=/path/python', `pair` or `all`."
)
budget_option = click.option(
    "--budget", envvar="BUDGET", default="quick", show_default=True, help="smoke, room, quick or full."
)


from_option = click.option(
    "--from", "source", envvar="FROM", default="", help="A folder or bundle of records: make the pages from them."
)


def records(given: str) -> Path | None:
    """The folder of records that FROM names; None if the chapters are to measure."""
    unpacked = late("ffilab.bench.foreign").unpacked

    return unpacked(given) if given else None


def budget_name(name: str) -> str:
    if name not in BUDGETS:
        raise UserError(f"BUDGET is {name!r}: choose one of {', '.join(BUDGETS)}.")
    return name


@verbs.command()
@kernels_option
@budget_option
@from_option
def book(kernels, budget, source):
    """Set up what is missing, measure every chapter afresh, render _build/html."""
    press = late("ffilab.press.book")

    press.book(catalogue.parse(kernels), budget_name(budget or "quick"), source=records(source))


@verbs.command()
@click.argument("name", default="")
@kernels_option
@budget_option
@from_option
def chapter(name, kernels, budget, source):
    """Measure one chapter afresh, then render the book with it."""
    press = late("ffilab.press.book")

    press.book(catalogue.parse(kernels), budget_name(budget or "quick"), only=name, source=records(source))


@verbs.command()
@click.argument("name", default="")
@kernels_option
@budget_option
def more(name, kernels, budget):
    """Measure another session, with new layouts, on top of those that the pages rest on; then render."""
    press = late("ffilab.press.book")

    press.book(catalogue.parse(kernels), budget_name(budget or "quick"), only=name or None, more=True)


@verbs.command()
def html():
    """Render again from the chapters as they were last measured."""
    render = late("ffilab.press.render")

    render.render()


@verbs.command()
def slides():
    """Make the slides of the chapters as they were last measured: _build/html/slides."""
    chapters = late("ffilab.press.chapters")
    press = late("ffilab.press.slides")

    with step("slides"):
        found = press.renew(chapters.chapters())
    if not found:
        raise UserError("Nothing was measured yet: run `make book`, or `make chapter NAME=…` for one chapter.")
    for deck in found:
        say(f"  {os.path.relpath(deck)}")


@verbs.command()
def pdf():
    """Print the rendered book to one PDF."""
    press = late("ffilab.press.pdf")

    press.pdf()


@verbs.command()
def links():
    """Try every address that leads out of the book, over the network."""
    render = late("ffilab.press.render")

    render.check_links()


@verbs.command("kernels")
@kernels_option
def kernels_verb(kernels):
    """Set up the interpreters and their Jupyter kernels."""
    environments.provision(catalogue.parse(kernels))


@verbs.command()
@kernels_option
def native(kernels):
    """Build everything under native/ for the kernels at hand."""
    projects = late("ffilab.native")

    failures = projects.build_all(environments.provision(catalogue.parse(kernels)))
    if failures:
        raise UserError("Some extensions were left out: see the lines above.")


@verbs.command()
@click.argument("name", default="")
@from_option
def exercise(name, source):
    """Check your answers to the exercises of a chapter, my/<chapter>.py, on what was last measured (or on FROM)."""
    chapters, exercises = late("ffilab.press.chapters"), late("ffilab.press.exercises")

    found = exercises.check(chapters.chapter(name), records(source))
    click.echo(exercises.report(found))
    click.echo(f"\nYour answers: {exercises.shown(exercises.ANSWERS / name)}.py")
    sys.exit(0 if all(part["solved"] for part in found) else 1)


further_words = {"ignore_unknown_options": True}


@verbs.command(context_settings=further_words)
@click.argument("pytest_options", nargs=-1, type=click.UNPROCESSED)
def test(pytest_options):
    """Set up the chapter pair and run the tests, those that need no measuring first. Further words go to pytest."""
    set_up_for_tests()
    for part in ("not slow", "slow"):
        if code := pytest(part, *pytest_options):
            sys.exit(code)


@verbs.command(context_settings=further_words)
@click.argument("pytest_options", nargs=-1, type=click.UNPROCESSED)
def check(pytest_options):
    """Set up the chapter pair and run the tests that need no measuring; with the name of a chapter, check its exercises.

    Further words go to pytest.
    """
    claims = late("ffilab.judge.claims")

    if len(pytest_options) == 1 and pytest_options[0] in claims.corners():
        return click.get_current_context().invoke(exercise, name=pytest_options[0], source=os.environ.get("FROM", ""))
    set_up_for_tests()
    sys.exit(pytest("not slow", *pytest_options))


def set_up_for_tests() -> None:
    """The chapter pair and the native projects."""
    press = late("ffilab.press.book")

    press.set_up(catalogue.parse("pair"))


def pytest(part: str, *options: str) -> int:
    """The exit code of pytest on one half of the tests; that it found no test is no failure of a half."""
    # The tests have a _build of their own, which goes with them; what the faults showed stays.
    environment = {**os.environ, "FFILAB_FAULTS": str(paths.RESULTS / "faults.json")}
    command = [sys.executable, "-m", "pytest", "-m", part, *options]
    code = subprocess.run(command, cwd=paths.ROOT, env=environment).returncode
    return 0 if code == 5 and options else code


@verbs.command()
@click.argument("module")
@budget_option
def study(module, budget):
    """Run a study that is no chapter, such as notebooks.measuring.contest: its function `main(budget)`."""
    projects = late("ffilab.native")

    # Before anything is built.
    budget = budget_name(budget or "quick")
    if not re.fullmatch(r"notebooks(\.\w+)+", module) or not (paths.ROOT / f"{module.replace('.', '/')}.py").is_file():
        raise UserError(
            f"There is no study {module!r}: name a module below notebooks, such as notebooks.measuring.contest."
        )
    projects.build_all(environments.provision(catalogue.parse("pair")))
    late(module).main(budget)


@verbs.command()
@click.argument("source", default="")
def judge(source):
    """Print the ledger for a folder or bundle of records, without measuring."""
    again = late("ffilab.judge.again")

    if not source:
        raise UserError("Name the records: `make judge FROM=_build/records`.")

    click.echo(again.report(records(source)))


@verbs.command()
@click.option(
    "--runs", default=1000, show_default=True, type=click.IntRange(1), help="Simulated sessions for each truth."
)
@click.option("--corner", help="One corner only; its rows replace those that were kept.")
@click.option("--seed", default=0, show_default=True, type=click.IntRange(0))
def characteristics(runs, corner, seed):
    """Simulate records whose truth is known, and keep how often which verdict is given (book/evidence)."""
    study = late("ffilab.judge.characteristics")
    claims = late("ffilab.judge.claims")

    known = claims.corners()
    if corner and corner not in known:
        raise UserError(f"There is no corner {corner!r}: {', '.join(known)}.")
    chosen = [corner] if corner else known
    found = []
    for one in chosen:
        with step(f"{runs} sessions of {one} for each truth"):
            found += study.table([one], runs, seed=seed)
    study.keep(found, replace_all=not corner)
    click.echo(study.report(found))


@verbs.command()
@click.argument("run_a", default="")
@click.argument("run_b", default="")
def compare(run_a, run_b):
    """Compare two records of two runs or machines (files in _build/records)."""
    runs = late("ffilab.judge.runs")

    click.echo(runs.report((Path(run_a), Path(run_b))))


@verbs.command()
@kernels_option
def lab(kernels):
    """JupyterLab on loopback, with every kernel that is set up, and with layouts for what is measured there."""
    layout_pool = late("ffilab.layout_pool")
    layouts = late("ffilab.bench.layouts")

    labels = [one.label for one in environments.provision(catalogue.parse(kernels))]
    count = BUDGETS[budget_name(os.environ.get("BUDGET") or "quick")].layouts
    layout_pool.make(layout_pool.OF_LAB, labels, count, secrets.randbits(32))
    environment = {**os.environ, layouts.ENVIRONMENT: str(layout_pool.OF_LAB)}
    environment |= {"JUPYTER_PATH": str(paths.ROOT / "kernels"), "PYTHONPATH": str(paths.ROOT)}
    command = [sys.executable, "-m", "jupyterlab", "--ip=127.0.0.1", f"--notebook-dir={paths.NOTEBOOKS}"]
    if os.geteuid() == 0:
        command.append("--allow-root")  # containers; the server is on loopback only
    os.execve(sys.executable, command, environment)


@verbs.command()
@click.option("--upgrade", is_flag=True, help="to the newest versions")
def lock(upgrade):
    """Renew the hashed requirements files; versions that are locked stay."""
    command = [paths.ROOT / "requirements" / "lock.sh", *(["--upgrade"] if upgrade else [])]
    if subprocess.run(command, env={**os.environ, "UV": uv()}).returncode:
        raise UserError("The locks could not be renewed: see the lines above.")


@verbs.command()
def clean():
    """Remove what was built, measured and rendered here; the cache stays."""
    for entry in paths.BUILD.iterdir():
        if entry.name == "lock":
            continue
        shutil.rmtree(entry) if entry.is_dir() else entry.unlink()
    say(f"  removed what was in _build; interpreters stay in {paths.cache()}")


@verbs.command()
@click.pass_context
def distclean(context):
    """Clean, and remove the kernels' and the book's environments too."""
    context.invoke(clean)
    for interpreter in catalogue.ALL:
        environments.remove(environments.folder(interpreter) / ".venv")
    environments.remove(paths.ROOT / ".venv")


def main():
    """Entry point of `python -m ffilab`."""
    interrupts = []

    def interrupted(number, frame):
        interrupts.append(number)
        raise KeyboardInterrupt

    for sent in (signal.SIGINT, signal.SIGTERM):
        # A shell has what it starts in the background ignore Ctrl-C.
        if signal.getsignal(sent) != signal.SIG_IGN:
            signal.signal(sent, interrupted)
    try:
        with explain_os_errors("the book's folder"):
            # Under the folder's lock: nobody else works here.
            if os.environ.get(paths.RUN) == str(paths.BUILD):
                end_leftovers()
            verbs(standalone_mode=False)
    except UserError as error:
        sys.exit(f"ffilab: {error}")
    except MemoryError:
        sys.exit("ffilab: there is not enough memory: end what else is running, and run the same command again.")
    except click.ClickException as error:
        sys.exit(f"ffilab: {error.format_message()}")
    except BaseException:
        # Not KeyboardInterrupt alone: in the middle of an import of C code it comes out as an ImportError.
        if not interrupts:
            raise
        sys.stderr.write(
            "\nffilab: stopped; what was finished is kept: interpreters, builds, records, the pages of finished chapters.\n"
        )
        sys.exit(130)
