"""What no text of the book may look like, whatever was measured."""

import re

WRONG = {
    "a word twice": re.compile(r"\b([a-z]{2,}) \1\b", re.I),
    "markup that is not rendered": re.compile(r"(?<!\\)[*`]|\{(glue|value|why)"),
    "a number that is none": re.compile(r"\b(nan|inf)\b|\bNone\b(?! of)"),
    "an interval without width": re.compile(r"\[(-?[\d.,]+), \1\]"),
    "a factor below 1 as speed": re.compile(r"\b0\.\d+( \[[^]]*\])? times as (fast|slow|quick)"),
    "the same reason twice": re.compile(r"not measured here.*not measured here|(no number here)\W+(and\W+)?\1"),
    "spaces": re.compile(r"  | [.,;:](\s|$)"),
    "stops twice": re.compile(r"\.\.(?!\.)|;;|\.;|(?<!\w)\(\s*\)"),
    "an exponent": re.compile(r"\d[eE][+-]\d"),
}


def faults(text: str, sentence: bool = False) -> list[str]:
    """What is wrong with a text; empty if it reads well."""
    found = [what for what, pattern in WRONG.items() if pattern.search(text)]
    if sentence and not text.strip():
        found.append("nothing is said")
    elif sentence and not (re.match(r"[A-Z0-9(“‘±]", text) and text.rstrip()[-1] in ".?:"):
        found.append("no whole sentence")
    return found


def faults_of_markdown(text: str) -> list[str]:
    """The faults of MyST: directives, roles, code and emphasis around whole words are no faults."""
    text = re.sub(r"^```\w+\n.*?^```$", "", text, flags=re.M | re.S)
    prose = re.sub(r"^:.*$|^\(.*\)=$", "", re.sub(r"(\{[\w:-]+\})?`[^`\n]*`", "code", text), flags=re.M)
    prose = re.sub(r"\*\*?([^\s*](?:[^*\n]*[^\s*])?)\*\*?", r"\1", prose)
    found = faults("\n".join(" ".join(line.split()) for line in prose.splitlines()))
    # A published number is quoted as it was published.
    return [what for what in found if what != "an exponent"]
