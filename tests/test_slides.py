"""Slides: made of the executed pages alone, with what the run says, marks and all; complete offline, and light."""

import json
import re

import nbformat
import pytest

from ffilab.page import lessons, slides
from ffilab.page.contents import FACTS, Chapter
from ffilab.page.draw import GLUE_PREFIX

SVG = "PHN2ZyB4bWxucz0iaHR0cDovL3d3dy53My5vcmcvMjAwMC9zdmciIHdpZHRoPSI0MCIgaGVpZ2h0PSIzMCI+PHJlY3Qgd2lkdGg9IjQwIiBoZWlnaHQ9IjMwIi8+PC9zdmc+"
FIGURE = "".join(
    f'<img class="ffi-{mode}" alt="Ratio &lt; 2" src="data:image/svg+xml;base64,{SVG}">' for mode in ("light", "dark")
)
HEAD = """# Loaders, *made up*

```{admonition} In this chapter
:class: note
**Questions**

- What does it cost {cite}`scc2025`?

**Objectives**

- You will know.

Teaching: 5 minutes. Exercises: 5 minutes. Nothing else.
```"""
TEXTS = (
    "## Your prediction\n\nWrite down.\n\n1. How much, through {doc}`loaders <../loaders/loaders>`?\n2. Which\n   of "
    "the two?",
    "## The experiment\n\n**You predicted (1).** {glue:text}`prediction-1`\n\nMore prose.",
    "## Key points\n\n- {glue:text}`point`\n- Measure.\n\n```{admonition} For instructors\n:class: dropdown "
    "tip\nAsk.\n```",
)
GLUE = {"prediction-1": "It takes 1.5 [1.4, 1.6] times as long. (withheld)", "point": "a < b & `c`"}
OUTPUTS = [
    {"text/html": f'<style></style><figure class="ffi-figure">{FIGURE}</figure><p>CSV</p>'},
    {"text/markdown": "**A12: does not hold.** It is fast.\n\n- Published: 2"},
    {"text/markdown": "*A caption*"},
]


@pytest.fixture
def chapter(tmp_path):
    """A made-up executed page of a chapter that has notes, measured in a smoke test in which a control failed."""
    (tmp_path / "loaders").mkdir()
    code = nbformat.v4.new_code_cell("pass")
    code.outputs = [nbformat.v4.new_output("display_data", data) for data in OUTPUTS]
    code.outputs += [
        nbformat.v4.new_output(
            "display_data",
            {f"{GLUE_PREFIX}text/plain": repr(value)},
            metadata={"scrapbook": {"name": name, "mime_prefix": GLUE_PREFIX}},
        )
        for name, value in GLUE.items()
    ]
    texts = [nbformat.v4.new_markdown_cell(text) for text in (HEAD, *TEXTS)]
    made = nbformat.v4.new_notebook(cells=[*texts[:3], code, texts[3]])
    found = Chapter("loaders", executed_folder=tmp_path)
    nbformat.write(made, found.executed)
    facts = {"budget": "smoke", "machine": "a machine", "date": "2026-01-02T03:04:05"}
    facts |= {"records": [], "read": True, "digests": {"the notebook": "another"}}
    (tmp_path / "loaders" / FACTS).write_text(json.dumps(facts))
    return found


def test_a_deck_holds_what_the_page_says_and_its_marks(chapter):
    made = slides.deck(chapter)
    assert [slide.title for slide in made.slides] == [
        "Loaders, *made up*",
        "Loaders, *made up*: questions",
        "Your prediction (1)",
        "Your prediction (2)",
        "You predicted (1)",
        "The experiment",
        "Key points",
        "Verdicts of this run",
    ]
    title, questions, first, second, answer, picture, _, verdicts = made.slides
    for mark in ("smoke test", "Stale", "the notebook", "a machine, 2026-01-02 03:04"):
        assert mark in title.body
    assert questions.body == "- What does it cost?\n"
    assert first.body == "How much, through loaders?"
    assert "of the two?" in second.body
    assert GLUE["prediction-1"] in answer.body
    assert "More prose" not in answer.body
    assert first.notes == answer.notes == lessons.expected(chapter)["1"]
    assert picture.notes == "Ratio &lt; 2"
    assert "A12: does not hold" in verdicts.body
    html = slides.page(made)
    assert "<li>a &lt; b &amp; <code>c</code></li>" in html
    assert "For instructors" not in html
    assert sorted(made.pictures) == ["loaders-1-dark.svg", "loaders-1-light.svg"]


def test_what_was_measured_in_full_carries_no_mark(chapter):
    facts = json.loads((chapter.executed.parent / FACTS).read_text())
    (chapter.executed.parent / FACTS).write_text(json.dumps({**facts, "budget": "quick", "digests": {}}))
    assert slides.deck(chapter).slides[0].body == "Measured on a machine, 2026-01-02 03:04, budget quick."


def check_deck(path):
    """Complete offline, without markup that was not rendered, and light: what one mode of light and dark loads."""
    folder, text = path.parent, path.read_text()
    shown = re.sub(r"<[^>]*>", "", text.partition('<div class="slides">')[2].partition("</main>")[0])
    assert not re.search(r"\{\w+[}:]|```|:::", shown)
    assert "://" not in re.sub(r'<a [^>]*href="[^"]*"', "", text)  # A link may lead out of it.
    needed = [folder / file for file in re.findall(r'(?:src|href)="([^":]+)"', text) if not file.startswith("../")]
    assert all(file.is_file() for file in needed)
    assert sum(file.stat().st_size for file in {path, *needed} if "-dark" not in file.name) < 1_500_000


def test_a_deck_is_complete_offline(chapter, tmp_path):
    absent = Chapter("races", executed_folder=tmp_path / "none")
    (path,) = slides.write(tmp_path / "slides", [chapter, absent])
    check_deck(path)


def test_a_deck_in_a_browser(chapter, tmp_path, browser):
    """Arrow keys lead through it, one of light and dark is seen, and nothing is missing; without scripts all slides are
    there."""
    (path,) = slides.write(tmp_path / "slides", [chapter])
    tab, complaints = browser.new_page(viewport={"width": 1280, "height": 720}), []
    tab.on("console", lambda message: complaints.append(message.text) if message.type == "error" else None)
    tab.on("pageerror", lambda error: complaints.append(str(error)))
    tab.on("requestfailed", lambda request: complaints.append(f"failed: {request.url}"))
    tab.goto(path.as_uri())
    tab.wait_for_selector(".reveal.ready")
    assert tab.inner_text("section.present h1") == "Loaders, made up"
    for _ in range(5):
        tab.keyboard.press("ArrowRight")
    assert tab.inner_text("section.present h2") == "The experiment"
    # It fades in.
    tab.wait_for_selector("section.present img:visible")
    assert tab.locator("section.present img:visible").count() == 1
    before = tab.locator("section.present img:visible").get_attribute("class")
    tab.get_by_role("button", name="light or dark").click()
    assert tab.locator("section.present img:visible").get_attribute("class") != before
    # The other ground, too: what is written on it can be read.
    ground = "getComputedStyle(document.body).backgroundColor"
    theme = tab.evaluate("document.documentElement.dataset.theme")
    assert tab.evaluate(ground) == {"light": "rgb(255, 255, 255)", "dark": "rgb(20, 24, 30)"}[theme]
    assert not tab.locator("aside.notes").first.is_visible()
    assert complaints == []
    plain = browser.new_context(java_script_enabled=False).new_page()
    plain.goto(path.as_uri())
    assert plain.locator("section h2:visible").count() == len(slides.deck(chapter).slides) - 1
