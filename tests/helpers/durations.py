"""The law for the default suite: a test takes at most a minute, all of them at most 20 minutes.

On an idle machine the longest takes 21 s, and all 11 minutes: what meets the limits is a long test that nobody marked,
and no slow hour. It is told where nobody else used the machine and the whole default suite ran. Only our gate, which
sets CI, fails by it: a slow machine has no faulty tests.
"""

import os
import time

import psutil
import pytest

TEST_S, SUITE_S = 60, 20 * 60
# Cores that others used on average: above, the machine was not idle.
OTHERS = 0.2


def others_s() -> float:
    """Seconds of all cores, since the machine started, for others than this process and what it started and has
    ended."""
    times, ours = psutil.cpu_times(), psutil.Process().cpu_times()
    idle = times.idle + getattr(times, "iowait", 0) + getattr(times, "guest", 0)
    return sum(times) - idle - ours.user - ours.system - ours.children_user - ours.children_system


class Durations:
    def __init__(self, config: pytest.Config):
        self.option, self.faults = config.option, []
        self.started, self.others = time.monotonic(), others_s()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        # What a fixture of many tests takes is nobody's own; it counts for the suite.
        if report.when == "call" and report.duration > TEST_S:
            self.faults.append(f"{report.nodeid} took {report.duration:.0f} s: at most {TEST_S} s, or mark it full")

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        suite = time.monotonic() - self.started
        is_whole = self.option.markexpr == "not full" and not self.option.keyword and not self.option.file_or_dir
        if suite > SUITE_S:
            self.faults.append(f"The default suite took {suite / 60:.1f} minutes: at most {SUITE_S / 60:.0f}.")
        if not is_whole or others_s() - self.others > OTHERS * suite:
            self.faults.clear()
        if self.faults and os.environ.get("CI") and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    @pytest.hookimpl(trylast=True)
    def pytest_terminal_summary(self, terminalreporter) -> None:
        # Behind the list of durations: whoever reads the end of a log sees why it failed.
        for fault in self.faults:
            terminalreporter.write_line(fault, red=True)


def pytest_configure(config: pytest.Config) -> None:
    # Of the processes of pytest-xdist, the one that starts the others hears of all tests.
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Durations(config), "durations of the tests")
