"""The files of the repository, and what stands in those of Python."""

import ast
import subprocess
from functools import cache
from pathlib import Path

from ffilab.run.paths import ROOT


def listed(*options: str) -> list[str]:
    """The lines of `git ls-files` with these options."""
    command = ["git", "ls-files", *options]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()


def tracked() -> list[Path]:
    """Every file that is in the repository, or new and not ignored."""
    return [ROOT / name for name in listed("--cached", "--others", "--exclude-standard") if (ROOT / name).is_file()]


@cache
def walked(path: Path) -> list[ast.AST]:
    """Every node of a file of Python."""
    return list(ast.walk(ast.parse(path.read_text())))


def nodes(path: Path, *kinds: type[ast.AST]) -> list[ast.AST]:
    """The nodes of these kinds in a file of Python."""
    return [node for node in walked(path) if isinstance(node, kinds)]


def texts(path: Path) -> list[ast.Constant]:
    """The texts in a file of Python, with where they stand."""
    return [node for node in nodes(path, ast.Constant) if isinstance(node.value, str)]


def imported(path: Path) -> set[str]:
    """Modules that a file imports, in full."""
    plain = {alias.name for node in nodes(path, ast.Import) for alias in node.names}
    return plain | {
        f"{node.module}.{alias.name}" for node in nodes(path, ast.ImportFrom) if node.module for alias in node.names
    }
