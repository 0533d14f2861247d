"""`%load_ext ffilab`, in IPython and Jupyter: `%%ffilab` compares the lines of a cell, beside `%timeit`."""

import shlex

import click
from IPython.core.error import UsageError
from IPython.core.interactiveshell import InteractiveShell

from ffilab.run.errors import UserError
from ffilab.yours import benchmarks, command
from ffilab.yours.result import Result
from ffilab.yours.uses import uses_of

# What a shell is told with an exit code or a file; a notebook has the result.
ELSEWHERE = {
    "record": "call save(…) of the result, which is `_`",
    "markdown": "call save_markdown(…) of the result, which is `_`",
    "pyperf": "call save_pyperf(…) of the result, which is `_`",
    "limit": "call gate(…) of the result, which is `_`",
    "memory": "run ffilab time --memory there",
    "instructions": "run ffilab time --instructions there",
}


def compared(line: str, cell: str | None, namespace: dict) -> Result | None:
    """Time each line of a cell, or each word of `%ffilab`, against the first; options as of `ffilab time`. Statements
    may name functions, modules and plain values of the notebook.

    Raises UsageError, which IPython prints as one sentence.
    """
    lines = [text.strip() for text in (cell or "").splitlines()]
    statements = [text for text in lines if text and not text.startswith("#")]
    try:
        words = shlex.split(line) + (["--", *statements] if statements else [])
        options = command.time.make_context("%%ffilab", words).params
        for option, instead in ELSEWHERE.items():
            if options.pop(option) not in (None, False):
                raise UserError(f"This is an option for a shell: {instead}.")
        statements, setup = options.pop("statements"), "\n".join(options.pop("setup"))
        uses = uses_of(list(statements), setup, namespace)
        arms = benchmarks.arms_of(statements, setup, options.pop("file"), options.pop("names"), uses)
        return command.measured(arms, **options)
    except click.exceptions.Exit:
        # After --help.
        return None
    except click.ClickException as error:
        raise UsageError(error.format_message()) from None
    except (UserError, ValueError) as error:
        raise UsageError(str(error)) from None


def register(shell: InteractiveShell) -> None:
    """Give a shell the magic."""

    def ffilab(line, cell=None):
        return compared(line, cell, shell.user_ns)

    ffilab.__doc__ = compared.__doc__
    shell.magics_manager.register_function(ffilab, "line_cell", "ffilab")
