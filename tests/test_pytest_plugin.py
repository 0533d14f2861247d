"""The plugin of pytest: the fixture `ffilab`, benchmarks of a folder, and tests as they are for pytest-benchmark."""

import re
import sys

import pytest

from ffilab.run.errors import UserError
from ffilab.setup.catalogue import BY_LABEL, GIL
from ffilab.setup.installed import load
from ffilab.yours import comparing, pytest_plugin
from tests.helpers.environment import alone_here, ran
from tests.test_yours import made_up

TEST = """
def old(): return 1
LIMIT = 3
def new(): return sum(range(LIMIT))

def test_fast(ffilab):
    ffilab.not_slower("old()", "new()", limit="2%", seconds=0)
"""


def with_plugin(folder, *options):
    """How pytest ends in a folder, with the plugin."""
    words = ["-m", "pytest", "-p", "ffilab.yours.pytest_plugin", "-p", "no:cacheprovider", *options]
    ended = ran(sys.executable, *words, cwd=folder, env=alone_here())
    # What takes several times as long fails, or the run was too short to tell.
    assert ended.returncode in (0, 1), ended.stderr
    assert "INTERNALERROR" not in ended.stdout
    return ended


@pytest.mark.full
@pytest.mark.parametrize("options", [[], ["-n", "2"]])
def test_pytest_compares_and_reports(options, tmp_path):
    (tmp_path / "test_speed.py").write_text(TEST)
    ended = with_plugin(tmp_path, "--junitxml", "out.xml", *options)
    assert re.search(r"test_fast: (Failed|Open|Passed): ", ended.stdout) or "too few to tell" in ended.stdout


@pytest.mark.parametrize("limit", ["0.02", "2 per cent", ""])
def test_a_limit_that_is_none_is_a_sentence_in_a_notebook_and_in_a_test(limit, request):
    with pytest.raises(UserError, match=r"limit is .*: say it as in 1%"):
        made_up(a=0.0, b=0.0).gate(limit)
    with pytest.raises(pytest.fail.Exception, match=r"limit is .*: say it as in 1%"):
        pytest_plugin.Comparison(request).not_slower("1", "2", limit=limit)


def test_a_comparison_fails_on_a_finding_and_reports_what_is_open(monkeypatch, request):
    """Of results whose truth is known."""
    comparison = pytest_plugin.Comparison(request)
    for more, noise, said in ((0.2, 0.01, "Failed"), (0.0, 0.01, "Passed"), (0.03, 0.2, "Open")):
        result = made_up(noise=noise, a=0.0, b=more)
        monkeypatch.setattr(comparing, "compare", lambda *_, found=result, **__: found)
        if said == "Failed":
            with pytest.raises(pytest.fail.Exception, match="b takes more than 2 % longer than a"):
                comparison.not_slower("1", "2")
        else:
            comparison.not_slower("1", "2")
        name, told = request.node.user_properties.pop()
        assert name == "ffilab"
        assert told.startswith(said)


@pytest.mark.full
def test_pytest_compares_benchmarks_with_another_environment(tmp_path):
    (tmp_path / "bench_it.py").write_text("def bench_sum(): sum(range(9))\nasync def bench_wait(): pass\n")
    (tmp_path / "test_it.py").write_text("def test_it(): pass\n")
    assert "1 passed" in with_plugin(tmp_path).stdout
    other = load(BY_LABEL[GIL]).python
    ended = with_plugin(tmp_path, "--ffilab-against", str(other), "--ffilab-limit", "900%")
    assert "3 passed" in ended.stdout
    for name in ("bench_sum", "bench_wait"):
        assert f"bench_it.py::{name}: Passed: nothing takes more than 900 % longer than " in ended.stdout
    assert "names '/nowhere'" in with_plugin(tmp_path, "--ffilab-against", "/nowhere").stdout


# As they are written for pytest-benchmark.
BENCHMARKED = """
import pytest

@pytest.mark.parametrize("n", [9, 99])
def test_sum(benchmark, n):
    benchmark.extra_info["n"] = n
    assert benchmark(sum, range(n)) == n * (n - 1) // 2

class TestAnswer:
    def test_decorated(self, benchmark):
        @benchmark
        def answer(): return 42
        assert answer == 42

def test_with_more(benchmark, tmp_path):
    assert benchmark.pedantic(len, args=("abc",), rounds=3) == 3

def test_with_a_setup(benchmark):
    assert benchmark.pedantic(len, setup=lambda: (("abc",), {})) == 3
"""


def test_tests_of_pytest_benchmark_run_unchanged(tmp_path):
    (tmp_path / "test_it.py").write_text(BENCHMARKED)
    assert "5 passed" in with_plugin(tmp_path).stdout


@pytest.mark.full
def test_tests_of_pytest_benchmark_are_compared(tmp_path):
    package = tmp_path / "tests"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "test_it.py").write_text(BENCHMARKED)
    # An environment with a release may have no pytest.
    (package / "test_plain.py").write_text(BENCHMARKED.replace("import pytest", "").replace("@pytest.", "#"))
    other = str(load(BY_LABEL[GIL]).python)
    ended = with_plugin(tmp_path, "--ffilab-against", other, "--ffilab-limit", "900%", "-k", "not sum")
    assert (
        "test_plain.py::TestAnswer::test_decorated: Passed: nothing takes more than 900 % longer than " in ended.stdout
    )
    assert "test_plain.py::test_with_more: Not compared: it needs the fixture tmp_path" in ended.stdout
    assert "a setup before each round is not measured here" in ended.stdout
    assert "test_it.py::TestAnswer::test_decorated: Passed" in ended.stdout
