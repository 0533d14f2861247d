"""The whole project under faults. Each test here is one fault: what is done, in which area, and what is expected.

    @pytest.mark.fault("records", "the last line is cut off", "said; what was whole is read")
    def test_cut_off(seen): ...
        seen("UserError: …")

What was seen and whether it passed is written to `_build/results/faults.json`, a list of objects with id, area, fault,
expected, seen and passed, from which the appendix of the book is made (ffilab/press/faults.py).
"""

import json
import os
from pathlib import Path

import pytest

from ffilab.paths import RESULTS

# The tests have a _build of their own, which goes with them; FFILAB_FAULTS names a file that stays.
FILE = Path(os.environ.get("FFILAB_FAULTS") or RESULTS / "faults.json").absolute()
AREAS = ("provisioning", "runs", "measuring", "records", "press", "input", "supply chain", "interpreters", "afterwards")
FIELDS = ("id", "area", "fault", "expected", "seen", "passed")
_found: dict[str, dict] = {}


@pytest.fixture
def seen(request):
    """Say what was seen, in a few words: it stands in the appendix."""
    return lambda text: request.node.user_properties.append(("seen", " ".join(str(text).split())))


def pytest_collection_modifyitems(items):
    for item in items:
        if "faults/" in item.nodeid and (marker := item.get_closest_marker("fault")):
            assert marker.args[0] in AREAS, f"{item.nodeid}: {marker.args[0]} is no area of {AREAS}"


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    report = (yield).get_result()
    marker = item.get_closest_marker("fault")
    if marker is None or not (report.when == "call" or report.failed):
        return
    area, fault, expected = marker.args
    if callspec := getattr(item, "callspec", None):
        fault = fault.format(**callspec.params)
    seen = "; ".join(text for name, text in item.user_properties if name == "seen")
    identifier = item.nodeid.partition("faults/")[2].replace("test_", "").replace(".py::", "/")
    _found[identifier] = dict(zip(FIELDS, (identifier, area, fault, expected, seen, report.passed)))


def pytest_sessionfinish():
    """Faults that were tried now replace what is known of them; the others stay."""
    if not _found:
        return
    known = {one["id"]: one for one in json.loads(FILE.read_text())} if FILE.exists() else {}
    FILE.parent.mkdir(parents=True, exist_ok=True)
    FILE.write_text(json.dumps([*({**known, **_found}.values())], indent=1))
