"""Tables, numbers and marks of a page."""

import json
import math
import re

import nbformat
import pandas as pd
from hypothesis import example, given
from hypothesis import strategies as st

from ffilab.judge.estimates import Interval
from ffilab.measure.record import read_record
from ffilab.page import draw, tables
from ffilab.page.contents import Chapter
from ffilab.run.paths import ROOT


def test_what_is_shown_is_marked_if_it_is_no_result(displayed):
    assert draw.mark() == ""
    draw.start_page(False)
    assert draw.mark() == draw.SMOKE


def test_what_has_no_rows_says_so_and_draws_nothing(displayed):
    draw.figure(lambda figure: 1 / 0, "Nothing is known: no tool.", data=pd.DataFrame(columns=["arm"]))
    frame = pd.DataFrame({"arm": ["a"], "threads": [1]})
    draw.table(frame, "Two threads.", columns=("arm",), rows=frame.threads > 1)
    draw.table(frame[:0], "One thread.", fold=True)
    draw.nothing("there is no valgrind here")
    said = "".join(what.data for what, _ in displayed)
    assert "Nothing to draw here.</em> Nothing is known: no tool." in said
    assert "*Two threads.* Nothing of this was measured here." in said
    assert "*One thread.* Nothing of this was measured here." in said
    assert "Nothing to show here: there is no valgrind here." in said
    assert draw.percent(math.nan) == "not known"


def test_a_picture_that_opens_a_page_has_its_numbers_at_hand(displayed):
    frame = pd.DataFrame({"arm": ["a"], "value": [1.5], "low": [1.4], "high": [1.6]})
    draw.figure(lambda figure: figure.subplots(), "One arm.", data=frame, name="one-arm")
    draw.figure(lambda figure: figure.subplots(), "One arm.", data=frame)
    opening, glued, further = (str(what.data if hasattr(what, "data") else what) for what, _ in displayed)
    assert "<td>1.50 [1.40,\u00a01.60]</td>" in opening
    assert "ffi-numbers" in glued
    assert "ffi-numbers" not in further


def test_a_table_is_kept_in_the_notebook_for_other_pages_with_its_mark(tmp_path, monkeypatch, displayed):
    chapter = Chapter("loaders", executed_folder=tmp_path)
    monkeypatch.setattr(tables, "Chapter", lambda of: chapter)
    draw.start_page(False)
    times = [draw.Quantity(Interval(1.5, 1.4, 1.6), "ns"), draw.Quantity(Interval(math.inf, 2.0, math.inf)), "none"]
    frame = pd.DataFrame({"arm": ["a", "b", "c"], "time": times})
    draw.table(frame, "What it took.", keep="times")
    outputs = [nbformat.v4.new_output("display_data", metadata=metadata) for _, metadata in displayed]
    cell = nbformat.v4.new_code_cell(outputs=outputs)
    chapter.executed.parent.mkdir()
    nbformat.write(nbformat.v4.new_notebook(cells=[cell]), chapter.executed)
    found = tables.kept_table("loaders", "times")
    pd.testing.assert_frame_equal(found.frame, frame)
    assert found.caption == "What it took."
    assert found.mark == draw.SMOKE
    assert tables.kept_table("loaders", "nothing") is None


def test_a_table_holds_numbers_until_it_is_shown():
    third = Interval(1 / 3, 0.25, 0.5)
    quantity = draw.Quantity(third, "%", 100, signed=True)
    frame = pd.DataFrame({"arm": ["a & b", "a text that is longer than a cell"], "gain": [quantity, "none"]})
    shown = draw.rows_of(frame, {"a & b": "there.html", "gain": "why.html"})
    assert "<td>+33 % [25,\u00a050]</td>" in shown
    assert str(quantity) == f"+{draw.text(third, '%', 100)}"
    assert '<td><a href="there.html">a &amp; b</a></td>' in shown
    assert '<th><a href="why.html">gain</a></th>' in shown
    assert '<td><div class="ffi-long">a text that is longer than a cell</div></td>' in shown
    first, second = draw.spread_out(frame).to_dict("records")
    assert first == {"arm": "a & b", "gain": 100 * third.value, "gain, unit": "%", "gain, low": 25, "gain, high": 50}
    assert second["gain"] == "none"
    assert math.isnan(second["gain, low"])


def test_a_summary_has_a_row_for_each_combination_that_is_there():
    frame = pd.DataFrame({"interpreter": ["b", "a", "a"], "load": ["new", "known", "known"], "ns": [1.0, 2.0, 2.0]})
    by = {"load": ("missing", "known"), "interpreter": ()}
    found = draw.summary(
        frame, by, {"ns": lambda frame, load, interpreter: Interval(2, 1, 3) if load == "known" else None}
    )
    assert found.astype(str).to_dict("list") == {
        "load": ["known", "new"],
        "CPython": ["a", "b"],
        "ns": ["2.0 [1.0, 3.0]", draw.NOT_MEASURED],
        "n": ["2", "1"],
    }
    by_row = draw.summary(frame, {"load": ()}, lambda frame, load: {"said": load.upper()}, "")
    assert by_row.to_dict("list") == {"load": ["known", "new"], "said": ["KNOWN", "NEW"]}
    assert list(draw.summary(pd.DataFrame(), by, {})) == ["load", "CPython"]


def test_a_quantity_that_was_not_measured_is_words_everywhere():
    for nothing in (draw.Quantity(None), draw.Quantity(Interval(math.nan, math.nan, math.nan))):
        assert draw.spread_out(pd.DataFrame({"time": [nothing]})).time[0] == str(nothing)
    assert draw.Quantity(None).kept == draw.NOT_MEASURED


def test_an_interval_without_width_is_not_printed_as_one():
    assert draw.text(Interval(0.814, 0.814, 0.814), "ns") == "0.814 ns (all values alike)"
    assert draw.text(Interval(0.8, 0.7, 0.9)) == "0.80 [0.70, 0.90]"
    assert draw.text(Interval(0.8, math.nan, math.nan), "ns") == "0.8 ns (no interval)"
    assert draw.text(Interval(math.nan, math.nan, math.nan)) == "not known"
    assert draw.text(Interval(1760.0, 1760.0, 1760.0), "KiB") == "1,760 KiB (all values alike)"


@given(st.tuples(*[st.floats(1e-3, 1e6)] * 3).map(sorted), st.sampled_from([1, 100]))
@example([1.0004, 1.05, 1.1], 1)
@example([0.2, 28.0, 55.0], 1)
def test_bounds_are_printed_in_their_order_and_never_as_a_null_that_they_do_not_reach(numbers, factor):
    """Unless they come nearer to it than a thousandth of the interval."""
    low, value, high = numbers
    printed = re.fullmatch(r"(\S+) \[(\S+), (\S+)\]", draw.text(Interval(value, low, high), factor=factor))
    if printed:
        middle, *ends = (float(number.replace(",", "")) for number in printed.groups())
        assert ends[0] <= middle <= ends[1]
        assert ends[0] < ends[1]
        for bound, end in zip((low, high), ends):
            assert end not in (0, factor) or abs(bound * factor - end) <= (high - low) * factor / 1000


def test_what_was_not_measured_is_named_with_its_reason_and_what_was_changed_stands_in_the_open(displayed, tmp_path):
    golden = (ROOT / "tests/golden/loaders/calls.jsonl").read_text().splitlines(keepends=True)
    run, *others = (json.loads(line) for line in golden)
    # A reader's arm, which is timed as CDLL noop is; and one that no interpreter could make.
    run["plan"]["arms"].append({**run["plan"]["arms"][0], "name": "mine", "setup": "changed"})
    for line in others:
        for key in ("ns", "probes", "loops"):
            if isinstance(line.get(key), dict):
                line[key] |= {"3.14/mine": line[key]["3.14/CDLL noop"]}
        if line["kind"] == "restart":
            line["missing"] = {"3.14": {"CDLL nope": "AttributeError: undefined symbol: nope"}}
        line.pop("sha256", None)
    path = tmp_path / "loaders" / "session" / "calls.jsonl"
    path.parent.mkdir(parents=True)
    path.write_text("".join(json.dumps(line) + "\n" for line in (run, *others)))
    draw.arms(read_record(path))
    said = [what.data for what, _ in displayed]
    assert "Not measured: CDLL nope on 3.14 (AttributeError: undefined symbol: nope)" in said
    fold = next(number for number, text in enumerate(said) if "<details>" in text and "Every arm of this run" in text)
    opened = "".join(said[:fold])
    assert "➜ mine" in opened
    assert "CDLL getpid" not in opened
