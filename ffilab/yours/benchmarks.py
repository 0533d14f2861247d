"""What a reader wants timed, as arms: statements, or the functions `bench_…()` of a file."""

import ast
import platform
from pathlib import Path

import click

from ffilab.measure.plan import Arm
from ffilab.run.errors import UserError
from ffilab.yours.comparing import short

BENCH = "bench_"
FUNCTION = ast.FunctionDef | ast.AsyncFunctionDef
# One loop of events for all passes, and one turn of it for a batch.
AWAITED = """
import asyncio
def awaited(function, events=asyncio.new_event_loop()):
    async def passes(loops):
        for _ in range(loops):
            await function()
    return lambda loops: events.run_until_complete(passes(loops))
"""
# What makes the names of a file known to a worker.
FILE = (
    "sys.path.append({folder!r})\n__file__ = {file!r}\nexec(compile(open(__file__, 'rb').read(), __file__, 'exec'))\n"
)


def arms_of(statements: tuple[str, ...], setup: str, file: str | None, names: tuple[str, ...], uses: str = "") -> list:
    """An arm for each statement, or for each benchmark of the file. uses: source of what statements name elsewhere.
    Raises UserError."""
    called, waiting = [short(statement) for statement in statements], set()
    for statement in statements:
        hint_of_a_call(statement)
    if file:
        path = Path(file).absolute()
        source = read(file, path)
        uses += FILE.format(folder=str(path.parent), file=str(path))
        if not statements:
            functions = benchmarks(parsed(file, source))
            called = list(functions)
            waiting = {name for name, node in functions.items() if isinstance(node, ast.AsyncFunctionDef)}
            statements = tuple(f"{name}(loops)" if name in waiting else f"{name}()" for name in called)
    if not statements:
        raise UserError(f"There is nothing to time: give a statement, or a --file with functions `{BENCH}…()`.")
    if len(names) > len(statements):
        raise UserError(f"There are {len(names)} names for {len(statements)} statements: give each --name a statement.")
    return [
        Arm(
            name,
            what,
            "\n".join([setup, f"{function} = awaited({function})"]) if function in waiting else setup,
            AWAITED + uses if function in waiting else uses,
            own_loop=function in waiting,
        )
        for name, function, what in zip([*names, *called[len(names) :]], called, statements)
    ]


def hint_of_a_call(statement: str) -> None:
    """Say it where a statement only names something."""
    try:
        tree = ast.parse(statement.strip())
    except (SyntaxError, ValueError):
        return
    if len(tree.body) == 1 and isinstance(tree.body[0], ast.Expr):
        value = tree.body[0].value
        if isinstance(value, ast.Name | ast.Attribute) or (isinstance(value, ast.Constant) and value.value is not ...):
            click.echo(f"  {short(statement)!r} calls nothing: is it what you want to time?", err=True)


def read(file: str, path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise UserError(f"--file names {file}, which cannot be read: {error.strerror}.") from None


def parsed(file: str, source: bytes) -> ast.Module:
    """The tree of a file. It may be written for a newer Python than the one that runs this."""
    try:
        return ast.parse(source)
    except (SyntaxError, ValueError) as error:
        raise UserError(
            f"{file} is not valid in Python {platform.python_version()}, which runs this command ({error}): correct "
            "it, or name what to time, as statements."
        ) from None


def benchmarks(tree: ast.Module) -> dict[str, ast.FunctionDef | ast.AsyncFunctionDef]:
    """The benchmarks of a file by name; of those that have one name, the last. Says which cannot be timed, and why."""
    at_top = {node.name: node for node in tree.body if isinstance(node, FUNCTION) and node.name.startswith(BENCH)}
    found, left_out = {}, {}
    for node in ast.walk(tree):
        names = [node.name] if isinstance(node, FUNCTION) else []
        names += [name.id for name in getattr(node, "targets", []) if isinstance(name, ast.Name)]
        names += [alias.asname or alias.name for alias in node.names] if isinstance(node, ast.ImportFrom) else []
        elsewhere = [name for name in names if name.startswith(BENCH) and name not in at_top]
        left_out |= dict.fromkeys(elsewhere, "it is no function at the top of the file")
    for name, node in at_top.items():
        if needs_arguments(node):
            left_out[name] = "it needs arguments"
        elif is_generator(node):
            left_out[name] = "it is a generator: to call it runs nothing"
        else:
            found[name] = node
    if left_out:
        said = ", ".join(f"{name} ({reason})" for name, reason in left_out.items())
        click.echo(f"  Left out: {said}. A statement can name it.", err=True)
    return found


def needs_arguments(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    its = function.args
    return len(its.posonlyargs + its.args) > len(its.defaults) or None in its.kw_defaults


def is_generator(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Does it yield by itself? What is defined in it may do as it likes."""
    inside: list[ast.AST] = list(function.body)
    for node in inside:
        if isinstance(node, ast.Yield | ast.YieldFrom):
            return True
        if not isinstance(node, FUNCTION | ast.Lambda | ast.ClassDef):
            inside += ast.iter_child_nodes(node)
    return False
