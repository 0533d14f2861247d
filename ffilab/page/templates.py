"""Pages and parts of pages as templates (jinja2): what they show is handed in, how it looks stands in `templates/`."""

import html
import re
from pathlib import Path

import jinja2

from ffilab.page.draw import capital, plain
from ffilab.page.files import slug
from ffilab.page.words import translated
from ffilab.run import settings

TEMPLATES = Path(__file__).with_name("templates")
ENVIRONMENT = jinja2.Environment(
    loader=jinja2.FileSystemLoader(TEMPLATES),
    undefined=jinja2.StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
    keep_trailing_newline=True,
)
ENVIRONMENT.filters |= {
    "e": html.escape,
    "plain": plain,
    "slug": slug,
    "capital": capital,
    "has_digit": re.compile(r"\d").search,
    # A path, or a name of C, breaks at its joints.
    "breakable": lambda text: re.sub(r"(?<=[/._])(?=\w)", "<wbr>", text),
}
ENVIRONMENT.globals["_"] = translated


def filled(name: str, **values) -> str:
    """Fill the template of that name: its own of the language that is spoken, if there is one."""
    stem, _, kind = name.rpartition(".")
    names = [f"{stem}.{settings.language()}.{kind}.j2", f"{name}.j2"]
    return ENVIRONMENT.select_template(names).render(**values)
