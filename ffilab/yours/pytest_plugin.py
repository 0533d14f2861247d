"""A plugin of pytest: the fixture `ffilab` compares two statements; `--ffilab-against` compares the benchmarks of a
folder, and what tests give to the fixture `benchmark`, with the same in another environment. Ratios stand at the end of
the report."""

import sys
from pathlib import Path

import pytest

PROPERTY = "ffilab"


def judged(node: pytest.Item, arms: list, pythons: list, limit: str, seconds: float, must: bool = True, **further):
    """Compare arms, note in the report what was found, and fail if one certainly takes longer than the first by more
    than this share; return the `Result`. What cannot be compared fails, or, if it need not be, is noted."""
    # Not at the top: a test run that compares nothing does not wait for it.
    from ffilab.run.errors import UserError
    from ffilab.yours.amounts import SHARE
    from ffilab.yours.comparing import compare

    try:
        share = SHARE.read(limit, "limit")
        result = compare(arms, pythons, to=share / 2, seconds=seconds, quiet=True, **further)
    except UserError as error:
        if must:
            raise pytest.fail.Exception(str(error), pytrace=False) from None
        node.user_properties.append((PROPERTY, f"Not compared: {error}"))
        return None
    if result.record.cut_off:
        raise KeyboardInterrupt
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
            raise pytest.fail.Exception(str(error), pytrace=False) from None
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
def pedantic(target, args=(), kwargs=None, setup=None, **_):
    assert setup is None, "a setup before each round is not measured here"
    return given(target, *args, **(kwargs or {{}}))
given.pedantic, given.extra_info, given.group, given.name, calls = pedantic, {{}}, None, None, []
found = importlib.import_module({module!r})
for part in {path!r}: found = getattr(found() if isinstance(found, type) else found, part)
found(benchmark=given, **{parameters!r})
assert len(calls) == 1, "it gives benchmark other than one call"
work = calls[0]
"""
PLAIN = (bool, int, float, complex, str, bytes, type(None))


class Called:
    """The fixture of pytest-benchmark where that is not installed: it calls a function, and returns what that
    returns."""

    def __init__(self):
        self.extra_info, self.group, self.name = {}, None, None

    def __call__(self, function, *args, **named):
        return function(*args, **named)

    def pedantic(self, target, args=(), kwargs=None, setup=None, **_):
        """One round. A setup may return what the target is called with."""
        args, kwargs = (setup and setup()) or (args, kwargs)
        return target(*args, **(kwargs or {}))


class Fixture:
    """What is registered where pytest-benchmark is not: it accepts no other fixture of its name."""

    @pytest.fixture
    def benchmark(self):
        """Call a function; with `--ffilab-against` it is compared with the same in that environment."""
        return Called()


@pytest.hookimpl(trylast=True)
def pytest_configure(config):
    if not config.pluginmanager.hasplugin("benchmark"):
        config.pluginmanager.register(Fixture(), "ffilab-benchmark")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item):
    """What a test gave to `benchmark` is compared once the test itself has passed."""
    outcome = yield
    if item.config.option.ffilab_against and "benchmark" in getattr(item, "funcargs", {}):
        judged_again(item)
    return outcome


def judged_again(node: pytest.Function) -> None:
    """Compare what a test gave to `benchmark` with the same test's in the other environment. Where that cannot be, the
    report says why: the test was not written for it."""
    from ffilab.measure.plan import Arm
    from ffilab.yours import comparing

    options = node.config.option
    parameters = dict(node.callspec.params) if hasattr(node, "callspec") else {}
    others = sorted({*node._fixtureinfo.argnames} - {"benchmark", *parameters})
    if others or not all(isinstance(value, PLAIN) for value in parameters.values()):
        what = f"the fixture {others[0]}" if others else "a parameter that is no plain value"
        node.user_properties.append((PROPERTY, f"Not compared: it needs {what}, which only pytest has."))
        return
    module = node.function.__module__
    uses = comparing.HERE.format(str(node.path.parents[module.count(".")]))
    setup = CALLED.format(module=module, path=node.function.__qualname__.split("."), parameters=parameters)
    arms, pythons = [Arm(node.name, "work()", setup, uses)], [options.ffilab_against, sys.executable]
    judged(node, arms, pythons, options.ffilab_limit, seconds=20.0, must=False)


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
