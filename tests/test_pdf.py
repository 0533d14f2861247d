"""The book on one page, as it is printed."""

from ffilab.press import pdf

PAGES = ["book/preface", "notebooks/a/a"]


def test_pages_come_in_the_order_of_the_contents():
    contents = {
        "root": "a",
        "parts": [{"chapters": [{"file": "b", "sections": [{"file": "c"}]}]}, {"chapters": [{"file": "d"}]}],
    }
    assert pdf.in_order(contents) == ["a", "b", "c", "d"]


def test_links_between_pages_become_places_on_the_one():
    assert pdf.within("../notebooks/a/a.html#x", "book/preface", PAGES) == "#notebooks-a-a--x"
    assert pdf.within("#x", "notebooks/a/a", PAGES) == "#notebooks-a-a--x"
    assert pdf.within("../../_static/files/f.svg", "notebooks/a/a", PAGES) == "_static/files/f.svg"
    assert pdf.within("https://a.example/b", "notebooks/a/a", PAGES) == "https://a.example/b"


def test_all_pages_on_one_with_what_is_folded_open(tmp_path):
    for page, body in zip(
        PAGES,
        (
            '<h1 id="t">P</h1><a href="../notebooks/a/a.html#t">x</a>',
            '<h1 id="t">A</h1><details><p>in</p></details><img loading="lazy" src="../../_static/f.svg">',
        ),
    ):
        path = tmp_path / f"{page}.html"
        path.parent.mkdir(parents=True)
        path.write_text(
            f'<html><head><link href="../_static/b.css"></head><body><nav>n</nav><article class="bd-article">{body}</article></body></html>'
        )
    text = pdf.one_page(tmp_path, PAGES)
    assert 'href="_static/b.css"' in text
    assert 'href="#notebooks-a-a--t"' in text
    assert 'id="notebooks-a-a--t"' in text
    assert "<details open" in text
    assert 'src="_static/f.svg"' in text
    assert "<nav>" not in text
    assert "lazy" not in text
