"""What is withheld is one number, by what it was made from: beside real load, and on biased records."""

import dataclasses
import math

import pytest

from ffilab.judge import claims, controls, ledger, numbers, verdicts
from ffilab.judge.controls import Check
from ffilab.judge.rules import KINDS, NO, YES, Event
from ffilab.measure.reading import Reading
from ffilab.measure.session import Measuring
from ffilab.run.budget import BUDGETS
from ffilab.setup.catalogue import GIL
from notebooks.convoy import experiment as convoy
from tests.helpers.changed_records import beside_load
from tests.helpers.of_chapter import GOLDEN, Golden


@pytest.mark.full
@pytest.mark.usefixtures("busy_machine", "quiet_progress")
def test_servers_beside_load_stay_disturbed():
    """With and without a CPU thread in them. Calls beside burners: tests/faults/test_cores.py."""
    session = Measuring("convoy", [GIL])
    cases = [convoy.serving(GIL, convoy.LOADS[name], convoy.FURTHER_ORDER, name) for name in convoy.ON_EVERY_BUILD]
    session.run("echo server", cases, BUDGETS["quick"].repeats)
    session.close()
    checks = controls.settled(controls.checks(session))
    mostly = {check.source for check in checks if check.bias == math.inf and not check.passed}
    # What else runs beside the tests may disturb the run as a whole, which has no name.
    assert mostly - {""} == {"echo server"}


def resting(chapter, on):
    """The numbers of a chapter's golden records, as if each rested on what `on` says of its name."""
    found = numbers.numbers_of(Golden(chapter))
    tests = [test.number for claim in claims.declared(chapter).claims for test in claim.tests]
    found._made = {name: dataclasses.replace(found[name], rests_on=frozenset(on(name))) for name in tests}
    return found


def withheld(given, *checks):
    """Ids and keys that are withheld."""
    return {(claim, key) for claim, keys in controls.withheld(list(checks), given).items() for key in keys}


def test_a_failed_control_of_a_plan_that_no_claim_reads_withholds_nothing():
    given = numbers.numbers_of(Golden("boundary"))
    assert withheld(given, Check("A/A", "twins", "1.5", False, source="no claim reads it")) == set()
    assert withheld(given, Check("shown only", "twins", "1.5", False)) == set()
    assert withheld(given, Check("A/A", "twins", "1.0", True, source="claims")) == set()


def test_a_failed_control_withholds_the_numbers_of_its_plan_and_no_others():
    given = resting("loaders", lambda name: {"calls"} if "ratio" in name else {"counting thread"})
    found = withheld(given, Check("A/A", "twins", "1.5", False, source="calls", bias=0.5, log=True))
    assert {claim for claim, _ in found} & {"A12", "A12b", "A13", "A14"} == {"A12", "A12b"}
    found = withheld(given, Check("disturbed", "x", "", False, source="counting thread"))
    assert {claim for claim, _ in found} == {"A13", "A14"}


@pytest.mark.parametrize(("part", "is_withheld"), [(0.4, False), (0.6, True)])
def test_a_bias_below_half_of_the_interest_withholds_nothing(part, is_withheld):
    (claim,) = (claim for claim in claims.declared("loaders").claims if claim.id == "A12")
    rule = next(rule for rule in claim.tests if rule.key == rule.number)
    given = resting("loaders", lambda name: {"calls"} if name == rule.number else set())
    check = Check(
        "A/A", "twins", "1.0", False, source="calls", bias=part * abs(math.log(rule.bound / rule.null)), log=True
    )
    assert (("A12", rule.key) in withheld(given, check)) == is_withheld


def test_an_update_that_was_lost_is_given_beside_any_load(tmp_path):
    races_beside_load = Reading("races", beside_load(GOLDEN / "races", tmp_path / "races"))
    rows = ledger.judged(races_beside_load)
    quiet = {row["id"]: row for row in ledger.judged(Golden("races"))}
    seen = 0
    for row in rows:
        for part, calm in zip(row["parts"], quiet[row["id"]]["parts"], strict=True):
            if issubclass(KINDS[part["kind"]], Event) and row["numbers"][part["number"]] > 0:
                assert part["verdict"] == calm["verdict"] in (YES, NO)
                seen += 1
            else:
                # None that was seen may have been hidden, and what was estimated may be off.
                assert part["verdict"] == verdicts.WITHHELD, part
                assert "disturbed" in part["reason"]
    assert seen >= 3
    # A sentence on the page has a form for it: what is withheld is open there.
    assert verdicts.WITHHELD not in ledger.sides(races_beside_load).values()
    assert "withheld: disturbed" in {answer.reason[:19] for answer in ledger.answers(races_beside_load).values()}
