"""Every chapter brings what ffilab/judge/chapter.py says."""

import inspect

from ffilab.judge.chapter import FragmentsModule, WithControls, fragments_module, numbers_module
from ffilab.judge.numbers import Declarations


def takes_a_session(function):
    return list(inspect.signature(function).parameters) == ["session"]


def test_its_numbers_are_declared(chapter):
    assert isinstance(numbers_module(chapter).number, Declarations)


def test_its_controls_and_fragments_are_made_of_a_session(chapter):
    module = numbers_module(chapter)
    assert not isinstance(module, WithControls) or takes_a_session(module.controls)
    fragments = fragments_module(chapter)
    assert fragments is None or (isinstance(fragments, FragmentsModule) and takes_a_session(fragments.fragments))
