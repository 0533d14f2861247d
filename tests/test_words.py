"""Every sentence that a run chooses says three things: what was found, the opposite, and that it cannot be told here."""

import importlib
import inspect
from itertools import combinations
from pathlib import Path

import pytest

from ffilab.judge.claims import corners
from tests.prose import NO_SENTENCE, faults

HERE = Path(__file__).with_name("words")
FORMS = {"agrees", "contradicts", "undecided"}
WITH_WORDS = corners()


def functions(corner):
    """The sentences of a corner: the public functions of its words.py."""
    module = importlib.import_module(f"notebooks.{corner}.words")
    return {
        name: found
        for name, found in inspect.getmembers(module, inspect.isfunction)
        if found.__module__ == module.__name__ and not name.startswith("_")
    }


def cases(corner):
    return importlib.import_module(f"tests.words.{corner}").CASES


ALL = [(corner, name) for corner in WITH_WORDS for name in functions(corner)]


@pytest.mark.parametrize("corner", WITH_WORDS)
def test_each_sentence_has_data_that_agree_contradict_and_leave_it_open(corner):
    known = cases(corner)
    assert set(known) == set(functions(corner))
    assert not [name for name, forms in known.items() if set(forms) < FORMS]


@pytest.mark.parametrize(("corner", "name"), ALL)
def test_a_sentence_says_something_else_of_other_data_and_reads_well(corner, name):
    sentence, forms = functions(corner)[name], cases(corner)[name]
    said = {form: sentence(*given) for form, given in forms.items()}
    assert all(isinstance(text, str) for text in said.values())
    for one, other in combinations(sorted(FORMS), 2):
        assert said[one] != said[other], (one, other)
    wrong = {form: found for form, text in said.items() if (found := faults(text, not name.endswith(NO_SENTENCE)))}
    assert not wrong, (wrong, said)


def test_faults_are_found():
    assert faults("The The ledger.") == ["a word twice"]
    assert faults("It is *str in* less.") == ["markup that is not rendered"]
    assert faults("It takes 0.814 [0.814, 0.814].") == ["an interval without width"]
    assert faults("It is 0.577 times as fast.") == ["a factor below 1 as speed"]
    assert faults("not measured here and not measured here") == ["the same reason twice"]
    assert faults("a ratio of nan", sentence=True) == ["a number that is none", "no whole sentence"]
    assert faults("About 2e-65.") == ["an exponent"]
    assert faults("", sentence=True) == ["nothing is said"]
    assert faults("Here it takes 1.5 ns [1.4, 1.6].", sentence=True) == []
