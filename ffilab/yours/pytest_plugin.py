"""A plugin of pytest: the fixture `ffilab` compares two statements, `--ffilab-against` the benchmarks of a folder with
the same in another environment. Ratios stand at the end of the report."""

import sys
from pathlib import Path

import pytest

PROPERTY = "ffilab"


def judged(node: pytest.Item, arms: list, pythons: list, limit: str, seconds: float, **further):
    """Compare arms, note in the report what was found, and fail if one certainly takes longer than the first by more
    than this share; return the `Result`."""
    # Not at the top: a test run that compares nothing does not wait for it.
    from ffilab.run.errors import UserError
    from ffilab.yours.command import SHARE
    from ffilab.yours.comparing import compare

    try:
        share = SHARE.convert(limit, None, None)
        result = compare(arms, pythons, to=share / 2, seconds=seconds, quiet=True, **further)
    except UserError as error:
        pytest.fail(str(error), pytrace=False)
    said = result.gate(share)
    told = " ".join([said, *(result.sentence(name) for name in result.ratios)])
    node.user_properties.append((PROPERTY, told))
    if "yes" in result.slower(share).values():
        pytest.fail(f"{said}\n\n{result}", pytrace=False)
    return result


class Comparison:
    """What a test asks of two statements."""

    def __init__(self, request: pytest.FixtureRequest):
        self._request = request

    def not_slower(self, old: str, new: str, limit: str = "2%", *, setup: str = "", seconds: float = 20.0, **further):
        """Fail if `new` certainly takes longer than `old` by more than this share; return the `Result`.

        Statements and setup may name functions, modules and plain values of the test's module. What the run cannot
        tell is no failure: the report says that it is open. further: as of `compare`.
        """
        from ffilab.measure.plan import Arm
        from ffilab.run.errors import UserError
        from ffilab.yours import comparing
        from ffilab.yours.uses import uses_of

        # Modules beside the test are found as pytest finds them.
        uses = comparing.HERE.format(str(Path(self._request.path).parent))
        try:
            uses += uses_of([old, new], setup, vars(self._request.module))
        except UserError as error:
            pytest.fail(str(error), pytrace=False)
        arms = [Arm(comparing.short(statement), statement, setup, uses) for statement in (old, new)]
        return judged(self._request.node, arms, [], limit, seconds, **further)


@pytest.fixture
def ffilab(request):
    """Compare the speed of two statements: `ffilab.not_slower("old()", "new()", limit="2%")`."""
    return Comparison(request)


class Benchmarks(pytest.File):
    """The functions `bench_…()` of a file."""

    def collect(self):
        from ffilab.run.errors import UserError
        from ffilab.yours.benchmarks import arms_of

        try:
            arms = arms_of((), "", str(self.path), ())
        except UserError as error:
            raise self.CollectError(str(error)) from None
        for arm in arms:
            yield Benchmark.from_parent(self, name=arm.name, arm=arm)


class Benchmark(pytest.Item):
    """One of them here, against the same in the other environment."""

    def __init__(self, *, arm, **further):
        super().__init__(**further)
        self._arm = arm

    def runtest(self):
        options = self.config.option
        judged(self, [self._arm], [options.ffilab_against, sys.executable], options.ffilab_limit, seconds=20.0)

    def reportinfo(self):
        return self.path, None, self.name


def pytest_addoption(parser):
    group = parser.getgroup("ffilab")
    against = "Also compare each function bench_…() of files bench_*.py with the same in this environment."
    group.addoption("--ffilab-against", metavar="PYTHON", help=against)
    longer = "It fails if it certainly takes longer by more than this.  [default: 2%%]"
    group.addoption("--ffilab-limit", metavar="N%", default="2%", help=longer)


def pytest_collect_file(file_path, parent):
    if not parent.config.option.ffilab_against:
        return None
    from ffilab.yours.benchmarks import BENCH

    is_one = file_path.suffix == ".py" and file_path.name.startswith(BENCH)
    return Benchmarks.from_parent(parent, path=file_path) if is_one else None


def pytest_terminal_summary(terminalreporter):
    """A line for each comparison. Properties travel with a report, also from the processes of pytest-xdist."""
    reports = [report for kind in ("passed", "failed") for report in terminalreporter.getreports(kind)]
    told = [(report.nodeid, text) for report in reports for name, text in report.user_properties if name == PROPERTY]
    if told:
        terminalreporter.section("ffilab")
        for test, text in dict(told).items():
            terminalreporter.line(f"{test}: {text}")
