"""What stands in the notebooks of chapters, as they are typed and as they were executed."""

import re
import tomllib

from ffilab.page.contents import Chapter
from ffilab.page.places import markdown
from ffilab.run.paths import NOTEBOOKS


def typed(chapter: str) -> str:
    """The Markdown of a chapter's notebook."""
    return "\n\n".join(markdown(Chapter(chapter).notebook))


def outputs(notebook) -> list:
    """The outputs of all cells of an executed notebook, or of one of its pages."""
    return [output for cell in notebook.cells for output in cell.get("outputs", [])]


def shown(notebook, kind: str = "text/markdown") -> list[str]:
    """What its outputs show, of one kind."""
    return [output.get("data", {}).get(kind, "") for output in outputs(notebook)]


def glued(notebook) -> dict[str, str]:
    """What is glued, by name: a text, or nothing where it is a figure."""
    return {
        output["metadata"]["scrapbook"]["name"]: next(iter(output["data"].values()), "")
        for output in outputs(notebook)
        if "scrapbook" in output.get("metadata", {})
    }


def asked(text: str) -> list[str]:
    """The names of what Markdown shows that is glued elsewhere."""
    return re.findall(r"\{glue\} (\S+)", text) + re.findall(r"\{glue:text\}`([^`]+)`", text)


def exercises(chapter: str) -> dict[str, dict[str, str]]:
    """What exercises.toml of a chapter says: `solved`, a pattern by exercise; `change`, of a cell."""
    return tomllib.loads((NOTEBOOKS / chapter / "exercises.toml").read_text())


def by_exercise(notebook):
    """Label, whether it is the solution, and cell, of each code cell of an exercise or of what follows it."""
    label, solution = None, None
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            label = (re.findall(r"\{exercise\} .*\n:label: (\S+)", cell.source) or [label])[-1]
            solution = (re.findall(r"\{solution-start\} (\S+)", cell.source) or [solution])[-1]
            solution = None if "{solution-end}" in cell.source else solution
        else:
            yield solution or label, bool(solution), cell
