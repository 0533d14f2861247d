"""`ffilab time`: which of these is faster? On the command line, with the habits of `timeit`."""

import io
import os
import signal
import sys
import tempfile
import traceback
from pathlib import Path

import click

from ffilab.run import settings
from ffilab.run.errors import UserError
from ffilab.run.subprocesses import end_leftovers, explain_os_errors, reached
from ffilab.yours.amounts import SECONDS, SHARE

# Of `ffilab time`, whose 1 is a finding.
MISTAKE = 2
# As a shell calls the end by Ctrl-C.
STOPPED = 130
NOTHING_YET = "stopped before there was anything to tell"


OUT = click.Path(dir_okay=False)


@click.command(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.argument("statements", nargs=-1, metavar="STATEMENT...")
@click.option("-s", "--setup", multiple=True, help="Run once in each process. Several are lines of one setup.")
@click.option(
    "--python",
    "pythons",
    multiple=True,
    help="An executable, a name on PATH, or the folder of a virtual environment; in the book's clone also a label such "
    "as 3.14t. Several are compared.  [default: the Python that runs this]",
)
@click.option(
    "--file",
    type=click.Path(),
    help="A Python file whose names setup and statements may use. Without a statement, each of its functions "
    "`bench_…()` is timed.",
)
@click.option("--name", "names", multiple=True, help="What to call each statement, in their order.")
@click.option(
    "--gil",
    type=click.Choice(["off", "on", "both"]),
    default="off",
    help="Run free-threaded builds without the GIL, with it, or both.  [default: off]",
)
@click.option("--to", type=SHARE, help="End when each ratio is known to ± this.  [default: 1%; with --time: never]")
@click.option("--time", "seconds", type=SECONDS, help="End after so long.  [default: 60s; with --to: 10m]")
@click.option("--no-pin", is_flag=True, help="Use all cores, for statements that start threads.")
@click.option("--instructions", is_flag=True, help="Also count the instructions of a pass, by callgrind.")
@click.option("--memory", is_flag=True, help="Also measure peak memory, in separate processes.")
@click.option("--json", "record", type=OUT, help="Write all that was measured, as JSON lines.")
@click.option("--export-markdown", "markdown", type=OUT, help="Write the table as Markdown.")
@click.option("--pyperf", type=OUT, help="Write it in pyperf's format, with several Pythons one file for each.")
@click.option(
    "--fail-if-slower",
    "limit",
    type=SHARE,
    help="Exit with 1 if one takes longer than the first by more than this. Where the run cannot tell, it says so and "
    "exits with 0.",
)
def time(statements, setup, pythons, file, names, gil, instructions, memory, record, markdown, pyperf, limit, **how):
    """Which is faster? Time each STATEMENT against the first, or one of them on several Pythons. They run in turns, in
    many processes, and each ratio has an interval.

    \b
    Two statements:             ffilab time -s "x = list(range(99))" "sum(x)" "max(x)"
    Two environments:           ffilab time --python old --python new -s "import mine" "mine.f()"
    With and without the GIL:   ffilab time --python python3.14t --gil both -s "import mine" "mine.f()"

    Modules are found in the environment, then in this folder. PYTHONPATH and other variables PYTHON… do not count.
    """
    from ffilab.yours.benchmarks import arms_of

    arms = arms_of(statements, "\n".join(setup), file, names)
    if limit is not None and len(arms) * max(1, len(pythons)) * (1 + (gil == "both")) < 2:
        raise UserError("--fail-if-slower has nothing to compare with: give a second statement, or a second --python.")
    outputs = {"--json": record, "--export-markdown": markdown, "--pyperf": pyperf}
    outputs = {option: output for option, output in outputs.items() if output is not None}
    for option, output in outputs.items():
        must_be_writable(option, output)
    if len({Path(output).resolve() for output in outputs.values()}) < len(outputs):
        raise UserError(f"{' and '.join(outputs)} name one file: give each its own.")
    if instructions:
        # Not at the top: it is a third of the start, and few ask for it.
        from ffilab.measure.instructions import available

        if lacking := available():
            raise UserError(f"--instructions needs callgrind: {lacking}.")
    tell_what_is_not_passed_on()
    result = measured(arms, pythons, gil, **how)
    # First: what fails while it is printed costs nothing then.
    if record:
        result.save(record)
    if markdown:
        result.save_markdown(markdown)
    files = result.save_pyperf(pyperf) if pyperf else []
    click.echo(str(result))
    if instructions or memory:
        click.echo("\n" + beside(arms, pythons, gil, result, instructions, memory))
    if files:
        click.echo(f"For pyperf: {', '.join(map(str, files))}")
    if limit is not None:
        click.echo(result.gate(limit))
        slower = "yes" in result.slower(limit).values()
        sys.exit(1 if slower else STOPPED if result.record.cut_off else 0)


def measured(arms: list, pythons, gil, to, seconds, no_pin):
    """Measure arms as these options ask for; return a `Result`."""
    from ffilab.yours.comparing import compare

    return compare(
        arms,
        pythons,
        to=(0.01 if seconds is None else 0.0) if to is None else to,
        seconds=(60.0 if to is None else 600.0) if seconds is None else seconds,
        gil=gil,
        pin=not no_pin,
        quiet=not sys.stderr.isatty(),
    )


def beside(arms: list, pythons, gil, result, instructions, memory) -> str:
    """The table of what else than time was asked for."""
    from ffilab.yours.beside import NO_SAY, Beside

    looked = Beside(arms, pythons or [sys.executable], gil, result)
    columns = [*(looked.memory() if memory else []), *(looked.instructions() if instructions else [])]
    return "\n".join([looked.table(columns), *([NO_SAY] if instructions else [])])


def tell_what_is_not_passed_on() -> None:
    """Name the variables of Python that are set here, and do not count for what is measured."""
    if ignored := settings.of_python():
        click.echo(f"  Not passed on to what is measured: {', '.join(ignored)}.", err=True)


def must_be_writable(option: str, name: str) -> None:
    """Raises UserError if a file cannot be written, before anything is measured."""
    path = Path(name)
    if not name.strip() or name == "-":
        raise UserError(f"{option} is {name!r}: name a file.")
    try:
        if path.exists():
            path.open("ab").close()
        else:
            tempfile.TemporaryFile(dir=path.parent).close()
    except OSError as error:
        raise UserError(
            f"{option} names {name}, which cannot be written ({error.strerror}): name another file."
        ) from None


def run(verbs: click.Group, stopped: str, mistake: int) -> None:
    """Run a verb. What a reader can mend ends in one sentence and this exit code. stopped: what to say after Ctrl-C."""

    def end(sentence: str):
        sys.stderr.write(f"ffilab: {sentence}\n")
        sys.exit(mistake)

    # Whatever the terminal lacks: the result is not lost for a character.
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")
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
            usable_temporary_folder()
            end_leftovers()
            verbs(standalone_mode=False)
    except UserError as error:
        end(str(error))
    except MemoryError:
        end("there is not enough memory: end what else is running, and run the same command again.")
    except click.NoSuchOption as error:
        timed = error.ctx and error.ctx.info_name == "time"
        behind = ' Put a statement that begins with - after --: ffilab time -- "-x" "+x"' if timed else ""
        end(error.format_message() + behind)
    except click.ClickException as error:
        end(error.format_message())
    except SystemExit:
        raise
    except BaseException as error:
        # In the middle of an import of C code it comes out as an ImportError. What comes later has a reason of its own.
        if interrupts and isinstance(error, KeyboardInterrupt | click.Abort | ImportError):
            sys.stderr.write(f"\nffilab: {stopped}.\n")
            sys.exit(STOPPED)
        if not isinstance(error, Exception):
            raise
        if isinstance(error, RuntimeError) and (limit := reached(str(error))):
            end(str(limit))
        end(
            f"a bug in this program, or something that it does not know ({type(error).__name__}: {error}); "
            f"its traceback is in {kept_traceback()}."
        )


def usable_temporary_folder() -> None:
    """Have all that we start use a folder for temporary files that can be used. Raises UserError if there is none."""
    try:
        folder = tempfile.gettempdir()
    except FileNotFoundError as error:
        raise UserError(f"{error.strerror}: point TMPDIR to a folder that you can write.") from None
    named = os.environ.get("TMPDIR")
    if named and os.path.abspath(named) != folder:
        click.echo(f"  TMPDIR is {named!r}, where no file can be made: {folder} is used instead.", err=True)
        os.environ["TMPDIR"] = folder


def kept_traceback() -> str:
    """Write the traceback of what is being handled to a file; return its path."""
    with tempfile.NamedTemporaryFile("w", prefix="ffilab-", suffix=".log", delete=False) as file:
        traceback.print_exc(file=file)
    return file.name


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="ffilab")
def installed():
    """Compare the speed of Python code, and ask what holds its threads back."""


installed.add_command(time)


def main():
    """Entry point of `ffilab`, where the package is installed."""
    # Not at the top: it needs what is above.
    from ffilab.yours.scale.command import scale

    installed.add_command(scale)
    run(installed, NOTHING_YET, MISTAKE)
