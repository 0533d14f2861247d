"""The page of the long studies, in all its forms."""

import json

import pytest

from ffilab.page import evidence

MACHINE = {"cpu": "a processor", "cores": 2, "date": "a day", "commit": "abc"}


def covered(name, over, build, binary):
    widths = {"over_layouts": 0.02, "next_build": 0.08, "this_binary": 0.004}
    shares = {"over_layouts": over, "next_build": build, "this_binary": binary}
    return {"ratio": name, "builds": 3, "sessions": 12, **shares, "half_widths": widths, "machine": MACHINE}


def scattered(name, layout, restart, p, times):
    levels = {"layout": [layout, 0.0, 2 * layout], "restart": [restart, restart / 2, 2 * restart]}
    return {
        "ratio": name,
        "levels": levels,
        "copies": {"sd": 0.0, "p": p},
        "restarts_a_layout": times,
        "half_widths": {"20": 0.02, "110": 0.01},
        "cost": {"link_s": 0.5, "restart_s": 0.6},
        "design": {"builds": 3, "layouts": 8, "sessions": 4, "restarts": 2},
        "differences": {"objects": 195, "differ": ["ceval.o"]},
        "machine": MACHINE,
    }


def test_each_kind_of_interval_is_held_to_what_it_did():
    page = evidence.coverage_page([], [], [covered("a / b", 0.95, 0.96, 0.1), covered("c / d", 0.85, 0.94, 0.3)], [])
    assert "*Over layouts*: 90% on average; 90% or more for 1 of 2 ratios." in page
    assert "*The next build*: 95% on average; 90% or more for 2 of 2 ratios." in page
    assert "*One binary*: 20% on average; 90% or more for 0 of 2 ratios." in page
    assert "| a / b | 95% | ±2.00% | 96% | ±8.00% | 10% | ±0.40% |" in page
    assert "levels was not run yet" in page
    assert "Something else ran on the core" not in page


def test_how_much_company_the_core_had_is_said():
    seen = [{"company": 0.1}, {"company": 0.75}]
    page = evidence.coverage_page([], [], [covered("a / b", 0.95, 0.96, 0.1) | {"seen": seen, "honest": 0.923}], [])
    assert "an honest interval over layouts would hold 92%" in page
    assert "Something else ran on the core in 10% to 75% of a session's work" in page


@pytest.mark.parametrize(("p", "words"), [(0.5, "differed for 0 of 2 ratios"), (0.0001, "differed for 1 of 2 ratios")])
def test_levels_name_the_largest_and_the_control(p, words):
    rows = [scattered("a / b", 0.02, 0.01, p, 0.7), scattered("c / d", 0.0, 0.03, 0.5, float("inf"))]
    page = evidence.coverage_page([], [], [], rows)
    assert "No fresh session was measured yet" in page
    assert "layout for 1 of 2 ratios, restart for 1 of 2 ratios" in page
    assert words in page
    assert "1 of 195 object files" in page
    assert "| c / d | 0.00 [0.00, 0.00] | 3.00 [1.50, 6.00] | many | ±2.00% | ±1.00% |" in page


def test_what_was_not_run_is_said_and_nothing_else(tmp_path, monkeypatch):
    monkeypatch.setattr(evidence, "FOLDER", tmp_path)
    assert evidence.kept_evidence("coverage") == []
    (tmp_path / "coverage.json").write_text(json.dumps([covered("a / b", 1, 1, 1)]))
    assert evidence.kept_evidence("coverage")[0]["ratio"] == "a / b"
    page = evidence.coverage_page([], [], [], [])
    assert ("No fresh session" in page, "They are not here." in page, "levels was not run yet" in page) == (True,) * 3
    assert "|" not in page
