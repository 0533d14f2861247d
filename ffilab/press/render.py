"""Render executed chapters and prose with Jupyter Book: execution off, warnings are errors."""

import os
import shutil
import sys
from pathlib import Path

from ffilab.errors import UserError
from ffilab.judge import ledger
from ffilab.paths import BUILD, EXECUTED, HTML, LOGS, NATIVE, NOTEBOOKS, ROOT
from ffilab.press import status
from ffilab.progress import say, step
from ffilab.subprocesses import explain_os_errors, logged


def render() -> Path:
    """Build `_build/html`; what stood there before is replaced only if all went well. Returns the index page.

    Raises UserError if a chapter was never executed or Jupyter Book warns.
    """
    missing = [p.stem for p in sorted(NOTEBOOKS.glob("*.ipynb")) if not (EXECUTED / p.name).exists()]
    if missing:
        raise UserError(f"Nothing measured yet for {', '.join(missing)}: run `make book` first.")
    with explain_os_errors(str(BUILD)), step("render the book"):
        tree = assemble(BUILD / "source")
        log = LOGS / "jupyter-book.log"
        log.unlink(missing_ok=True)
        out = BUILD / "press"
        shutil.rmtree(out, ignore_errors=True)
        code = logged(
            [
                str(Path(sys.executable).with_name("jupyter-book")),
                "build",
                str(tree),
                "--path-output",
                str(out),
                "-W",
                "-n",
                "--keep-going",
            ],
            log,
            env={**os.environ, "PYTHONWARNINGS": "ignore", "JUPYTER_PATH": str(ROOT / "kernels")},
        )
        if code:
            raise UserError(f"Jupyter Book reported errors or warnings ({_warnings(log)}); read {log}.")
        shutil.rmtree(HTML, ignore_errors=True)
        (out / "_build" / "html").replace(HTML)
        shutil.rmtree(out)
    index = HTML / "index.html"
    say(f"  open {os.path.relpath(index)}")
    return index


def assemble(tree: Path) -> Path:
    """A source tree as in the repository, with executed notebooks in place of the stripped ones."""
    shutil.rmtree(tree, ignore_errors=True)
    tree.mkdir(parents=True)
    for name in ("_config.yml", "_toc.yml"):
        shutil.copy(ROOT / name, tree / name)
    shutil.copytree(ROOT / "book", tree / "book")
    shutil.copytree(NATIVE, tree / "native", ignore=shutil.ignore_patterns("build", "*.so", "target", "*.egg-info"))
    shutil.copytree(EXECUTED, tree / "notebooks")
    status.write(tree / "book" / "_generated", ledger.collect())
    return tree


def _warnings(log: Path) -> str:
    lines = [
        line.strip() for line in log.read_text(errors="replace").splitlines() if "WARNING" in line or "ERROR" in line
    ]
    return "; ".join(lines[:3]) or "see the log"
