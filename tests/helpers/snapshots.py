"""What is kept letter by letter: a text is held to its file under tests/snapshots, and `--renew` writes it anew."""

import difflib
from pathlib import Path

import pytest

SNAPSHOTS = Path(__file__).parents[1] / "snapshots"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--renew", action="store_true", help="write what is kept under tests/snapshots anew")


@pytest.fixture
def held(request):
    """A function of a file's name under tests/snapshots and a text: fails where they differ."""

    def hold(name: str, shown: str) -> None:
        file = SNAPSHOTS / name
        if request.config.getoption("--renew"):
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(shown)
        before, now = file.read_text().splitlines(), shown.splitlines()
        changes = list(difflib.unified_diff(before, now, "kept", "now", n=1, lineterm=""))
        renew = f"python3 ffilab/bootstrap.py test tests/{request.path.name} --renew"
        meant = f"If this is meant, run `{renew}`, and say why in the commit."
        assert not changes, "\n".join([*changes[:60], meant])

    return hold
