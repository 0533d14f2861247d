"""Terms of the glossary, linked where a page first uses them."""

import re

# A fenced piece, a heading, a row of a table, an option, a label; and in a line: code and roles, links, tags, formulas.
PROTECTED = (
    r"^(?P<fence>`{3,}|~{3,}).*?^(?P=fence)`*$|^#.*?$|^\|.*?$|^:.*?$|^\(.*?\)=$"
    r"|(?:\{[\w:-]+\})?`[^`]+`|!?\[[^\]]*\](?:\([^)]*\)|\[[^\]]*\])|<[^>\n]+>|\$[^$\n]+\$|\w+://\S+"
)
# Words of every day, which a page may mean as such.
EVERYDAY = {"way", "block", "company", "neighbour", "floor", "attach", "detach", "contention", "layout"}


def glossary_terms(glossary: str) -> dict[str, list[str]]:
    """Return the terms of the glossary, each with the words that mean it: `GIL, lock` has two."""
    inside = re.search(r"^```\{glossary\}\n(.*?)^```", glossary, re.M | re.S)
    terms = {}
    for line in inside[1].splitlines():
        if line and not line.startswith(" "):
            terms[line] = [word for word in line.split(", ") if word not in EVERYDAY]
    return terms


def linked(cells: list[str], terms: dict[str, list[str]]) -> list[str]:
    """Link the first use of each term in the Markdown cells of one page to the glossary."""
    entries = {word: entry for entry, words in terms.items() for word in words}
    if not entries:
        return cells
    # The longest first: `race condition` is not a `race`.
    words = "|".join(forms(word) for word in sorted(entries, key=len, reverse=True))
    pattern = re.compile(rf"(?P<protected>{PROTECTED})|(?<![\w-])(?P<word>{words})(?![\w-])", re.M | re.S)
    left = dict.fromkeys(terms)

    def link(match: re.Match) -> str:
        if match["protected"]:
            return match[0]
        entry = next(entry for word, entry in entries.items() if re.fullmatch(forms(word), match["word"]))
        if entry not in left:
            return match[0]
        del left[entry]
        return f"{{term}}`{match['word']} <{entry}>`"

    return [pattern.sub(link, cell) for cell in cells]


def forms(word: str) -> str:
    """Return a pattern for a term, its plural, and its form with a capital."""
    first = re.escape(word[0]) if word[0].isupper() else f"[{word[0]}{word[0].upper()}]"
    rest = re.sub(r"(?:\\ |\s)+", r"\\s+", re.escape(word[1:]))
    if word.endswith("y") and word[-2] not in "aeiou":
        return f"{first}{rest[:-1]}(?:y|ies)"
    return first + rest + ("(?:es)?" if word.endswith(("s", "sh", "x")) else "s?")
