"""What a notebook's cells define, as a module: `notebooks.<chapter>.experiment`.

The experiment stands in the cells that run it, and nowhere else. What else needs a part of it (results, made-up
records, tests) imports this module: the functions, the classes and the CONSTANTS of all code cells, with the imports
that these use. What a cell runs, and what it keeps in names with small letters, is left out.
"""

import ast
import importlib.abc
import importlib.util
import json
import os
from pathlib import Path

from ffilab.run.paths import NOTEBOOKS

MODULE = "experiment"
# Where an editor, grep and a type checker see it; git does not.
FILE = f"{MODULE}.py"
# A cell with this tag is run by a reader in JupyterLab, and not when the book is made.
YOURS = "yours"
DEFINITIONS = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
IMPORTS = ast.Import | ast.ImportFrom


def exported(notebook: Path) -> str:
    """The source of the module that a notebook's cells make."""
    cells = [cell for cell in json.loads(notebook.read_text(encoding="utf-8"))["cells"] if cell["cell_type"] == "code"]
    texts = ["".join(cell["source"]) for cell in cells]
    nodes = [(text, node) for text in texts for node in ast.parse(text).body]
    kept = [(text, node) for text, node in nodes if isinstance(node, DEFINITIONS) or is_constant(node)]
    used = {part.id for _, node in kept for part in ast.walk(node) if isinstance(part, ast.Name)}
    imports = dict.fromkeys(line for _, node in nodes if isinstance(node, IMPORTS) for line in lines(node, used))
    return "\n".join([*imports, "", *(whole(text, node) for text, node in kept), ""])


def is_constant(node: ast.AST) -> bool:
    """Does it assign names in capitals, and nothing else?"""
    if not isinstance(node, ast.Assign):
        return False
    names = [part.id for target in node.targets for part in ast.walk(target) if isinstance(part, ast.Name)]
    return bool(names) and all(name.isupper() for name in names)


def lines(node: ast.Import | ast.ImportFrom, used: set[str]) -> list[str]:
    """An import, as one line for each of its names that is used."""
    names = [alias for alias in node.names if (alias.asname or alias.name).partition(".")[0] in used]
    if isinstance(node, ast.Import):
        return [ast.unparse(ast.Import([alias])) for alias in names]
    return [ast.unparse(ast.ImportFrom(node.module, [alias], node.level)) for alias in names]


def whole(text: str, node: ast.stmt) -> str:
    """The lines of a statement as they stand in the cell, with its decorators."""
    first = min([node.lineno, *(part.lineno for part in getattr(node, "decorator_list", []))])
    return "\n".join(text.splitlines()[first - 1 : node.end_lineno])


class Cells(importlib.abc.MetaPathFinder):
    """Finds these modules: writes the file of each, if its cells have changed, and has it loaded."""

    def find_spec(self, fullname, path=None, target=None):
        package, _, name = fullname.rpartition(".")
        folder = NOTEBOOKS / package.rpartition(".")[2]
        notebook = folder / f"{folder.name}.ipynb"
        if package.rpartition(".")[0] != NOTEBOOKS.name or name != MODULE or not notebook.exists():
            return None
        file = folder / FILE
        write(
            file,
            f"# Made from {notebook.name} whenever it is imported (ffilab/page/cells.py): change the cells.\n"
            + exported(notebook),
        )
        return importlib.util.spec_from_file_location(fullname, file)


def write(file: Path, text: str) -> None:
    """Write a file that others may be reading, if its text is another one."""
    if not file.exists() or file.read_text(encoding="utf-8") != text:
        new = file.with_name(f".{file.name}-{os.getpid()}")
        new.write_text(text, encoding="utf-8")
        new.replace(file)
