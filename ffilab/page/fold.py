"""A Sphinx extension: what proves that a page's numbers may be trusted is folded; a page in another language says so to
browsers; code in a table breaks at its joints."""

import re

from docutils import nodes
from sphinx.application import Sphinx

# The name of each language in its own words, and as HTML names it. A page in one ends in its name.
LANGUAGES = {"zh_TW": ("正體中文", "zh-Hant-TW")}
# The class of the section, from the tag of its cell (render.py).
PROOF = "ffi-proof"
# Behind these a name of C, a path or a dotted name may go on in the next line.
JOINT = re.compile(r"(?<=[/._])(?=[^\W\d_])")
SUMMARY = "How these numbers were made, and what says that they may be trusted"


def fold(app: Sphinx, doctree: nodes.document, page: str) -> None:
    """Put what stands below the heading of a proof into an element that opens."""
    for section in doctree.findall(nodes.section):
        if PROOF in section["classes"]:
            section.insert(1, nodes.raw("", f'<details class="{PROOF}"><summary>{SUMMARY}</summary>', format="html"))
            section.append(nodes.raw("", "</details>", format="html"))


def breakable(app: Sphinx, doctree: nodes.document, page: str) -> None:
    """Let code in tables break at its joints, so that no column breaks a word."""
    for code in [code for table in doctree.findall(nodes.table) for code in table.findall(nodes.literal)]:
        first, *others = map(nodes.Text, JOINT.split(code.astext()))
        code.children = [first]
        for piece in others:
            code += [nodes.raw("", "<wbr>", format="html"), piece]


def language(app: Sphinx, page: str, template: str, context: dict, doctree: nodes.document | None) -> None:
    """Say which language a page is in."""
    for ending, (_, tag) in LANGUAGES.items():
        if page.endswith(f"_{ending}"):
            context["language"] = tag


def setup(app: Sphinx) -> dict:
    app.connect("doctree-resolved", fold)
    app.connect("doctree-resolved", breakable)
    app.connect("html-page-context", language)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
