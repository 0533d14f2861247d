"""The exercises of a notebook."""

import re


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
