"""How long the tests took, and the law for the default suite: a test at most 20 s, all of them at most 12 minutes.

The law is asked where nobody else used the machine, and where the whole default suite ran.
"""

import json
import time

import psutil
import pytest

from ffilab.run.paths import ROOT

TEST_S, SUITE_S = 20, 12 * 60
DEFAULT = "not full"
# Cores that others used on average: above, the machine was not idle.
OTHERS = 0.2
SLOWEST = 15
KEPT = ROOT / "_build" / "results" / "durations.json"


def busy_s() -> float:
    """Seconds of all cores, since the machine started, in which they did anything for anybody."""
    times = psutil.cpu_times()
    return sum(times) - times.idle - getattr(times, "iowait", 0) - getattr(times, "guest", 0)


def ours_s() -> float:
    """Seconds of processor time of this process and of all that it started and that has ended."""
    times = psutil.Process().cpu_times()
    return times.user + times.system + times.children_user + times.children_system


class Durations:
    def __init__(self, config: pytest.Config):
        self.config = config
        self.seconds: dict[str, float] = {}
        self.faults: list[str] = []
        self.started, self.busy, self.ours = time.monotonic(), busy_s(), ours_s()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        # What a fixture of many tests takes is nobody's own; it counts for the suite.
        if report.when == "call":
            self.seconds[report.nodeid] = report.duration

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        suite = time.monotonic() - self.started
        others = max(0.0, busy_s() - self.busy - ours_s() + self.ours) / suite
        KEPT.parent.mkdir(parents=True, exist_ok=True)
        tests = {name: round(seconds, 2) for name, seconds in self.slowest()}
        KEPT.write_text(json.dumps({"suite": round(suite, 1), "others": round(others, 2), "tests": tests}, indent=1))
        if others <= OTHERS and self.is_whole():
            self.faults = faults(suite, self.seconds)
        if self.faults and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter) -> None:
        if self.faults:
            terminalreporter.section("the law of durations")
            slowest = [f"{seconds:6.1f} s  {name}" for name, seconds in self.slowest()[:SLOWEST]]
            terminalreporter.write_line("\n".join([*self.faults, "The slowest:", *slowest]), red=True)

    def is_whole(self) -> bool:
        """Did the whole default suite run?"""
        options = self.config.option
        return options.markexpr == DEFAULT and not options.keyword and not options.file_or_dir

    def slowest(self) -> list[tuple[str, float]]:
        return sorted(self.seconds.items(), key=lambda test: -test[1])


def faults(suite: float, seconds: dict[str, float]) -> list[str]:
    """What the law finds: durations in seconds, of the suite and of each test by name."""
    found = [
        f"{name} took {took:.0f} s: at most {TEST_S} s, or mark it full"
        for name, took in seconds.items()
        if took > TEST_S
    ]
    if suite > SUITE_S:
        found.append(f"The default suite took {suite / 60:.1f} minutes: at most {SUITE_S / 60:.0f}.")
    return found


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--renew", action="store_true", help="write the snapshots of the pages anew (tests/test_snapshots.py)"
    )


def pytest_configure(config: pytest.Config) -> None:
    # Of the processes of pytest-xdist, the one that starts the others hears of all tests.
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Durations(config), "durations of the tests")
