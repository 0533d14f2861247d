"""Sentences whose `no` has several reasons: of made-up numbers, each says what its numbers say."""

import re

import pytest

from ffilab.judge.estimates import Interval
from tests.helpers.made_claims import said_of


def about(value, width=0.02):
    return Interval(value, value * (1 - width), value * (1 + width))


TWO = "{name}: two threads / one on {{FREE_THREADED}}"
DICT = TWO.format(name="dict, one object")
CTYPES, FROM_C = (TWO.format(name=f"ctypes, {call}") for call in ("int → int", "→ int"))
OWN = TWO.format(name="ctypes, → int, a type for each")
BOTH = {"detach and attach, alone: {GIL}": about(43.0), "detach and attach, alone: {FREE_THREADED}": about(31.0)}
BOTH |= {f"noop: what CDLL costs more on {build}": about(42.0) for build in ("{GIL}", "{FREE_THREADED}")}
SHARE, SHARE_FREE = (f"detach and attach / what CDLL costs more: {build}" for build in ("{GIL}", "{FREE_THREADED}"))
MISS, MISS_FREE = (f"miss of noop's ratio / what is allowed: {build}" for build in ("{GIL}", "{FREE_THREADED}"))
GAIN, GAIN_GETPID = (f"{name}: ratio on {{GIL}} / on {{FREE_THREADED}}" for name in ("noop", "getpid"))
MUTEX = "pthread mutex / pthread mutex, no thread was ever started"


@pytest.mark.parametrize(
    ("chapter", "name", "found", "expected"),
    [
        ("critical_sections", "prediction-2", {DICT: about(0.6)}, "No: one thread alone does 1.67 times"),
        ("critical_sections", "prediction-2", {DICT: about(1.0)}, "No: two threads do 1.00 times"),
        ("critical_sections", "prediction-2", {DICT: about(1.1)}, "No: two threads do 1.10 times.*not a fifth more"),
        ("critical_sections", "prediction-2", {DICT: about(1.2)}, "Yes, a little at least"),
        ("critical_sections", "prediction-2", {DICT: about(1.9)}, "Yes: two threads do 1.9"),
        ("critical_sections", "prediction-2", {DICT: about(1.1, 0.3)}, "too close to call"),
        ("critical_sections", "ctypes-apart", {CTYPES: about(0.6)}, "slows calls through ctypes down"),
        ("critical_sections", "ctypes-apart", {CTYPES: about(1.1)}, "hardly speeds .* 1.10 times"),
        ("critical_sections", "ctypes-apart", {CTYPES: about(1.9)}, "speeds calls through ctypes up: .* 1.9 times"),
        (
            "critical_sections",
            "ctypes-apart",
            {CTYPES: about(1.0), FROM_C: about(0.9), OWN: about(0.5)},
            "They do not meet at the type",
        ),
        ("critical_sections", "no-thread", {MUTEX: about(0.8)}, "the first thread makes it no slower"),
        ("critical_sections", "no-thread", {MUTEX: about(3.0)}, "no price for a program with threads"),
        (
            "loaders",
            "cycle",
            {SHARE: about(1.0), SHARE_FREE: about(3.0)},
            "so explains it.* does not explain it.* open",
        ),
        (
            "loaders",
            "cycle",
            {SHARE: about(1.1), SHARE_FREE: about(0.9)},
            "so explains it; .* so explains it.$",
        ),
        ("loaders", "cycle", {SHARE: about(0.5), SHARE_FREE: about(1.25)}, "takes less .*; .* too close to call"),
        ("loaders", "carry-ratio", {MISS: about(0.5), MISS_FREE: about(3.0)}, "with the GIL alone"),
        ("loaders", "gain", {GAIN: about(0.5), GAIN_GETPID: about(1.1)}, "without the GIL for noop, and with it for"),
    ],
)
def test_a_form_says_what_its_numbers_say(monkeypatch, chapter, name, found, expected):
    further = BOTH if chapter == "loaders" else {}
    assert re.search(expected, said_of(monkeypatch, chapter, further | found)[name])
