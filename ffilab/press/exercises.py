"""The exercises of a chapter outside JupyterLab: a file with the reader's answers, and the chapter's own checks of it.

The file is made of the notebook's exercise cells. To check it, the cells before are run on records, in the chapter's
interpreter; then each answer takes the place of its cell, and what its check prints is shown. Solutions are not run.
"""

import ast
import json
import os
import re
import subprocess
import tempfile
from pathlib import Path

from ffilab.bench.foreign import NoSession, find
from ffilab.bench.session import EXERCISE, FROM
from ffilab.errors import UserError
from ffilab.paths import LOGS, RECORDS, ROOT
from ffilab.press.chapters import Chapter
from ffilab.progress import minutes
from ffilab.provision.catalogue import BY_LABEL
from ffilab.provision.installed import python
from ffilab.subprocesses import group, tail

ANSWERS = ROOT / "my"
TITLE = re.compile(r"\{exercise\} (.+)\n:label: (\S+)")
PART = re.compile(r"^# %% (\S+?):.*$", re.M)
CHECKS = "exercise.check_"
TIMEOUT_S = 900
# Of what is printed, so much of its end is looked at (bytes).
MAX_ANSWER = 1 << 24


def cells(chapter: Chapter) -> tuple[list[str], list[dict]]:
    """The chapter's code, and its exercises. A part: label, title, code. Cells that only show something, and solutions, are
    left out; an exercise's cell stands in the list as None, in the order in which the cells run."""
    code, parts, title, in_solution = [], [], None, False
    for cell in chapter.notebook.cells:
        if cell.cell_type == "markdown":
            title = (TITLE.findall(cell.source) or [title])[-1]
            in_solution = "{solution-start}" in cell.source or (in_solution and "{solution-end}" not in cell.source)
            continue
        if in_solution or "chapter.verdicts" in cell.source or "chapter.end" in cell.source:
            continue
        if CHECKS in cell.source:
            parts.append({"label": title[1], "title": title[0], "code": cell.source})
            code.append(None)
        elif "hide-input" not in cell.metadata.get("tags", []):
            code.append(cell.source)
    # What comes behind the last exercise is not needed.
    return code[: len(code) - code[::-1].index(None)] if None in code else [], parts


def template(chapter: Chapter) -> str:
    """A file of answers as it is given to the reader."""
    _, parts = cells(chapter)
    heading = (
        f"# The exercises of the chapter {chapter.corner}. Edit this file, then: make exercise NAME={chapter.corner}\n"
        "# The chapter's variables are there, as in its notebook. Leave the lines that begin with # %% as they are.\n"
    )
    return (
        "\n\n".join([heading.rstrip(), *(f"# %% {one['label']}: {one['title']}\n{one['code']}" for one in parts)])
        + "\n"
    )


def answers(path: Path, labels: list[str]) -> dict[str, str]:
    """The reader's code by exercise, with as many empty lines before it as there are in the file: errors name its lines.

    Raises UserError for a mistake in its syntax, and for a part that is missing.
    """
    try:
        text = path.read_text(encoding="utf-8")
        ast.parse(text)
    except SyntaxError as error:
        raise UserError(f"{shown(path)}, line {error.lineno}: {error.msg}.") from None
    except (UnicodeDecodeError, ValueError, RecursionError, MemoryError) as error:
        raise UserError(
            f"{shown(path)} cannot be read ({str(error) or type(error).__name__}): save it as Python in UTF-8."
        ) from None
    found = list(PART.finditer(text))
    ends = [part.start() for part in found[1:]] + [len(text)]
    given = {
        part[1]: "\n" * text.count("\n", 0, part.end()) + text[part.end() : end]
        for part, end in zip(found, ends, strict=True)
    }
    if missing := [label for label in labels if label not in given]:
        raise UserError(
            f"{shown(path)} has no part {missing[0]!r} (a line `# %% {missing[0]}: …`). Take the file away to get a new one."
        )
    return given


def shown(path: Path) -> str:
    return os.path.relpath(path)


def check(chapter: Chapter, source: Path | None = None, folder: Path = ANSWERS) -> list[dict]:
    """Check the reader's answers on records: those of `source`, else those last measured here. Makes the file if there is none.

    Returns for each exercise: label, title, lines, solved. Raises UserError.
    """
    code, parts = cells(chapter)
    if not parts:
        raise UserError(f"The chapter {chapter.corner} has no exercise that can be checked.")
    path = folder / f"{chapter.corner}.py"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(template(chapter), encoding="utf-8")
    given = answers(path, [one["label"] for one in parts])
    executable = python(BY_LABEL[chapter.jupyter_kernel.removeprefix("cpython-")])
    if not executable.exists():
        raise UserError("The interpreter of this chapter is not set up: run `make kernels`.")
    if source is None and not RECORDS.is_dir():
        raise UserError(not_measured(chapter))
    try:
        find(source or RECORDS, chapter.corner)
    except NoSession:
        raise UserError(not_measured(chapter)) from None
    left = iter(parts)
    order = [
        {"code": one} if one is not None else {"code": given[(part := next(left))["label"]], **{"label": part["label"]}}
        for one in code
    ]
    found = run(executable, chapter, source or RECORDS, order, str(path))
    for part in parts:
        part |= found[part["label"]]
    return parts


def not_measured(chapter: Chapter) -> str:
    return (
        f"The chapter {chapter.corner} has no records yet, which its checks compare with: `make chapter NAME={chapter.corner}` "
        f"(BUDGET=room takes a minute or two), or name records with FROM=."
    )


def run(executable: Path, chapter: Chapter, source: Path, order: list[dict], name: str) -> dict[str, dict]:
    """Run cells in the chapter's interpreter; of each exercise, by label, the lines that it printed, and whether they are those
    of a solution. Raises UserError."""
    log = LOGS / f"exercise-{chapter.corner}.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    environment = {**os.environ, FROM: str(source), EXERCISE: "1", "PYTHONPATH": str(ROOT), "MPLBACKEND": "agg"}
    with log.open("w") as sink, tempfile.TemporaryFile("w+") as order_file, tempfile.TemporaryFile() as said:
        json.dump({"cells": order, "name": shown(Path(name))}, order_file)
        order_file.seek(0)
        command = [executable, "-m", "ffilab.press.run_exercise"]
        # Files and no pipes: a process that an answer left would hold them open.
        streams = {"stdin": order_file, "stdout": said, "stderr": sink}
        try:
            with group(command, cwd=chapter.source.parent, env=environment, **streams) as child:
                code = child.wait(TIMEOUT_S)
        except subprocess.TimeoutExpired:
            raise UserError(
                f"Your answers did not end within {minutes(TIMEOUT_S)}; what they wrote is in {shown(log)}."
            ) from None
        said.seek(0, os.SEEK_END)
        said.seek(max(0, said.tell() - MAX_ANSWER))
        text = said.read().decode(errors="replace")
    try:
        found = json.loads(text.splitlines()[-1])
    except (IndexError, ValueError):
        raise UserError(f"The checks ended early (exit code {code}: {tail(log, 1)}); see {shown(log)}.") from None
    if "failed" in found:
        raise UserError(found["failed"])
    return found["exercises"]


def report(parts: list[dict]) -> str:
    """What the checks said, an exercise after the other."""
    return "\n\n".join(
        "\n".join(
            [f"{one['title']}: {'solved' if one['solved'] else 'still open'}", *(f"  {line}" for line in one["lines"])]
        )
        for one in parts
    )
