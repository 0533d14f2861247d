"""How long a page is: words of prose that are not folded, and the minutes that its head promises to a class and to who
reads alone. From the golden records."""

import ast
import math
import re

from ffilab.page.contents import PROOF, glued, split, tags
from ffilab.run.paths import NOTEBOOKS

# Words of a chapter, all its pages together. boundary has what five tools do with an exception of C++, outside three
# builds and their batches, sharing the list "where do I look?" with its kept runs.
MOST = {"loaders": 1800, "boundary": 3225, "outside": 3250, "sharing": 3625}
# Of words, lines of code and pictures a minute.
WORDS, LINES, SHOWN = 220, 20, 4 / 3
# Of words and lines a minute, for who reads alone: without the code, and with every line of it.
ALONE, EACH_LINE = 200, 10


def without_folds(text: str) -> str:
    """Drop the directives that are folded: dropdowns, and admonitions with the class dropdown."""
    block = re.compile(r"^(?P<fence>`{3,}|:{3,})\{(?P<kind>[\w-]+)\}[^\n]*\n(?P<body>(?:.*\n)*?)(?P=fence)[ ]*$", re.M)

    def kept(match: re.Match) -> str:
        is_folded = match["kind"] == "dropdown" or re.match(r"(:.*\n)*:class:.*dropdown", match["body"])
        return "" if is_folded else match[0]

    return block.sub(kept, text + "\n")


def in_sight(page) -> list:
    """The cells of a page that are not folded: none of the proof, none of a solution; markdown without its
    dropdowns."""
    cells, is_solution = [], False
    for cell in page.cells:
        if PROOF in tags(cell):
            break
        if cell.cell_type == "markdown":
            is_solution = is_solution or "{solution-start}" in cell.source
            if not is_solution:
                cells.append({**cell, "source": without_folds(cell.source)})
            is_solution = is_solution and "{solution-end}" not in cell.source
        elif not is_solution:
            cells.append(cell)
    return cells


def quoted(directive: re.Match, chapter: str) -> int:
    """How many lines a literalinclude shows."""
    text = (NOTEBOOKS / chapter / directive["file"]).read_text()
    options = dict(re.findall(r':([\w-]+): "?(.*?)"?$', directive["options"], re.M))
    if name := options.get("pyobject"):
        named = [node for node in ast.parse(text).body if getattr(node, "name", "") == name]
        text = ast.get_source_segment(text, named[0])
    for option in {"start-after", "start-at"} & set(options):
        text = text.split(options[option], 1)[1]
    if "end-before" in options:
        text = text.split(options["end-before"], 1)[0]
    return len([line for line in text.splitlines() if line.strip()])


def measured(page, chapter: str, texts: dict[str, str]) -> tuple[int, int, int]:
    """Words of prose, lines of code, and tables and figures of a page that are in sight."""
    words = lines = shown = 0
    for cell in in_sight(page):
        source, tagged = cell["source"], " ".join(cell["metadata"].get("tags", []))
        if cell["cell_type"] == "code":
            if not re.search(r"hide-(input|cell)|remove-(input|cell)", tagged):
                lines += len([line for line in source.splitlines() if line.strip()])
            if "remove" not in tagged and "hide-cell" not in tagged and "hide-output" not in tagged:
                outputs = ["".join(output.get("data", {}).get("text/html", "")) for output in cell["outputs"]]
                outputs = [re.sub(r"<details.*</details>", "", output, flags=re.S) for output in outputs]
                shown += sum("ffi-figure" in output or "ffi-table" in output for output in outputs)
            continue
        include = re.compile(r"```\{literalinclude\} (?P<file>\S+)\n(?P<options>(?::.*\n)*)```")
        lines += sum(quoted(directive, chapter) for directive in include.finditer(source))
        shown += len(re.findall(r"^```\{glue\}", source, re.M))
        # Of a word of the glossary the word is read, and not its entry.
        prose = include.sub("", re.sub(r"\{term\}`([^`<]+?)(?: <[^>]+>)?`", r"\1", source))
        fence = re.compile(r"^```(?!\{(?:admonition|exercise|note|tip))[^\n]*\n(.*?)^```", re.M | re.S)
        lines += sum(len(code.splitlines()) for code in fence.findall(prose))
        prose = re.sub(r"\{glue:text\}`([^`]+)`", lambda role: texts[role[1]], fence.sub("", prose))
        words += len(re.findall(r"[\w$@%'’./-]*\w[\w%'’./-]*", re.sub(r"^:.*$", "", prose, flags=re.M)))
    return words, lines, shown


def test_a_chapter_is_as_long_as_its_head_says(chapter, executed):
    notebook, total = executed.executed_notebook, 0
    texts = glued(notebook)
    for name, page in split(notebook, chapter).items():
        words, lines, shown = measured(page, chapter, texts)
        total += words
        minutes = 5 * math.ceil((words / WORDS + lines / LINES + shown / SHOWN) / 5)
        said = page.cells[0].metadata.get("minutes")
        counted = f"{name}: {words} words, {lines} lines of code, {shown} tables and figures: {minutes} minutes"
        assert said is None or said["teaching"] == minutes, counted
        prose, whole = (5 * math.ceil((words / ALONE + shown / SHOWN + code) / 5) for code in (0, lines / EACH_LINE))
        alone = f"Reading: {prose} minutes, {whole} with every line of code."
        assert said is None or alone in page.cells[0].source, f"{counted}. {alone}"
    assert total <= MOST.get(chapter, 3000), f"{chapter}: {total} words"
