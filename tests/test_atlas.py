"""Many machines on one page: the model's numbers on made-up machines of known truth, and the page itself."""

import copy
import csv
import functools
import json
import math
import os
import re

import numpy as np
import pytest

from ffilab.atlas import model, pack, page, tables
from ffilab.judge.estimates import LEVEL, PREDICTION_LEVEL, Interval, Location
from ffilab.page import elsewhere
from ffilab.run.errors import UserError
from ffilab.run.paths import ROOT
from ffilab.setup import environments
from ffilab.setup.catalogue import GIL
from studies import elsewhere as study

GOLDEN = ROOT / "tests" / "golden" / "loaders"
# A claim of that chapter that turns on a ratio, and its number.
CLAIM, NUMBER = "A12", f"getpid: ratio on {GIL}"


@pytest.fixture(scope="module", autouse=True)
def library():
    """What the model needs is in no reader's environment: it comes with the first atlas."""
    try:
        environments.install_extra("statsmodels")
    except UserError as why:
        pytest.skip(str(why))


# ---- the model ----


def measured(rng, truth, layouts=15, scatter=0.03):
    """What a machine says of the logarithm of a ratio whose truth is known: the interval, and the error."""
    found = Location.of(rng.normal(truth, scatter, layouts), log=True)
    return found.interval, found.error


def combined(measurements):
    return model.combined(*zip(*measurements))


def coverage(rng, machines, between, rounds, has_errors=True, scatter=0.03, exact=1, **how):
    """How often the interval of the mean held the mean, and the prediction interval what one machine more measured.

    exact: how many times as exact the first machine is measured."""
    of_mean = of_next = 0
    for _ in range(rounds):
        first, *truths = rng.normal(0.1, between, machines + 1)
        found = [measured(rng, first, scatter=scatter / exact, **how)]
        *others, further = [measured(rng, truth, scatter=scatter, **how) for truth in truths]
        found += others
        said = combined([(interval, error if has_errors else None) for interval, error in found])
        of_mean += not said.mean.excludes(math.exp(0.1))
        of_next += not said.next_machine.excludes(further[0].value)
    return of_mean / rounds, of_next / rounds


@pytest.mark.parametrize("between", [0.01, 0.1])
@pytest.mark.parametrize("has_errors", [True, False])
@pytest.mark.parametrize("exact", [1, 25])
def test_one_machine_more_lies_where_it_is_expected(between, has_errors, exact):
    """Also where machines differ by less than they were measured to, which looks like not at all, and where one of them
    was measured far better than the others."""
    of_mean, of_next = coverage(np.random.default_rng(1), 8, between, 150, has_errors, exact=exact)
    # Three standard errors of a share of 150.
    assert of_mean > LEVEL - 0.035
    assert of_next > PREDICTION_LEVEL - 0.055


@pytest.mark.full
@pytest.mark.parametrize("machines", [3, 5, 10, 30])
@pytest.mark.parametrize("between", [0.005, 0.01, 0.02, 0.2])
@pytest.mark.parametrize("layouts", [5, 18])
@pytest.mark.parametrize("has_errors", [True, False])
def test_the_intervals_hold_as_often_as_they_say(machines, between, layouts, has_errors):
    """Within three standard errors of a share of 400, also of few layouts, where an error is not well known itself."""
    of_mean, of_next = coverage(np.random.default_rng(machines), machines, between, 400, has_errors, layouts=layouts)
    assert of_mean > LEVEL - 0.02
    assert of_next > PREDICTION_LEVEL - 0.033


def test_what_is_put_in_comes_out():
    """Many machines, measured well: the mean, and how much machines differ."""
    rng = np.random.default_rng(2)
    found = combined([measured(rng, truth) for truth in rng.normal(0.3, 0.1, 400)])
    assert math.log(found.mean.value) == pytest.approx(0.3, abs=0.02)
    assert found.between == pytest.approx(0.1, rel=0.1)
    # 95 % of a normal distribution lie within two standard deviations.
    assert math.log(found.next_machine.reach) == pytest.approx(2 * 1.97 * 0.1, rel=0.1)


def test_machines_that_agree_leave_nothing_between_them():
    rng = np.random.default_rng(3)
    machines = [measured(rng, 0.1) for _ in range(40)]
    found = combined(machines)
    # Less than each was measured to.
    assert found.between < min(error for _, error in machines) * 2
    # What is left is hardly more than the error of one more measurement.
    typical = float(np.median([error for _, error in machines]))
    assert 1.9 * typical < math.log(found.next_machine.reach) / 2 < 3 * typical


def test_two_machines_say_nothing_of_a_third():
    one = Interval(1.1, 1.0, 1.2)
    assert model.combined([one, one], [None, None]) is None
    three = [one, Interval(1.2, 1.1, 1.3), one]
    few, more = (model.combined(three * times, [None] * 3 * times) for times in (1, 3))
    assert few.next_machine.reach > more.next_machine.reach


@pytest.mark.parametrize(
    "interval",
    [
        *[(1.0, math.nan, math.nan), (1.0, 1.0, 1.0), (1.0, 0.0, 2.0), (1.0, 0.5, math.inf), (-1.0, -2.0, 3.0)],
        *[(1e-300, 0.9e-300, 1.1e-300), (100.0, 1.0, 2.0)],
    ],
)
def test_what_is_no_ratio_with_an_interval_is_left_out(interval):
    assert not model.has_bounds(Interval(*interval))


# ---- the page ----


@functools.cache
def golden():
    found = pack.sessions(GOLDEN)
    return {"loaders": pack.described(found["loaders"])}, found["loaders"].machine, pack.findings(found["loaders"])


def made(folder, number, ratio=1.2, budget="quick", cpu="a CPU"):
    """A pack of a machine on which the claim's ratio is this one."""
    chapters, machine, rows = copy.deepcopy(golden())
    chapters["loaders"].update(session=f"session{number}", budget=budget)
    about = {
        **{"format": 1, "rules": pack.rules(), "called": "", "machine": {**machine, "cpu": cpu}, "chapters": chapters},
        **{"interpreters": {GIL: {"version": f"{GIL}.7", "route": "source", "config_args": "", "stamp": "s"}}},
    }
    for row in rows:
        if row["id"] == CLAIM:
            row["numbers"][NUMBER], row["interval"][NUMBER] = ratio, [ratio * 0.98, ratio * 1.02]
            row["errors"][NUMBER] = 0.008
            row["parts"] = [part | {"verdict": "yes" if ratio > 1 else "no"} for part in row["parts"]]
            row["verdict"] = "holds" if ratio > 1 else "does not hold"
            row["reason"] = "</td><script>alert(1)</script>\n```\n\n<script>alert(2)</script>"
    inside = folder / f"inside{number}"
    inside.mkdir(parents=True)
    for name, what in ((pack.FACTS, about), (pack.LEDGER, rows)):
        (inside / name).write_text(json.dumps(what))
    path = folder / f"{number}.tar.gz"
    pack.compress(inside, path)
    return path


@pytest.fixture
def five(tmp_path):
    """Five machines; on the last one it is the other way round, and it has a name that is a formula."""
    ratios = (1.2, 1.25, 1.15, 1.22, 0.9)
    return [made(tmp_path, n, ratio, cpu=f"CPU {n} $x^2$" if n == 4 else f"CPU {n}") for n, ratio in enumerate(ratios)]


def atlas_of(paths):
    return tables.Atlas.of([pack.opened(path) for path in paths], [])


def test_the_ratio_of_a_claim_over_machines(five, tmp_path):
    atlas = atlas_of(five)
    (ratio,) = [one for one in tables.ratios(atlas) if one.claim.id == CLAIM]
    assert [one.value for one in ratio.found.values()] == [1.2, 1.25, 1.15, 1.22, 0.9]
    assert list(ratio.points().machine[-2:]) == ["mean", "next machine"]
    row = tables.modelled([ratio]).iloc[0]
    assert row["machines"] == 5
    # One of five on the other side: nothing is certain of the next one.
    assert row["next machine says"] == "open"
    agreeing = atlas_of([*five[:4], made(tmp_path, 5, 1.21, cpu="CPU 5")])
    (ratio,) = [one for one in tables.ratios(agreeing) if one.claim.id == CLAIM]
    assert tables.modelled([ratio]).iloc[0]["next machine says"] == "yes"


def test_machines_that_differ_are_said_to(five):
    said = {claim.id: agrees for claim, _, agrees in tables.claims(atlas_of(five))}
    assert said[CLAIM] == "differ: 4 holds, 1 does not hold"
    assert not [one for one, agrees in said.items() if agrees.startswith("differ") and one != CLAIM]


def test_a_smoke_test_and_what_is_withheld_enter_no_model(tmp_path, five):
    smoke = made(tmp_path, 9, budget="smoke", cpu="CPU 9")
    (ratio,) = [one for one in tables.ratios(atlas_of([*five, smoke])) if one.claim.id == CLAIM]
    assert len(ratio.found) == 5
    held = pack.opened(five[0])
    for row in held.rows.values():
        row["parts"] = [part | {"verdict": "withheld"} for part in row["parts"]]
    (ratio,) = [
        one for one in tables.ratios(tables.Atlas.of([held, *map(pack.opened, five[1:])], [])) if one.claim.id == CLAIM
    ]
    assert len(ratio.found) == 4
    assert ratio.left_out == ["1 CPU 0"]


def test_a_run_counts_once_and_machines_that_look_alike_are_named(tmp_path, five):
    again = made(tmp_path / "again", 0, cpu="CPU 0")
    alike = made(tmp_path / "alike", 7, cpu="CPU 1")
    atlas = atlas_of([*five, again, alike])
    assert len(atlas.packs) == 6
    assert "counts once" in atlas.refused[0]
    # What was measured last counts, also where it has the other among its earlier sessions.
    old, new = map(pack.opened, (five[0], five[1]))
    new.machine["date"] = "9" + new.machine["date"]
    told = new.facts["chapters"]["loaders"]
    told["earlier"] = {"session0": told["date"]}
    assert tables.Atlas.of([old, new], []).packs == [new]
    assert len(atlas.alike) == 1
    assert len(atlas.alike[0]) == 2
    with pytest.raises(UserError, match="no pack to make an atlas of"):
        atlas_of([])


def test_what_no_machine_tested_has_its_reasons(five):
    table = tables.untested(atlas_of(five)).set_index("id")
    assert CLAIM not in table.index
    assert "was not measured" in table.why["B1"]
    groups = tables.groups(atlas_of(five)).set_index(["by", "which"])
    assert groups.loc[("processor", "CPU 0"), "machines"] == 1
    assert groups.loc[("cores", "2"), "machines"] == 5


def test_packs_are_found_in_folders_and_by_name(five, tmp_path, monkeypatch):
    assert page.paths(f"'{tmp_path}'") == [path.resolve() for path in five]
    assert page.paths(f"{five[0]} {five[1]} {five[0]}") == five[:2]
    for text in (f"{tmp_path}/*.tar.gz", f"{tmp_path} {tmp_path}/nobody"):
        with pytest.raises(UserError, match=r"There is no .*: name folders and files \(no \*\), in quotes"):
            page.paths(text)
    for text in ("'x", "~nobody-of-this-name/x", "x" * 5000):
        with pytest.raises(UserError, match="FROM cannot be read"):
            page.paths(text)
    (tmp_path / "empty").mkdir()
    with pytest.raises(UserError, match=r"no pack in .*empty: `make pack` writes one, and its name ends in \.tar\.gz"):
        page.paths(f"{tmp_path}/empty")
    # Of this machine the newest pack alone.
    (tmp_path / "build" / "packs").mkdir(parents=True)
    for number, path in enumerate(five[:2]):
        os.utime(path.rename(tmp_path / "build" / "packs" / path.name), (number, number))
    monkeypatch.setattr(page, "BUILD", tmp_path / "build")
    assert [path.name for path in page.paths("")] == [*[path.name for path in OURS], "1.tar.gz"]


@pytest.mark.parametrize(
    "spoil",
    [
        lambda about, row: row["numbers"].update({NUMBER: 1e-299}),
        lambda about, row: row["interval"].update({NUMBER: [1e-299, 1e299]}),
        lambda about, row: row["interval"].update({NUMBER: [2.0, 1.0]}),
        lambda about, row: row["errors"].update({NUMBER: 1e-200}),
        lambda about, row: row["errors"].update({NUMBER: 1e6}),
        lambda about, row: about["interpreters"][GIL].update(version=""),
    ],
)
def test_what_no_run_says_costs_itself_alone(five, tmp_path, spoil):
    """A pack that is well formed, and says what cannot be: the page is made, and the others are in it."""
    inside = tmp_path / "inside4"
    about, rows = (json.loads((inside / name).read_text()) for name in (pack.FACTS, pack.LEDGER))
    spoil(about, next(row for row in rows if row["id"] == CLAIM))
    for name, what in ((pack.FACTS, about), (pack.LEDGER, rows)):
        (inside / name).write_text(json.dumps(what))
    pack.compress(inside, five[4])
    (tmp_path / "page" / "book" / "_static").mkdir(parents=True)
    atlas = atlas_of(five)
    page.page(atlas, tmp_path / "page")
    (ratio,) = [one for one in tables.ratios(atlas) if one.claim.id == CLAIM]
    assert len(ratio.found) >= 4
    assert math.isfinite(ratio.combined.next_machine.high)


@pytest.fixture(scope="module")
def pressed(tmp_path_factory):
    """The page of five machines and of a pack that is none."""
    folder = tmp_path_factory.mktemp("atlas")
    ratios = (1.2, 1.25, 1.15, 1.22, 0.9)
    for number, ratio in enumerate(ratios):
        made(folder / "packs", number, ratio, cpu=f"CPU {number} $x^2$" if number == 4 else f"CPU {number}")
    for name in ("none", "{{7*7}} none", ":::{warning} none"):
        (folder / "packs" / f"{name}.tar.gz").write_text("<b>none</b>")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(page, "BUILD", folder / "build")
        return page.make(str(folder / "packs"))


def test_the_page(pressed):
    """Jupyter Book took it without a warning; what others wrote is text."""
    text = pressed.read_text()
    assert "An atlas of 5 machines" in text
    assert "differ: 4 holds, 1 does not hold" in text
    assert "none.tar.gz is refused" in text
    assert "{{7*7}} none" in text
    assert ":::{warning} none" in text
    assert "alert(1)" in text
    assert "<script>alert" not in text
    assert "random effects" in text
    figures = re.findall(r'<img class="ffi-light"[^>]* src="([^"]+)"', text)
    assert figures
    assert all((pressed.parent / one).resolve().is_file() for one in figures)
    links = re.findall(r'href="([^"]+\.csv)"', text)
    assert len(links) == 5
    rows = [list(csv.DictReader((pressed.parent / one).read_text().splitlines())) for one in links]
    (everything,) = [table for table in rows if table and "is a result" in table[0]]
    found = {
        row["machine"]: float(row["value"]) for row in everything if row["number"] == NUMBER and row["id"] == CLAIM
    }
    assert list(found.values()) == [1.2, 1.25, 1.15, 1.22, 0.9]


def test_its_tables_are_sorted_by_a_click(pressed, open_tab):
    tab = open_tab(pressed.as_uri())
    table = tab.locator("table[aria-label='Ratios over machines']")
    before = table.locator("tbody td:first-child").all_inner_texts()
    for turned in ("asc", "desc"):
        table.locator("thead th").first.click()
        table.locator(f"th.dt-ordering-{turned}").wait_for()
    after = table.locator("tbody td:first-child").all_inner_texts()
    assert sorted(before) == sorted(after)
    assert after == sorted(before, reverse=True)


OURS = sorted((ROOT / "book" / "machines").glob("*.tar.gz"))


@pytest.mark.parametrize("path", OURS, ids=lambda path: path.name)
def test_our_own_packs_are_small_and_whole(path):
    """They name what they are: the page and a figure show it."""
    assert path.stat().st_size <= 100_000
    found = pack.opened(path)
    assert found.light
    assert found.facts["called"]
    assert len(found.rows) >= 10


def test_our_own_packs_differ():
    packs = [pack.opened(path) for path in OURS]
    assert len(tables.Atlas.of(packs, []).packs) == len(packs) >= 5
    assert len({one.machine["cpu"] for one in packs}) > 1


def test_what_a_page_says_of_other_machines_is_what_their_packs_say():
    assert elsewhere.runs() == study.said_by_packs()
    claim, row = next(item for item in elsewhere.runs().items() if item[1]["said"][0][3] is not None)
    processor, _, verdict, *_ = row["said"][0]
    assert f"{row['number']}: {processor}" in elsewhere.told(claim)
    assert verdict in elsewhere.told(claim)
    assert elsewhere.told("no claim") == ""
