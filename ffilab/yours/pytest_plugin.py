"""A plugin of pytest: the fixture `ffilab` compares two statements, and its ratios stand at the end of the report."""

from pathlib import Path

import pytest

PROPERTY = "ffilab"


class Comparison:
    """What a test asks of two statements."""

    def __init__(self, request: pytest.FixtureRequest):
        self._request = request

    def not_slower(self, old: str, new: str, limit: str = "2%", *, setup: str = "", seconds: float = 20.0, **further):
        """Fail if `new` certainly takes longer than `old` by more than this share; return the `Result`.

        Statements and setup may name functions, modules and plain values of the test's module. What the run cannot
        tell is no failure: the report says that it is open. further: as of `compare`.
        """
        # Not at the top: a test run that compares nothing does not wait for it.
        from ffilab.measure.plan import Arm
        from ffilab.run.errors import UserError
        from ffilab.yours import comparing
        from ffilab.yours.command import SHARE
        from ffilab.yours.uses import uses_of

        try:
            share = SHARE.convert(limit, None, None)
            # Modules beside the test are found as pytest finds them.
            uses = comparing.HERE.format(str(Path(self._request.path).parent))
            uses += uses_of([old, new], setup, vars(self._request.module))
            arms = [Arm(comparing.short(statement), statement, setup, uses) for statement in (old, new)]
            result = comparing.compare(arms, to=share / 2, seconds=seconds, quiet=True, **further)
        except UserError as error:
            pytest.fail(str(error), pytrace=False)
        said = result.gate(share)
        told = " ".join([said, *(result.sentence(name) for name in result.ratios)])
        self._request.node.user_properties.append((PROPERTY, told))
        if "yes" in result.slower(share).values():
            pytest.fail(f"{said}\n\n{result}", pytrace=False)
        return result


@pytest.fixture
def ffilab(request):
    """Compare the speed of two statements: `ffilab.not_slower("old()", "new()", limit="2%")`."""
    return Comparison(request)


def pytest_terminal_summary(terminalreporter):
    """A line for each comparison. Properties travel with a report, also from the processes of pytest-xdist."""
    reports = [report for kind in ("passed", "failed") for report in terminalreporter.getreports(kind)]
    told = [(report.nodeid, text) for report in reports for name, text in report.user_properties if name == PROPERTY]
    if told:
        terminalreporter.section("ffilab")
        for test, text in dict(told).items():
            terminalreporter.line(f"{test}: {text}")
