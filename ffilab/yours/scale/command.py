"""`ffilab scale`: what holds my threads back? On the command line."""

import sys

import click

from ffilab.run.errors import UserError
from ffilab.yours.amounts import SECONDS
from ffilab.yours.command import OUT, STOPPED, must_be_writable, tell_what_is_not_passed_on


@click.command(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.argument("statement")
@click.option(
    "-s", "--setup", multiple=True, help="Run once; its names are globals that all threads share. Several are lines."
)
@click.option(
    "--python",
    help="A free-threaded CPython: an executable, a name on PATH, or the folder of a virtual environment; in the "
    "book's clone also a label such as 3.14t.  [default: the Python that runs this]",
)
@click.option("--file", type=click.Path(), help="A Python file whose names setup and statement may use.")
@click.option("--threads", type=int, default=2, show_default=True, help="How many; at most as many as there are cores.")
@click.option("--time", "seconds", type=SECONDS, default="60s", show_default=True, help="End after so long at most.")
@click.option("--json", "record", type=OUT, help="Write all that was measured and found, as JSON.")
@click.option(
    "--fail-below",
    "limit",
    type=float,
    help="Exit with 1 if the threads certainly do less than so many times the work of one. Where the run cannot tell, "
    "it says so and exits with 0.",
)
def scale(statement, setup, python, file, threads, seconds, record, limit):
    """How much more work do several threads do than one, and what holds them back? Each thread runs STATEMENT, many
    times.

    \b
    What do threads share here?     ffilab scale -s "config = {'limit': object()}" "config['limit']"
    A function of a file, in CI:    ffilab scale --file mine.py --fail-below 1.5 "work()"

    STATEMENT runs many times, in processes of its own: give it work that can be repeated. The number of the thread
    is ffilab_thread.
    """
    if limit is not None and not 0 < limit < float("inf"):
        raise UserError(f"--fail-below is {limit:g}: say how many times the work of one, as in 1.5.")
    if limit is not None and limit >= threads:
        raise UserError(f"--fail-below is {limit:g}, and {threads} threads do {threads} times the work of one at most.")
    if record:
        must_be_writable("--json", record)
    tell_what_is_not_passed_on()
    from ffilab.yours.scale.diagnosing import scale as diagnosed

    result = diagnosed(
        statement,
        "\n".join(setup),
        python=python,
        file=file,
        threads=threads,
        seconds=seconds,
        quiet=not sys.stderr.isatty(),
    )
    if record:
        result.save(record)
    click.echo(str(result))
    if limit is not None:
        click.echo(result.gate(limit))
        sys.exit(1 if result.below(limit) == "yes" else STOPPED if result.stopped else 0)
