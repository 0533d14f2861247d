#!/usr/bin/env python3
"""The Debian packages of everything that `make doctor` calls needed, on one line: README's line. Standard library only."""

import json
from pathlib import Path

KNOWN = json.loads((Path(__file__).resolve().parents[1] / "ffilab" / "doctor.json").read_text(encoding="utf-8"))


def needed() -> list[str]:
    """Names of packages: of the tools that are needed, and of all headers, as interpreters are compiled."""
    entries = [tool for tool in KNOWN["tools"].values() if tool[0]] + list(KNOWN["headers"].values())
    return list(dict.fromkeys(package for entry in entries for package in entry[-1]["apt"].split()))


if __name__ == "__main__":
    print(*needed())
