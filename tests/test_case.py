"""Programs within limits: what they get, and that nothing of ours runs between the start and the program."""

import json
import subprocess
import sys

import pytest

from ffilab.measure import case

# The limits are set from outside, a moment after the start.
WAITS = (
    "import json, resource, time\n"
    "until = time.monotonic() + 20\n"
    "while (found := resource.getrlimit(resource.{name})[0]) != {value} and time.monotonic() < until: "
    "time.sleep(0.01)\n"
    "print(json.dumps(found))\n"
)


@pytest.mark.skipif(sys.platform != "linux", reason="limits are set from outside, on Linux only")
@pytest.mark.parametrize(("name", "value"), [("RLIMIT_AS", 3 << 30), ("RLIMIT_CORE", 0)])
def test_a_program_has_limits(name, value):
    said = case.program([sys.executable, "-c", WAITS.format(name=name, value=value)], memory_bytes=3 << 30)
    assert (said[0], json.loads(said[1])) == ("ok", value), said


def test_a_program_that_eats_memory_is_told_that_there_is_none():
    code = WAITS.format(name="RLIMIT_AS", value=1 << 30) + "bytearray(2 << 30)"
    ended, _, err = case.program([sys.executable, "-c", code], memory_bytes=1 << 30)
    assert ended == "exit code 1"
    assert "MemoryError" in err


def test_limits_on_what_has_ended_are_no_error():
    process = subprocess.Popen(["true"])
    process.wait()
    case._limit(process.pid, 1 << 30)
