"""A Sphinx extension: what proves that a page's numbers may be trusted is folded, and its heading stays in sight."""

from docutils import nodes
from sphinx.application import Sphinx

TITLES = ("The proof", "證據")
SUMMARY = "How these numbers were made, and what says that they may be trusted"


def fold(app: Sphinx, doctree: nodes.document, page: str) -> None:
    """Put what stands below the heading of a proof into an element that opens."""
    for section in doctree.findall(nodes.section):
        if section[0].astext() in TITLES:
            section.insert(1, nodes.raw("", f'<details class="ffi-proof"><summary>{SUMMARY}</summary>', format="html"))
            section.append(nodes.raw("", "</details>", format="html"))


def setup(app: Sphinx) -> dict:
    app.connect("doctree-resolved", fold)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
