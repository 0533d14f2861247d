"""Each reproducer of book/upstream, run as its page prints it."""

import re
import shutil

import pytest

from ffilab.measure.case import program
from ffilab.page import evidence
from ffilab.run.archives import tarfile
from ffilab.run.paths import NATIVE, ROOT
from ffilab.run.progress import step
from ffilab.setup import installed, sources
from ffilab.setup.catalogue import BY_LABEL
from studies import compiled, patches
from tests.helpers.environment import for_reproducers

PAGES = {path.stem: path.read_text() for path in sorted((ROOT / "book" / "upstream").glob("*.md"))}
SEEN = re.compile(r"^Seen with .*CPython (\d+\.\d+)\.\d+(t?), \d+ \w+ \d{4}\.$", re.M)


def shape(line):
    """A line without what may be measured in it."""
    return re.sub(r"\d+(\.\d+)?", "0", line)


@pytest.mark.full
@pytest.mark.parametrize("name", PAGES)
def test_a_reproducer_still_shows_what_its_page_says(name, tmp_path, tmp_path_factory):
    """Its standard output is the same each time, versions of others included; what is measured, or comes by chance, it
    writes to standard error."""
    files = patches.files(name)
    for file, text in files.items():
        (tmp_path / file).parent.mkdir(exist_ok=True)
        (tmp_path / file).write_text(text)
    if "Cargo.toml" in files:
        if not shutil.which("cargo"):
            pytest.skip("written in Rust, and there is no cargo here")
        wanted = re.search(r'pyo3 = "=(.*?)"', files["Cargo.toml"])[1]
        assert f'name = "pyo3"\nversion = "{wanted}"' in (NATIVE / "boundary" / "pyo3" / "crates.lock").read_text()
    python = installed.load(BY_LABEL["".join(SEEN.search(PAGES[name]).groups())]).python
    environment = for_reproducers(python, tmp_path_factory.getbasetemp() / "cargo")
    ended, out, err = program(["sh", "-c", 'cd "$0" && . ./run.sh', tmp_path], 300, environment)
    assert ended == "ok", err
    shown = re.search(r"^```text\n(.*?)^```$", PAGES[name], re.M | re.S)[1].splitlines()
    printed = out.splitlines()
    assert [line for line in shown if line in printed] == printed, err
    assert {shape(line) for line in shown} <= {shape(line) for line in printed + err.splitlines()}, err


@pytest.mark.full
@pytest.mark.parametrize("report", patches.PACKAGES)
def test_a_patch_applies_to_the_pinned_sources(report, tmp_path):
    if patches.PACKAGES[report] == "cpython":
        with step("sources") as bar, tarfile.open(sources.fetch(compiled.SOURCE, bar)) as archive:
            archive.extractall(tmp_path, filter="tar")
        (tree,) = tmp_path.iterdir()
    else:
        tree = patches.package(report, tmp_path)
    patches.patch(report, tree)


@pytest.mark.parametrize("report", patches.PACKAGES)
def test_a_patch_stands_on_its_page_and_was_measured(report):
    assert f"patches/{report}.patch" in PAGES[report]
    (kept,) = evidence.kept_evidence("patches")
    times = patches.printed("\n".join(re.search(r"^```text\n(.*?)^```$", PAGES[report], re.M | re.S)[1].splitlines()))
    assert {row["line"] for row in kept["rows"] if row["report"] == report} == set(times)


def test_a_line_of_time_is_known_without_its_number():
    assert patches.printed("Python 3.14.7\n36 ns a call in 1\nfirst: 2.5 µs a visit\n") == {
        "… ns a call in 1": 36.0,
        "first: … µs a visit": 2.5,
    }


@pytest.mark.parametrize("name", PAGES)
def test_a_report_is_short_and_listed(name):
    # In words: a line is a sentence.
    assert len(PAGES[name].split()) <= 500
    assert f"upstream/{name}.md" in (ROOT / "book" / "upstream.md").read_text()
    assert f"book/upstream/{name}\n" in (ROOT / "_toc.yml").read_text()
