"""The verbs, one function each. Errors of the reader end in one sentence, not in a traceback."""

import importlib
import inspect
import os
import secrets
import shlex
import shutil
import subprocess
import sys
from functools import partial
from pathlib import Path

import click

from ffilab.measure.alone import disturbs
from ffilab.run import paths, settings
from ffilab.run.budget import BUDGETS
from ffilab.run.errors import UserError
from ffilab.run.progress import say
from ffilab.setup import catalogue, environments, linker
from ffilab.setup.interpreters import uv
from ffilab.yours import command
from ffilab.yours.scale.command import scale

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
# Without a parser of addresses in JSON that nothing here asks for: to make it takes as long as all else of the server.
JUPYTERLAB = "import sys; sys.modules['rfc3987_syntax'] = None; from jupyterlab.labapp import main; sys.exit(main())"
# Modules of `studies` with a `main(budget)`.
STUDIES = (
    "calibration",
    "characteristics",
    "contest",
    "cost",
    "elsewhere",
    "object_model",
    "patches",
    "scale",
    "wheels",
)


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.pass_context
def verbs(context):
    """Hidden Corners of the Python FFI: set up, measure, judge, render."""
    disturbing = [name for name in DISTURBING if os.environ.get(name)]
    if disturbing and context.invoked_subcommand in MEASURING:
        values = ", ".join(f"{name}={os.environ[name]}" for name in disturbing)
        raise UserError(
            f"{values} would change the interpreters that are measured: `unset {' '.join(disturbing)}`, "
            "then run the same command again."
        )
    if disturbs():
        say("  a measurement is running on this machine: this command disturbs it, and its page will say so")


verbs.add_command(command.time)
verbs.add_command(scale)

kernels_option = click.option(
    "--kernels",
    envvar=settings.KERNELS,
    default="",
    help="Labels such as '3.14 3.14t=/path/python', `prebuilt`, `pair` or `all`.",
)


def budget_name(context: click.Context, option: click.Option, name: str) -> str:
    """The name of a budget; an empty one is the default."""
    name = name or str(option.default)
    if name not in BUDGETS:
        raise UserError(f"BUDGET is {name!r}: it must be one of {', '.join(BUDGETS)}.")
    return name


a_budget = partial(click.option, "--budget", envvar=settings.BUDGET, show_default=True, callback=budget_name)
budget_option = a_budget(default="quick", help="smoke, room, quick or full.")
from_option = click.option(
    "--from",
    "source",
    envvar=settings.FROM,
    default="",
    help="A folder or bundle of records: make the pages from them.",
)


def records(source: str) -> Path | None:
    """Return the folder of records that FROM names, or None without one."""
    from ffilab.measure.foreign import unpacked

    return unpacked(source) if source else None


@verbs.command()
@kernels_option
@budget_option
@from_option
def book(kernels, budget, source):
    """Set up what is missing, measure every chapter afresh, render _build/html."""
    from ffilab.page.book import book

    book(catalogue.parse(kernels, budget), budget, source=records(source))


@verbs.command()
@click.argument("name", default="")
@kernels_option
@budget_option
@from_option
def chapter(name, kernels, budget, source):
    """Measure one chapter afresh, then render the book with it."""
    from ffilab.page.book import book

    book(catalogue.parse(kernels, budget), budget, only=name, source=records(source))


@verbs.command()
@click.argument("name", default="")
@kernels_option
@budget_option
def more(name, kernels, budget):
    """Measure another session, with new layouts, on top of those that the pages rest on; then render."""
    from ffilab.page.book import book

    book(catalogue.parse(kernels, budget), budget, only=name or None, more=True)


@verbs.command()
@click.option("--again", is_flag=True, help="Only the pages whose text or records have changed since the last time.")
def html(again):
    """Render from the chapters as they were last measured."""
    from ffilab.page.render import render

    render(again)


@verbs.command("kernels")
@kernels_option
def kernels_verb(kernels):
    """Set up the interpreters and their Jupyter kernels."""
    environments.provision(catalogue.parse(kernels))


@verbs.command()
@kernels_option
def native(kernels):
    """Build everything under native/ for the kernels at hand; without Rust, all that is not written in it."""
    from ffilab.setup.native import NO_CARGO, build_all

    failures = build_all(environments.provision(catalogue.parse(kernels)))
    if any(NO_CARGO not in failure for failure in failures):
        raise UserError("Some projects were left out: see the lines above.")


further_words = {"ignore_unknown_options": True}


@verbs.command(context_settings=further_words)
@click.argument("pytest_options", nargs=-1, type=click.UNPROCESSED)
@kernels_option
def test(pytest_options, kernels):
    """Set up the chapter pair and run the default tests. Further words go to pytest."""
    sys.exit(pytest(kernels, "not full", "worksteal", *pytest_options))


@verbs.command("test-all", context_settings=further_words)
@click.argument("pytest_options", nargs=-1, type=click.UNPROCESSED)
@kernels_option
def test_all(pytest_options, kernels):
    """Set up the chapter pair and run the long tests. Further words go to pytest."""
    # By file: what measures or renders for many tests of a file does it once.
    sys.exit(pytest(kernels, "full", "loadfile", *pytest_options))


def pytest(kernels: str, part: str, shared_by: str, *options: str) -> int:
    """Set up, for the long tests also what says that it is slow to build; run the tests with this marker expression on
    all cores.

    shared_by: how pytest-xdist hands them out. Returns pytest's exit code, and 0 if options chose none of these tests.
    """
    from ffilab.page.book import set_up

    asked = catalogue.parse(kernels or "pair")
    if lacking := [one.label for one in catalogue.CHAPTER_PAIR if one not in (*asked.required, *asked.named)]:
        raise UserError(f"The tests need the chapter pair, and KERNELS lacks {' and '.join(lacking)}: add it.")
    set_up(asked, slow=part == "full")
    command = [sys.executable, "-m", "pytest", "-m", part, "-n", "auto", "--maxprocesses", "4", "--dist", shared_by]
    code = subprocess.run([*command, "--durations=15", *options], cwd=paths.ROOT).returncode
    return 0 if code == 5 and options else code


@verbs.command()
@click.argument("name", type=click.Choice(STUDIES))
@budget_option
@click.option(
    "--from", "source", default="", help="For the study of characteristics: first keep what these records know."
)
@click.option("--sessions", type=click.IntRange(min=1), help="Add so many sessions, to a study that keeps them.")
@click.option("--part", help="Of the study of calibration: sessions, levels or loads.")
def study(name, budget, source, **how):
    """Run a study that is no chapter: what the instrument is worth, or what bindings cost beside their calls."""
    from ffilab.setup.native import build_all

    if name == "characteristics":
        # It measures nothing, and needs nothing built.
        return importlib.import_module("studies.characteristics").main(records(source))
    if source:
        raise UserError("--from belongs to the study of characteristics alone: leave it out.")
    main, options = importlib.import_module(f"studies.{name}").main, {key: value for key, value in how.items() if value}
    try:
        inspect.signature(main).bind(budget, **options)
    except TypeError as error:
        raise UserError(f"The study of {name} has no such option ({error}): leave it out.") from None
    build_all(environments.provision(catalogue.parse("pair")))
    main(budget, **options)


@verbs.command()
@click.argument("source", default="")
@click.argument("claim", default="")
def judge(source, claim):
    """Print the ledger for a folder or bundle of records, without measuring; or one claim of it (judge RECORDS A12)."""
    from ffilab.judge.again import report

    if not source:
        raise UserError("Name the records: `make judge FROM=_build/records`.")
    click.echo(report(records(source), claim))


@verbs.command()
@from_option
@click.option(
    "--called", default="", help="What to call it, such as the room or the kind of machine; no names of people."
)
@click.option("--light", is_flag=True, help="Without the records: the ledger and the facts alone, some ten kilobytes.")
def pack(source, called, light):
    """Pack a run into one file to be given away: records, ledger, facts of the machine; no names and no folders."""
    from ffilab.atlas import pack

    path = pack.written(pack.sessions(records(source)), paths.BUILD / "packs", called, light)
    say(f"  {os.path.relpath(path)}: {path.stat().st_size / 1e6:.2f} MB")


@verbs.command()
@click.option("--from", "source", envvar=settings.FROM, default="", help="Packs: folders and files.")
def atlas(source):
    """Make one page of the packs of many machines, _build/atlas/html."""
    from ffilab.atlas import page

    say(f"  open {os.path.relpath(page.make(source))}")


@verbs.command()
@click.argument("machines", nargs=-1, envvar="HOSTS")
@click.option("--scheduler", default="", help="Address of a running Dask scheduler: its workers are the machines.")
@click.option("--listen", envvar="LISTEN", default="127.0.0.1", show_default=True, help="Our address for the others.")
@click.option("--ssh-config", default="", help="Instead of ~/.ssh/config.")
@click.option("--chapter", envvar="NAME", default="", help="One chapter instead of the book.")
@kernels_option
@budget_option
def fleet(machines, scheduler, listen, ssh_config, chapter, kernels, budget):
    """Measure the book on other machines, [NAME=][USER@]ADDRESS[:PORT] each, and make the atlas of their packs."""
    from ffilab.atlas import fleet

    came = fleet.packs(
        machines, scheduler, listen, ssh_config, chapter, {settings.KERNELS: kernels, settings.BUDGET: budget}
    )
    from ffilab.atlas import page

    say(f"  open {os.path.relpath(page.make(shlex.join(str(machine.pack) for machine in came if machine.pack)))}")


@verbs.command()
@kernels_option
@click.option("--from", "source", envvar=settings.FROM, default="", help="A folder that `make ready` wrote elsewhere.")
def ready(kernels, source):
    """Fetch and build all that a workshop needs, prove it without a network, and write a folder for others in the room.

    With FROM it takes everything from such a folder, and asks no network.
    """
    from ffilab.page.book import set_up
    from ffilab.page.parts import in_order
    from ffilab.setup import room

    if source:
        room.take(Path(source))
    interpreters = set_up(catalogue.parse(kernels))
    environments.install_extra("statsmodels")
    room.prove(in_order()[0].name)
    if not source:
        room.write(paths.BUILD / "room", interpreters)


@verbs.command()
@click.argument("run_a", default="")
@click.argument("run_b", default="")
def compare(run_a, run_b):
    """Compare two records of two runs or machines (files in _build/records)."""
    from ffilab.judge.runs import report

    click.echo(report((Path(run_a), Path(run_b))))


@verbs.command()
@click.argument("name", default="")
@kernels_option
@a_budget(default="room", help="How long a cell measures.")
@from_option
@click.option("--listen", default="127.0.0.1", show_default=True, help="Address to serve on: in a container, 0.0.0.0.")
def lab(name, kernels, budget, source, listen):
    """Start JupyterLab on loopback, with what its notebooks need: interpreters, native code, layouts to measure on.

    NAME opens one chapter, on the chapter pair unless KERNELS names others, and builds no more than that needs. What is
    measured there lies apart, in _build/lab.
    With FROM the cells read these records: nothing is built or measured, and no interpreter is needed.
    """
    # Nothing of `page`, where it is not needed: the libraries behind it take longer to come than all else here.
    from ffilab.setup import chapters, installed, layout_pool, native
    from ffilab.setup.layouts import OF_LAB

    notebook = chapters.notebook_of(name) if name else paths.NOTEBOOKS
    told, kernels_folder = {"lab": True}, paths.ROOT / "kernels"
    if folder := records(source):
        from ffilab.measure import foreign
        from ffilab.page import execute

        if name:
            foreign.find(folder, name)
        kernels_folder = paths.BUILD / "lab" / "reading"
        names = [execute.reading_kernel(kernels_folder, python.name) for python in catalogue.CHAPTER_PAIR]
        told |= {"source": str(folder)}
    else:
        # To look for others takes longer than all else.
        asked = catalogue.parse(kernels or "pair" * bool(name), "room")
        interpreters = environments.provision(asked)
        native.build_all(interpreters, chapters=chapters.with_uses(name) if name else chapters.chapter_names())
        labels = [python.label for python in interpreters]
        layout_pool.ready(OF_LAB, labels, BUDGETS[budget].layouts, secrets.randbits(32))
        names = [python.name for python in installed.present()]
        told |= {"layouts": str(OF_LAB), "linker": linker.version_here() or None}
        told |= {"interpreters": labels if name else None}
    environment = {**os.environ, **settings.telling(**told), settings.BUDGET: budget}
    environment |= {"JUPYTER_PATH": str(kernels_folder), "PYTHONPATH": str(paths.ROOT)}
    environment[settings.BUILD] = str(paths.BUILD / "lab")
    environment["PYTHONSTARTUP"] = str(paths.ROOT / "ffilab" / "page" / "kernel_start.py")
    command = [sys.executable, "-c", JUPYTERLAB, f"--ip={listen}", f"--ServerApp.root_dir={paths.ROOT}"]
    # No question about news over the first screen, and no extensions from elsewhere.
    command += [f"--LabApp.app_settings_dir={paths.ROOT / 'ffilab' / 'page' / 'jupyterlab'}"]
    command += ["--LabApp.extension_manager=readonly", "--ServerApp.jpserver_extensions=jupyter_lsp=False"]
    # The address that is printed opens it as well, where there is no browser.
    command += [f"--LabApp.default_url=/lab/tree/{notebook.relative_to(paths.ROOT)}"]
    # Only kernels that are there: a tile that cannot start is a trap.
    command += ["--KernelSpecManager.ensure_native_kernel=False"]
    command += [f"--KernelSpecManager.allowed_kernelspecs={name}" for name in names]
    if os.geteuid() == 0:
        command.append("--allow-root")
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


def main():
    """Entry point of `python -m ffilab`."""
    kept = "stopped; what was finished is kept: interpreters, builds, records, the pages of finished chapters"
    if sys.argv[1:2] in (["time"], ["scale"]):
        command.run(verbs, command.NOTHING_YET, command.MISTAKE)
    command.run(verbs, kept, 1)
