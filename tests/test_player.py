"""The player of recorded runs: scenes from records, and the script in a browser."""

import json
import re
import shutil

import pytest

from ffilab.page import draw, player
from ffilab.page.player import HAS, OVER, REQUEST, STILL, WAITS
from ffilab.run.paths import ROOT
from ffilab.setup.catalogue import FREE_THREADED, GIL
from notebooks.convoy import playback as convoy
from notebooks.critical_sections import playback as critical_sections
from notebooks.loaders import playback as loaders
from tests.helpers.of_chapter import Golden
from tests.helpers.prose import faults

MS = 1_000_000
SERVED = [
    ("client", REQUEST, 0, 6 * MS),
    ("server", WAITS, 1 * MS, 6 * MS),
    ("server", OVER, 5 * MS, 5 * MS),
    ("server", HAS, 6 * MS, 6 * MS),
    ("CPU thread", HAS, 0, 6 * MS),
    ("CPU thread", STILL, 6 * MS, 7 * MS),
    ("CPU thread", HAS, 7 * MS, 10 * MS),
]
SHORT = [(lane, state, begin // 10, end // 10) for lane, state, begin, end in SERVED]
SCENES = {("5 ms", "1"): SERVED, ("1 ms", "1"): SHORT, ("5 ms", "2"): SERVED}


def test_a_thread_waits_where_another_one_is_known_to_have_the_gil():
    gaps = {"a": [(10, 20), (30, 32), (40, 50)], "b": [(0, 12), (18, 100)]}
    rows = player.threads(gaps, 5, 60, noted=[45], longer=1)
    assert ("a", HAS, 0, 5) in rows
    of = {lane: sorted(row[2:] + row[1:2] for row in rows if row[0] == lane and row[1] != HAS) for lane in gaps}
    assert of["a"] == [(5, 15, WAITS), (25, 27, STILL), (35, 45, WAITS)]
    assert of["b"] == [(0, 7, WAITS), (13, 55, WAITS)]
    assert [row[2:] for row in rows if row[:2] == ("b", HAS)] == [(7, 13)]
    assert player.interval_over(rows, 9) == [("a", OVER, 14, 14), ("a", OVER, 44, 44), ("b", OVER, 22, 22)]
    # Where nobody has a GIL nobody waits for it.
    assert {row[1] for row in player.threads(gaps, 5, 60, running=player.RUNS, longer=1)} == {player.RUNS, STILL}


def longest(scene, lane, state):
    return max((end - begin for one, what, begin, end in scene if (one, what) == (lane, state)), default=0) / MS


def test_the_convoy_is_played_as_it_was_recorded():
    found = convoy.scenes(Golden("convoy").frame("turns"))
    assert convoy.FIRST in found
    intervals = {"10 ms": 10, "5 ms": 5, "1 ms": 1, "100 µs": 0.1}
    assert {key[0] for key in found} == set(intervals)
    for (interval, beside), scene in found.items():
        # A slow one has fewer.
        assert 1 <= len([row for row in scene if row[1] == REQUEST]) <= convoy.REQUESTS
        assert longest(scene, "server", WAITS) > intervals[interval] * 0.9
        assert len({row[0] for row in scene if row[0].startswith("CPU")}) == int(beside[0])
        assert all(0 <= begin <= end for _, _, begin, end in scene)
    assert not faults(convoy.alt_text(found), sentence=True)
    assert not faults(convoy.alt_text({}), sentence=True)


def test_a_call_is_played_from_its_recorded_durations():
    counted = Golden("loaders").frame("counting thread")
    found = loaders.scenes(counted)
    assert longest(found[GIL, "PyDLL"], loaders.COUNTING, WAITS) > loaders.SLEEP_MS
    assert longest(found[GIL, "CDLL"], loaders.COUNTING, WAITS) == 0
    assert longest(found[GIL, "CDLL"], loaders.MAIN, WAITS) > 1
    assert {row[1] for row in found[FREE_THREADED, "PyDLL"]} == {player.RUNS}
    for frame in (counted, counted[:0]):
        assert not faults(loaders.alt_text(frame), sentence=True)


def test_two_threads_and_a_list_are_played_as_they_were_recorded():
    noted = Golden("critical_sections").frame("turns")
    found = critical_sections.scenes(noted)
    assert len(found) == 4
    for (label, _), scene in found.items():
        assert (HAS in {row[1] for row in scene}) == (label == GIL)
    for frame in (noted, noted[:0]):
        assert not faults(critical_sections.alt_text(frame), sentence=True)


@pytest.fixture
def page(displayed, tmp_path):
    """A page with a player, as its cell displays it."""
    draw.player(SCENES, ("switch interval", "threads"), "A server <waits>. Two lanes.", first=("5 ms", "1"))
    shutil.copytree(ROOT / "book" / "_static", tmp_path / "_static")
    path = tmp_path / "page.html"
    head = '<meta charset="utf-8"><title>x</title><link rel="stylesheet" href="_static/player.css">'
    script = '<script src="_static/player.js"></script>'
    path.write_text(f'<!doctype html><html lang="en">{head}<body>{displayed[0][0].data}{script}</body></html>')
    return path


def test_a_cell_holds_scenes_and_a_picture(page):
    text = page.read_text()
    data = json.loads(re.search(r'<script type="application/json">(.*?)</script>', text, re.S)[1])
    assert data["settings"] == [["switch interval", ["5 ms", "1 ms"]], ["threads", ["1", "2"]]]
    lane, state, begin, end = data["scenes"]["5 ms|1"][1]
    assert data["lanes"][lane] == "server"
    assert data["states"][state] == [WAITS, "waits"]
    assert [begin, end] == [1000, 6000]
    assert text.count('alt="A server &lt;waits&gt;. Two lanes."') == 2
    assert "<figcaption>A server &lt;waits&gt;. Two lanes.</figcaption>" in text


def said(tab):
    return tab.text_content(".ffi-player-said")


@pytest.mark.full
def test_settings_time_and_events_are_chosen_and_the_address_says_which(page, open_tab):
    tab = open_tab(page.as_uri())
    assert tab.locator("figure img").count() == 0
    assert said(tab) == "0.000 ms. client: request; server: nothing noted; CPU thread: has the GIL."
    tab.get_by_label("On to the next event").click()
    assert said(tab).startswith("1.000 ms. client: request; server: waits for the GIL;")
    for _ in range(2):
        tab.keyboard.press("Enter")
    assert said(tab) == "6.000 ms. client: nothing noted; server: has the GIL; CPU thread: does not run."
    assert tab.url.endswith("#gil=5-ms,1,6000")
    tab.get_by_label("Back to the event before").click()
    assert "a switch interval is over" in said(tab)
    assert "5.000 ms" in tab.get_attribute("svg", "aria-label")
    tab.locator("select").first.select_option("1 ms")
    assert tab.url.endswith("#gil=1-ms,1,0")
    # Not measured together: what was just chosen decides.
    tab.locator("select").last.select_option("2")
    assert tab.locator("select").first.input_value() == "5 ms"
    tab.get_by_label("Time", exact=True).press("End")
    assert said(tab).startswith("10.000 ms.")
    other = open_tab(f"{page.as_uri()}#gil=1-ms,1,600")
    other.wait_for_function("document.querySelector('.ffi-player-said').textContent.startsWith('0.600 ms')")
    assert other.locator("select").first.input_value() == "1 ms"


@pytest.mark.full
@pytest.mark.parametrize("motion", ["no-preference", "reduce"])
def test_it_plays_and_pauses(page, open_tab, motion):
    tab = open_tab(page.as_uri(), reduced_motion=motion)
    tab.get_by_role("button", name="Play").click()
    tab.wait_for_function("!document.querySelector('.ffi-player-said').textContent.startsWith('0.000')")
    tab.get_by_role("button", name="Pause").click()
    at = float(said(tab).split()[0])
    assert at > 0
    assert (at in (1, 5, 6, 7, 10)) or motion == "no-preference"
    assert float(tab.evaluate("location.hash.split(',').pop()")) == pytest.approx(1000 * at, abs=1)
    tab.wait_for_timeout(200)
    assert said(tab).startswith(f"{at:.3f}")


@pytest.mark.full
def test_without_javascript_the_picture_is_seen(page, open_tab):
    tab = open_tab(page.as_uri(), java_script_enabled=False)
    assert tab.locator("figure img.ffi-light").is_visible()
    assert tab.locator("button, select").count() == 0
