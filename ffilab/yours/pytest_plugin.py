"""A plugin of pytest: the fixture `ffilab` compares two statements; `--ffilab-against` compares the benchmarks of a
folder, and what tests give to the fixture `benchmark`, with the same in another environment. Ratios stand at the end of
the report."""

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


# A test again, in a process of its own, up to what it gives to `benchmark`.
CALLED = """
import functools, importlib
def given(function, *args, **named):
    calls.append(functools.partial(function, *args, **named) if args or named else function)
    return function(*args, **named)
given.pedantic = lambda target, args=(), kwargs=None, **_: given(target, *args, **(kwargs or {{}}))
given.extra_info, given.group, given.name, calls = {{}}, None, None, []
found = importlib.import_module({module!r})
for part in {path!r}: found = getattr(found() if isinstance(found, type) else found, part)
found(benchmark=given, **{parameters!r})
(work,) = calls
"""
PLAIN = (bool, int, float, complex, str, bytes, type(None))


class Called:
    """What a test that was written for pytest-benchmark asks of its fixture: it calls a function, and returns what that
    returns. With `--ffilab-against` the call is compared with the same test's in that environment."""

    def __init__(self, request: pytest.FixtureRequest):
        self._request, self._calls = request, 0
        self.extra_info, self.group, self.name = {}, None, None

    def __call__(self, function, *args, **named):
        answer = function(*args, **named)
        self._calls += 1
        return answer

    def pedantic(self, target, args=(), kwargs=None, setup=None, **_):
        """As the call; a setup for each round means another thing, and the test fails with a sentence."""
        if setup is not None:
            pytest.fail("A setup before each round is not measured here: make its work a part of the test.", False)
        return self(target, *args, **(kwargs or {}))

    def compare(self):
        """Compare this test with the same in the other environment, if there is one and the test measured anything."""
        from ffilab.measure.plan import Arm
        from ffilab.yours import comparing

        options, node = self._request.config.option, self._request.node
        if not options.ffilab_against or not self._calls:
            return
        parameters = dict(getattr(getattr(node, "callspec", None), "params", {}))
        others = sorted({*node._fixtureinfo.argnames} - {"benchmark", *parameters})
        if others or not all(isinstance(value, PLAIN) for value in parameters.values()):
            what = f"the fixture {others[0]}" if others else "a parameter that is no plain value"
            node.user_properties.append((PROPERTY, f"Not compared: it needs {what}, which only pytest has."))
            return
        module = self._request.module.__name__
        uses = comparing.HERE.format(str(Path(self._request.path).parents[module.count(".")]))
        setup = CALLED.format(module=module, path=node.function.__qualname__.split("."), parameters=parameters)
        arm = Arm(node.name, "work()", setup, uses)
        judged(node, [arm], [options.ffilab_against, sys.executable], options.ffilab_limit, seconds=20.0)


class Fixture:
    """The fixture of pytest-benchmark, where that is not installed or the comparison is asked of this one."""

    @pytest.fixture
    def benchmark(self, request):
        """Call a function, and compare it with the same in the environment of `--ffilab-against`."""
        return Called(request)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item):
    """What a test gave to `benchmark` is compared once the test itself has passed."""
    outcome = yield
    called = getattr(item, "funcargs", {}).get("benchmark")
    if isinstance(called, Called):
        called.compare()
    return outcome


def pytest_configure(config):
    if config.option.ffilab_against or not config.pluginmanager.hasplugin("benchmark"):
        config.pluginmanager.register(Fixture(), "ffilab-benchmark")


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
