"""Sentences are data: each has a form for every answer, and a wrong file says what is wrong."""

import re
import sys
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ffilab.judge import questions, sentences
from ffilab.judge.estimates import Counted, Interval, Share
from ffilab.judge.numbers import Numbers
from ffilab.judge.rules import NO, OPEN, YES
from ffilab.run.errors import UserError
from ffilab.run.paths import NOTEBOOKS
from tests.helpers.prose import faults

NUMBERS = re.compile(r"\{[^}]*\}")
ABOVE, BELOW, AROUND = Interval(1.5, 1.4, 1.6), Interval(0.5, 0.4, 0.6), Interval(1.0, 0.9, 1.1)
UNKNOWN = Interval(1.0, float("nan"), float("nan"))
SIDE = """
[dearer]
ask = {number = "x", null = 1.0}
yes = "It takes {value} times as long."
no = "It takes {value.inverse} times as long the other way round."
open = "No difference is seen: {value}."
"""


@pytest.fixture
def written(tmp_path, monkeypatch):
    """What a file of sentences says of made-up numbers."""
    monkeypatch.setattr(sentences, "NOTEBOOKS", tmp_path)
    (tmp_path / "c").mkdir()

    def say(text, **given):
        (tmp_path / "c" / "sentences.toml").write_text(text)
        sentences._read.cache_clear()
        session = SimpleNamespace(chapter="c", reads=set(), earlier=[])
        session.once = lambda make: Numbers(session, {name: lambda found=found: found for name, found in given.items()})
        return dict(sentences.Said(session))

    return say


@pytest.mark.parametrize(
    ("number", "said"),
    [
        (ABOVE, "It takes 1.50 [1.40, 1.60] times as long."),
        (BELOW, "It takes 2.00 [1.67, 2.50] times as long the other way round."),
        (AROUND, "No difference is seen: 1.00 [0.90, 1.10]."),
        (None, sentences.NOTHING),
        ("it was not built", "Too little was measured here to say: it was not built."),
    ],
)
def test_an_answer_chooses_the_form(written, number, said):
    assert written(SIDE, x=number) == {"dearer": said}


def test_several_questions_take_the_first_form_that_fits(written):
    text = """
    [both]
    ask = [{kind = "there", number = "y"}, {number = "x", null = 1.0}, {number = "x", than = "y"}]
    with = {y = "y"}
    "no" = "No {y}."
    "* yes yes" = "More than one, and than y."
    "* *" = "Not more."
    """
    assert written(text, x=ABOVE, y=BELOW)["both"] == "More than one, and than y."
    assert written(text, x=ABOVE, y=ABOVE)["both"] == "Not more."
    assert written(text, x=None, y=None)["both"] == "No not measured here."
    assert written(text, x=None, y=BELOW)["both"] == sentences.NOTHING


def test_variables_parts_and_counts_are_filled_in(written):
    text = """
    ["hung-{build}"]
    for.build = ["gil", "free-threaded"]
    ask = {kind = "occurs", number = "hangs on {label}", rate = 0.5}
    with = {all = "@all"}
    yes = "{Where}, {value.events} of {value.trials} hung{all}."
    no = "{Where}, none hung."
    open = "{Where}, none hung in too few."

    [all]
    part = true
    with = {n = "n"}
    text = ", of {n.value:.0f} in all"
    """
    said = written(text, **{"hangs on {GIL}": Share(2, 3), "hangs on {FREE_THREADED}": Share(0, 30), "n": Counted(33)})
    assert said == {
        "hung-gil": "With the GIL, 2 of 3 hung, of 33 in all.",
        "hung-free-threaded": "Without the GIL, none hung.",
    }


def test_a_list_of_the_chapter_gives_a_variable_its_values(written, monkeypatch):
    monkeypatch.setitem(sys.modules, "notebooks.c.experiment", SimpleNamespace(TOOLS=("a", "b")))
    text = '["of {tool}"]\nfor.tool = "TOOLS"\nwith = {x = "x"}\ntext = "{tool} {x}"'
    assert written(text, x=AROUND) == {f"of {tool}": f"{tool} 1.00 [0.90, 1.10]" for tool in ("a", "b")}


@pytest.mark.parametrize(
    ("change", "wrong"),
    [
        (('open = "No difference is seen: {value}."', ""), "has no form for 'open'"),
        (("open =", '"open yes" ='), "is no answer to its 1 questions"),
        (('open = "No', '"*" = "x"\nopen = "No'), "never uses its form 'open'"),
        (("{value} times", "{other} times"), "pours in other"),
        (("null = 1.0", "nul = 1.0"), "its kind does not know: nul"),
        (("null = 1.0", 'kind = "guess"'), "asks by a rule that needs a kind"),
        (("null = 1.0", "interest = 0.1"), "a finite number for `null`"),
        (('ask = {number = "x", null = 1.0}', ""), "needs one form, `text`"),
    ],
)
def test_a_wrong_sentence_says_what_is_wrong(written, change, wrong):
    with pytest.raises(UserError, match=rf"c/sentences.toml: the sentence 'dearer' .*{wrong}"):
        written(SIDE.replace(*change), x=ABOVE)


def test_a_translation_is_a_second_file_and_the_rest_stays_english(written, tmp_path, monkeypatch):
    text = f'{SIDE}[other]\nwith = {{x = "x"}}\ntext = "It is {{x}}."'
    (tmp_path / "c" / "sentences.zh_TW.toml").write_text('[dearer]\nyes = "耗時為 {value} 倍。"')
    for language, said in (
        ("zh_TW:en", "耗時為 1.50 [1.40, 1.60] 倍。"),
        ("en:zh_TW", "It takes 1.50 [1.40, 1.60] times as long."),
    ):
        monkeypatch.setenv("LANGUAGE", language)
        assert written(text, x=ABOVE) == {"dearer": said, "other": "It is 1.50 [1.40, 1.60]."}
    monkeypatch.setenv("LANGUAGE", "zh_TW")
    (tmp_path / "c" / "sentences.zh_TW.toml").write_text('[dearer]\nmaybe = "?"')
    with pytest.raises(UserError, match=r"zh_TW.toml: 'dearer' has forms that are none: maybe"):
        written(text, x=ABOVE)


@pytest.mark.parametrize("file", sorted(NOTEBOOKS.glob("*/sentences.*.toml")), ids=lambda file: file.name)
def test_every_translation_is_whole(file, monkeypatch):
    """Each number of a form stands in its translation, too."""
    english = sentences.read_sentences(file.parent.name)
    monkeypatch.setenv("LANGUAGE", file.suffixes[0].strip("."))
    for name, sentence in sentences.read_sentences(file.parent.name).items():
        for answers, form in sentence.forms.items():
            assert set(NUMBERS.findall(form)) == set(NUMBERS.findall(english[name].forms[answers])), (name, answers)


def test_every_form_reads_well(chapter):
    wrong = {
        (name, form): found
        for name, sentence in sentences.read_sentences(chapter).items()
        for form in sentence.forms.values()
        if (found := faults(NUMBERS.sub("7", form), not sentence.part and form[:1].isupper() and form[-1] != "}"))
    }
    assert not wrong


PATTERNS = st.lists(st.sampled_from([YES, NO, OPEN, "*", "-"]), max_size=3).map(tuple)


@given(st.lists(PATTERNS, unique=True), st.tuples(*[st.sampled_from([YES, NO, OPEN, None])] * 3))
def test_the_first_form_that_fits_is_taken(patterns, answers):
    """As regular expressions say it: a letter is an answer, and a space none."""
    letters = "".join(answer[0] if answer else " " for answer in answers)
    written = ["".join({"*": "[yno]", "-": "."}.get(word, word[0]) for word in pattern) for pattern in patterns]
    fitting = [pattern for pattern, expression in zip(patterns, written) if re.match(expression, letters)]
    forms = {pattern: str(pattern) for pattern in patterns}
    assert sentences.Sentence("", (), {}, forms).form(answers) == (forms[fitting[0]] if fitting else None)


INTERVALS = st.tuples(*[st.floats(-9, 9)] * 3).map(sorted).map(lambda ends: Interval(ends[1], ends[0], ends[2]))


@given(INTERVALS, INTERVALS)
def test_an_interval_is_larger_than_another_only_if_it_lies_above_it(one, other):
    answer = questions.larger(one, other)
    assert (answer == YES) == (one.low > other.high)
    assert questions.larger(other, one) == {YES: NO, NO: YES, OPEN: OPEN}[answer]
    assert questions.larger(one, UNKNOWN) is None


def test_a_question_of_code_is_answered_by_its_rule():
    asked = (ABOVE, BELOW, AROUND, UNKNOWN)
    assert [questions.above(one, 1) for one in asked] == [YES, NO, OPEN, OPEN]
    assert [questions.equal(one, 1, 0.2) for one in asked] == [NO, NO, YES, OPEN]
    assert questions.above(Interval(1.5, 1.2, float("inf")), 1) == YES
