"""The appendix on faults: every test stands in the kept table and the other way round, and all passed."""

import ast
import json
import re
import tempfile
from collections import Counter
from pathlib import Path

import pytest

from ffilab.errors import UserError
from ffilab.paths import ROOT, without_paths
from ffilab.press import faults

HERE = Path(__file__).parent


def marked() -> set[str]:
    """File and function of every test that is a fault."""
    found = set()
    for path in HERE.glob("test_*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef) and any(
                "mark.fault(" in ast.unparse(one) for one in node.decorator_list
            ):
                found.add(f"{path.stem}/{node.name}".replace("test_", ""))
    return found


def test_the_kept_table_is_that_of_the_tests():
    if not faults.read():
        pytest.skip(f"no faults are kept: {faults.COMMAND}")
    rows = faults.read()["faults"]
    assert {re.sub(r"\[.*", "", row["id"], flags=re.S) for row in rows} == marked()
    assert all(row["passed"] for row in rows)
    assert all(row["seen"] for row in rows)
    assert max(Counter(row["id"] for row in rows).values()) == 1


def test_a_fault_that_failed_is_not_kept(tmp_path):
    row = {"id": "x/y", "area": "runs", "fault": "a", "expected": "b", "seen": "c", "passed": False}
    (tmp_path / "fresh.json").write_text(json.dumps([row]))
    with pytest.raises(UserError, match="x/y"):
        faults.keep(tmp_path / "fresh.json", tmp_path / "kept.json")
    assert not (tmp_path / "kept.json").exists()


def test_what_is_kept_names_no_folder_of_this_machine():
    assert without_paths(f"{ROOT}/a, {Path.home()}/b, {tempfile.gettempdir()}/c") == "a, ~/b, TEMPORARY"
    kept = faults.KEPT.read_text()
    assert not [folder for folder in (str(ROOT), str(Path.home()), tempfile.gettempdir()) if f"{folder}/" in kept]


def test_what_was_seen_stands_as_text():
    row = {
        "id": "x/y",
        "area": "runs",
        "fault": "a | b",
        "expected": "<b>",
        "seen": "{raw}`x`\n:::{raw} html",
        "passed": True,
    }
    text = faults.page({"date": "d", "commit": "c", "command": "x", "faults": [row]})
    assert r"| a \| b | \<b\> |" in text
    assert "\n:::" not in text
