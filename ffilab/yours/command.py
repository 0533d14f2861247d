"""`ffilab time`: which of these is faster? On the command line, with the habits of `timeit`."""

import ast
import os
import signal
import sys
import tempfile
import traceback
from pathlib import Path

import click

from ffilab.run import settings
from ffilab.run.errors import UserError
from ffilab.run.paths import BUILD
from ffilab.run.subprocesses import end_leftovers, explain_os_errors, reached

BENCH = "bench_"
# Of `ffilab time`, whose 1 is a finding.
MISTAKE = 2
# What makes the names of a file known to a worker.
FILE = (
    "sys.path.append({folder!r})\n__file__ = {file!r}\nexec(compile(open(__file__, 'rb').read(), __file__, 'exec'))\n"
)


class Amount(click.ParamType):
    """A number with one of these units."""

    def __init__(self, name: str, like: str, units: dict[str, float]):
        self.name, self.like, self.units = name, like, units

    def convert(self, value, param, context):
        word = str(value).strip()
        unit = next(unit for unit in self.units if word.endswith(unit))
        try:
            amount = float(word.removesuffix(unit)) * self.units[unit]
        except ValueError:
            amount = -1.0
        if 0 <= amount < float("inf"):
            return amount
        raise UserError(f"{param.opts[-1]} is {value!r}: say it as in {self.like}.")


SHARE = Amount("N%", "1%", {"%": 0.01, "": 0.01})
SECONDS = Amount("TIME", "60s or 2m", {"m": 60, "s": 1, "": 1})
OUT = click.Path(dir_okay=False, writable=True)


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
    f"`{BENCH}…()` is timed.",
)
@click.option("--name", "names", multiple=True, help="What to call a statement; in their order.")
@click.option(
    "--gil",
    type=click.Choice(["off", "on", "both"]),
    default="off",
    help="Of free-threaded builds: without the GIL, with it, or both compared.  [default: off]",
)
@click.option("--to", type=SHARE, help="End when each ratio is known to ± so much.  [default: 1%; with --time: never]")
@click.option("--time", "seconds", type=SECONDS, help="End after so long.  [default: 60s; with --to: 10m]")
@click.option("--no-pin", is_flag=True, help="Not all on one core: for statements that start threads.")
@click.option("--json", "record", type=OUT, help="Write all that was measured, as JSON lines.")
@click.option("--pyperf", type=OUT, help="Write it in pyperf's format. Of several Pythons each has its own file.")
@click.option(
    "--fail-if-slower",
    "limit",
    type=SHARE,
    help="Exit with 1 if one takes longer than the first by more than this. Where the run cannot tell, it says so and "
    "exits with 0.",
)
def time(statements, setup, pythons, file, names, gil, to, seconds, no_pin, record, pyperf, limit):
    """Which is faster? Time each STATEMENT against the first, or one of them on several Pythons. They run in turns, in
    many processes, and each ratio has an interval.

    \b
    Two statements:             ffilab time -s "x = list(range(99))" "sum(x)" "max(x)"
    Two environments:           ffilab time --python old --python new -s "import mine" "mine.f()"
    With and without the GIL:   ffilab time --python python3.14t --gil both -s "import mine" "mine.f()"

    Modules are found in the environment, then in this folder. PYTHONPATH and other variables PYTHON… do not count.
    """
    from ffilab.yours.comparing import compare

    arms = arms_of(statements, "\n".join(setup), file, names)
    result = compare(
        arms,
        pythons,
        to=(0.01 if seconds is None else 0.0) if to is None else to,
        seconds=(60.0 if to is None else 600.0) if seconds is None else seconds,
        gil=gil,
        pin=not no_pin,
        quiet=not sys.stderr.isatty(),
    )
    click.echo(str(result))
    if record:
        result.save(record)
    if pyperf:
        click.echo(f"For pyperf: {', '.join(map(str, result.save_pyperf(pyperf)))}")
    if limit is not None:
        click.echo(result.gate(limit))
        sys.exit(int("yes" in result.slower(limit).values()))


def arms_of(statements: tuple[str, ...], setup: str, file: str | None, names: tuple[str, ...]) -> list:
    """An arm for each statement, or for each benchmark of the file. Raises UserError."""
    from ffilab.yours.comparing import Arm, short

    uses, called = "", [short(statement) for statement in statements]
    if file:
        path = Path(file).absolute()
        try:
            tree = ast.parse(path.read_bytes())
        except OSError as error:
            raise UserError(f"--file names {file}, which cannot be read: {error.strerror}.") from None
        except (SyntaxError, ValueError) as error:
            raise UserError(f"{file} is no Python ({error}): correct it.") from None
        uses = FILE.format(folder=str(path.parent), file=str(path))
        if not statements:
            functions = [node.name for node in tree.body if isinstance(node, ast.FunctionDef)]
            called = [name for name in functions if name.startswith(BENCH)]
            statements = tuple(f"{name}()" for name in called)
    if not statements:
        raise UserError(f"There is nothing to time: give a statement, or a --file with functions `{BENCH}…()`.")
    if len(names) > len(statements):
        raise UserError(f"There are {len(names)} names for {len(statements)} statements: give each --name a statement.")
    return [Arm(name, what, setup, uses) for name, what in zip([*names, *called[len(names) :]], statements)]


def run(verbs: click.Group, stopped: str, mistake: int) -> None:
    """Run a verb. What a reader can mend ends in one sentence and this exit code. stopped: what to say after Ctrl-C."""

    def end(sentence: str):
        sys.stderr.write(f"ffilab: {sentence}\n")
        sys.exit(mistake)

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
            # Under the folder's lock: nobody else works here.
            if os.environ.get(settings.RUN) == str(BUILD):
                end_leftovers()
            verbs(standalone_mode=False)
    except UserError as error:
        end(str(error))
    except MemoryError:
        end("there is not enough memory: end what else is running, and run the same command again.")
    except click.ClickException as error:
        end(error.format_message())
    except BaseException as error:
        # Not KeyboardInterrupt alone: in the middle of an import of C code it comes out as an ImportError.
        if interrupts:
            sys.stderr.write(f"\nffilab: {stopped}.\n")
            sys.exit(130)
        if not isinstance(error, Exception):
            raise
        if isinstance(error, RuntimeError) and (limit := reached(str(error))):
            end(str(limit))
        end(
            f"a mistake of this program, or something that it does not know ({type(error).__name__}: {error}); "
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
        click.echo(f"  TMPDIR is {named!r}, where no file can be made: {folder} takes its place.", err=True)
        os.environ["TMPDIR"] = folder


def kept_traceback() -> str:
    """Write the traceback of what is being handled to a file; return its path."""
    with tempfile.NamedTemporaryFile("w", prefix="ffilab-", suffix=".log", delete=False) as file:
        traceback.print_exc(file=file)
    return file.name


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def installed():
    """Compare the speed of Python code."""


installed.add_command(time)


def main():
    """Entry point of `ffilab`, where the package is installed."""
    run(installed, "stopped before there was anything to tell", MISTAKE)
