"""A chapter as a lesson: questions, objectives and minutes at its head, key points at its end, and notes for who
teaches it."""

import re

from ffilab.page import lessons
from ffilab.page.contents import PROOF, SAID, Chapter, split, tags
from tests.helpers.notebooks import typed

EXPECTED, SHORT = "Expected answers", "If time is short"
PARTS = (EXPECTED, "On laptops", SHORT)
HEAD = re.compile(
    r"# [^\n]+\n\n(?:(?!```)[^\n]+\n)*\n?```\{admonition\} (In this chapter|On this page)\n:class: note( dropdown)?\n"
    r"\*\*Questions\*\*\n\n(?P<questions>(?:- .+\n)+)\n"
    r"\*\*Objectives\*\*\n\n(?P<objectives>(?:- .+\n)+)\n"
    r"Teaching: (?P<teaching>\d+) minutes\. Exercises: (?P<exercises>\d+) minutes\. .+\n```"
)


def test_each_page_begins_with_questions_objectives_and_minutes(chapter):
    for opening, minutes in zip(Chapter(chapter).openings, Chapter(chapter).minutes.values()):
        head = HEAD.match(opening)
        assert head, f"{chapter}: {opening[:60]}"
        assert {part: int(head[part]) for part in ("exercises", "teaching")} == minutes, (
            "the cell's metadata say otherwise"
        )
        assert all(line.endswith("?") for line in head["questions"].splitlines()), head["questions"]
        assert all(line.startswith("- You will ") for line in head["objectives"].splitlines()), head["objectives"]


def test_tags_say_where_the_proof_begins_and_which_cell_glues_sentences(chapter):
    for cell in Chapter(chapter).notebook.cells:
        assert (PROOF in tags(cell)) == ("## The proof" in cell.source.splitlines()), cell.id
        assert (SAID in tags(cell)) == cell.source.startswith("chapter.sentences("), cell.id


def test_each_page_ends_with_key_points(chapter):
    pages = re.split(r"(?m)^# ", typed(chapter))[1:]
    for page in pages:
        points = re.search(r"^## Key points\n\n((?:- .+\n)+)", page, re.M)
        assert points, page[:60]
        assert points[1].count("- ") >= 2, points[1]
    assert re.search(r"^## Key points\n\n(- .*\n)*- .*\{glue:text\}", typed(chapter), re.M), (
        "no key point comes from the run"
    )


def test_words_of_the_glossary_are_linked_once_a_page(chapter):
    """Where a page introduces them; whether the glossary has them, Sphinx says."""
    pages = [
        re.findall(r"\{term\}`(?:[^`<]*<)?([^`<>]+)>?`", "".join(cell.source for cell in page.cells))
        for page in split(Chapter(chapter).notebook, chapter).values()
    ]
    assert any(pages), "a chapter without a word of the glossary"
    for linked in pages:
        assert len({word.lower() for word in linked}) == len(linked), linked


def test_each_prediction_is_answered_by_the_run_and_has_a_note_on_the_answers_to_expect(chapter):
    # Down to the next heading of any level.
    predictions = re.findall(r"^##+ Your prediction\n(.*?)(?=^#+ |\Z)", typed(chapter), re.M | re.S)
    asked = {number for text in predictions for number in re.findall(r"^(\d+)\. ", text, re.M)}
    assert asked
    assert set(re.findall(r"\*\*You predicted \((\d+)\)\.\*\* \S", typed(chapter))) == asked
    notes = lessons.notes(Chapter(chapter))
    assert tuple(notes) == PARTS
    # Handed out on paper.
    assert set(re.findall(r"^(\d+)\. ", lessons.predictions(Chapter(chapter)), re.M)) == asked
    expected = dict(re.findall(r"^(\d+)\. (.+(?:\n   .+)*)", notes[EXPECTED], re.M))
    assert set(expected) == asked
    # A wrong model, and a question that leads on.
    for number, note in expected.items():
        assert "The model: " in note, (chapter, number)
    assert all(text.count("- ") >= 2 for part, text in notes.items() if part != EXPECTED)


def test_what_may_be_skipped_is_there_and_answers_no_prediction(chapter):
    """A section with its subsections."""
    named = re.findall(r"\*\*([^*]+)\*\*", lessons.notes(Chapter(chapter))[SHORT])
    assert named
    for heading in named:
        found = re.search(rf"^(##+) {re.escape(heading)}\n(.*?)(?=^##? |\Z)", typed(chapter), re.M | re.S)
        assert found, (chapter, heading)
        text = found[2] if found[1] == "##" else re.split(r"(?m)^### ", found[2])[0]
        assert "You predicted" not in text, (chapter, heading)
