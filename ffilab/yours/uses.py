"""What statements name where they stand, in a notebook or in a test: its source, as a measured process gets it."""

import ast

from ffilab.measure.source import source_of


def uses_of(statements: list[str], setup: str, namespace: dict) -> str:
    """The source of the functions, modules and plain values of a namespace that statements and their setup name.

    A name that the setup assigns is the setup's. Of what is no Python nothing is taken: that is told when it is made.
    Raises UserError for a value that cannot go to another process.
    """
    trees = [_parsed(text) for text in (setup, *statements)]
    names = [node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Name)]
    loaded = {node.id for node in names if isinstance(node.ctx, ast.Load)}
    own = {node.id for node in ast.walk(trees[0]) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    own |= {alias.asname or alias.name.partition(".")[0] for alias in _imported(trees[0])}
    return source_of(**{name: namespace[name] for name in sorted(loaded - own) if name in namespace})


def _parsed(text: str) -> ast.Module:
    try:
        return ast.parse(text)
    except SyntaxError:
        return ast.Module([], [])


def _imported(tree: ast.Module) -> list[ast.alias]:
    imports = (node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom))
    return [alias for node in imports for alias in node.names]
