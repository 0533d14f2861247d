"""What readers type into the search field: book/search.toml."""

import tomllib
from collections import Counter

from ffilab.page.render import SEARCH, findable, finish_sentences
from ffilab.run.paths import ROOT

TYPED = tomllib.loads((ROOT / "book" / SEARCH).read_text())


def test_each_text_leads_to_one_page_of_the_contents():
    toc = (ROOT / "_toc.yml").read_text()
    assert [place for place in TYPED["words"] if f"{place.partition('#')[0]}\n" not in toc] == []
    texts = Counter(text.lower() for typed in TYPED["words"].values() for text in typed)
    assert [text for text, count in texts.items() if count > 1] == []
    assert [text for text in texts if "," in text or ";" in text] == []


def test_what_is_not_searched_is_there():
    assert all(list(ROOT.glob(f"{page}.md")) for page in TYPED["left_out"])


def test_a_page_of_which_nothing_was_measured_yet_is_found_by_its_title(tmp_path):
    """So is every chapter but one in a new clone, after `make chapter`."""
    for place in TYPED["words"]:
        page = tmp_path / f"{place.partition('#')[0]}.md"
        page.parent.mkdir(parents=True, exist_ok=True)
        page.write_text("# A title alone\n")
    findable(tmp_path)
    for place, typed in TYPED["words"].items():
        text = (tmp_path / f"{place.partition('#')[0]}.md").read_text()
        assert (f"! {typed[0]}" in text) == ("#" not in place), place


def test_a_link_in_a_sentence_says_the_name_of_a_page_without_its_question(tmp_path):
    (tmp_path / "asks.md").write_text("# Arenas: why does memory grow?\n")
    here = tmp_path / "here.md"
    here.write_text("- {doc}`asks`: all.\n\nSee {doc}`asks`, or {doc}`the other <asks>`, or {doc}`nothing`.\n")
    finish_sentences(tmp_path)
    assert here.read_text() == (
        "- {doc}`asks`: all.\n\nSee {doc}`Arenas <asks>`, or {doc}`the other <asks>`, or {doc}`nothing`.\n"
    )
