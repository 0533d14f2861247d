"""The list of sources: nothing of the four documents is left out without a word, and what it points to is there."""

import re
from dataclasses import replace
from functools import cache

import nbformat
import pytest
import yaml

from ffilab.judge import claims
from ffilab.paths import NOTEBOOKS, ROOT
from ffilab.press import sources
from ffilab.press.chapters import chapters, split
from ffilab.press.sources import LETTERS, Part, headings, markdown, parts


@cache
def anchors() -> dict[str, dict[str, str]]:
    """By page of the table of contents, its anchors with their headings."""
    listed = re.findall(r"file: (\S+)|root: (\S+)", (ROOT / "_toc.yml").read_text())
    listed = {file or root for file, root in listed}
    found = {name: headings([path.read_text()]) for name in listed if (path := ROOT / f"{name}.md").exists()}
    for chapter in chapters():
        for name, page in split(nbformat.read(chapter.source, as_version=4), chapter.corner).items():
            found[f"notebooks/{chapter.corner}/{name}"] = headings(markdown(page))
    assert found.keys() == listed
    return found


def problems(documents: dict[str, list[Part]]) -> list[str]:
    """What is wrong with a list of sources, in words."""
    known, found = anchors(), []
    bibliography = set(re.findall(r"^@\w+\{(\S+),", (ROOT / "book" / "references.bib").read_text(), re.M))
    if documents.keys() != LETTERS.keys():
        found.append(f"documents: {', '.join(documents)}")
    for key, listed in documents.items():
        if key not in bibliography:
            found.append(f"{key} is not in the bibliography")
        for part in listed:
            where = f"{key}, {part.place}"
            if not (part.place and part.what.endswith(".")):
                found.append(f"{where}: no place, or no sentence")
            if not part.pages and not part.left_out:
                found.append(f"{where}: neither here nor left out")
            if part.left_out and not part.left_out.endswith("."):
                found.append(f"{where}: left out without a sentence")
            for page in part.pages:
                name, _, anchor = page.partition("#")
                if name not in known:
                    found.append(f"{where}: no page {name}")
                elif anchor and anchor not in known[name]:
                    found.append(f"{where}: no heading {anchor} on {name}")
            found += [f"{where}: {claim}" for claim in part.claims if claim[0] != LETTERS.get(key)]
        places = [part.place for part in listed]
        found += [f"{key}: {place} stands twice" for place in sorted(set(places)) if places.count(place) > 1]
    listed = {claim for found in documents.values() for part in found for claim in part.claims}
    # A reader's own claims have other letters.
    of_book = {claim.id for claim in claims.all_claims() if claim.id[0] in LETTERS.values()}
    found += [f"no part of a document for {claim}" for claim in sorted(of_book - listed)]
    found += [f"no claim {claim}" for claim in sorted(listed - of_book)]
    # A claim stands on a page of the chapter that tests it.
    for claim in claims.all_claims():
        pages = [
            page for found in documents.values() for part in found if claim.id in part.claims for page in part.pages
        ]
        if (
            claim.id in of_book
            and claim.corner
            and not any(page.startswith(f"notebooks/{claim.corner}/") for page in pages)
        ):
            found.append(f"{claim.id}: no page of the chapter {claim.corner}, which tests it")
    return found


def test_the_list_is_whole_and_points_to_what_is_there():
    assert problems(parts()) == []


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda part: replace(part, claims=("A1", "A99")), "no claim A99"),
        (lambda part: replace(part, claims=("B1",)), "B1"),
        (lambda part: replace(part, pages=("notebooks/loaders/nowhere",)), "no page notebooks/loaders/nowhere"),
        (lambda part: replace(part, pages=("notebooks/loaders/loaders#nothing",)), "no heading nothing"),
        (lambda part: replace(part, pages=(), left_out=""), "neither here nor left out"),
        (lambda part: replace(part, left_out="x"), "left out without a sentence"),
        (lambda part: replace(part, what=""), "no sentence"),
    ],
)
def test_a_planted_mistake_is_found(change, says):
    documents = parts()
    first, *others = documents["scc2025"]
    assert says in "; ".join(problems(documents | {"scc2025": [change(first), *others]}))


def test_what_is_forgotten_is_found():
    documents = parts()
    without = [part for part in documents["scc2025"] if "A23" not in part.claims]
    assert "no part of a document for A23" in problems(documents | {"scc2025": without})
    assert any("documents: " in problem for problem in problems({"scc2025": documents["scc2025"]}))
    renamed = {{"scc2025": "nobody"}.get(key, key): found for key, found in documents.items()}
    assert "nobody is not in the bibliography" in problems(renamed)


def test_a_key_that_is_not_known_is_refused(tmp_path, monkeypatch):
    (tmp_path / "sources.toml").write_text('[[scc2025]]\nplace = "p"\nwhat = "w."\npage = ["x"]\n')
    monkeypatch.setattr(sources, "LIST", tmp_path / "sources.toml")
    with pytest.raises(TypeError, match="page"):
        parts()


def test_anchors_are_those_of_the_renderer():
    cells = ["# One, `two`: three?\n", "```python\n# no heading\n```\n", "## Again\n\n## Again\n"]
    assert headings(cells) == {"one-two-three": "One, `two`: three?", "again": "Again", "again-1": "Again"}
    # The renderer makes anchors of as many levels as the list may use.
    assert yaml.safe_load((ROOT / "_config.yml").read_text())["sphinx"]["config"]["myst_heading_anchors"] == 3


def test_the_generated_text_has_every_part_with_its_verdicts_and_links(tmp_path):
    every = parts()
    for page in {page.partition("#")[0] for found in every.values() for part in found for page in part.pages}:
        (tmp_path / page).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / f"{page}.md").write_text("# A title: more\n")
    # One chapter was measured; the others have no headings to link to yet.
    (tmp_path / "notebooks/loaders/loaders.md").unlink()
    source = NOTEBOOKS / "loaders" / "loaders.ipynb"
    (tmp_path / "notebooks/loaders/loaders.ipynb").write_text(source.read_text())
    rows = [
        {"id": claim.id, "claim": claim.claim, "verdict": f"verdict of {claim.id}", "qualifier": "", "stale": []}
        for claim in claims.all_claims()
    ]
    lines = sources.page(tmp_path, rows).splitlines()
    start = 0
    for found in every.values():
        for number, part in enumerate(found, 1):
            start = lines.index(f"- **{number}. {part.place}.** {part.what}", start + 1)
            own = lines[start + 1 : start + 4]
            assert not part.left_out or f"  - *Left out:* {part.left_out}" in own
            assert not part.pages or any(line.startswith("  - *Here:* [") for line in own)
            for claim in part.claims:
                assert any(f"{claim}, verdict of {claim}" in line for line in own)
    text = "\n".join(lines)
    assert "[What a call blocks](../notebooks/loaders/loaders.ipynb#what-a-call-blocks)" in text
    assert "[A title](../notebooks/races/races.md)" in text
    assert "races.md#" not in text
    assert all(re.search(rf"^- \*\*{row['id']}\.\*\* .* \*Parts:\* \d", text, re.M) for row in rows)
