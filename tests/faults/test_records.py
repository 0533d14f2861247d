"""Records and bundles that are damaged, hostile or of something else: one sentence says so, or nothing changes."""

import contextlib
import copy
import functools
import gzip
import io
import json
import operator
import os
import shutil
import sys
import tarfile
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ffilab.judge import again, runs
from ffilab.measure import foreign
from ffilab.measure.lines import Writer
from ffilab.measure.plan import EMPTY, control_pair
from ffilab.measure.record import MAIN, read_record
from ffilab.page import draw
from ffilab.run.errors import UserError
from ffilab.run.paths import ROOT
from tests.helpers.environment import ran
from tests.helpers.made_up import timed
from tests.helpers.of_chapter import write

# Loaders has timed plans, processes and observations, and few of each.
GOLDEN = ROOT / "tests" / "golden" / "loaders"
SCRIPT = "\\<script>alert(1)</script>"


def a_record(seed=1, shape=(6, 3), scatter=0.01):
    rng = np.random.default_rng(seed)
    logs = ((control_pair(1)[0], 0), (EMPTY, -3), ("x", 1))
    return timed({arm: log + scatter * rng.standard_normal(shape) for arm, log in logs})


@pytest.fixture
def path(tmp_path):
    return write(a_record(), tmp_path / "a" / "calls.jsonl")


@pytest.fixture
def folder(tmp_path):
    """A folder of good records: one session of one chapter."""
    shutil.copytree(GOLDEN, tmp_path / "records" / "one")
    return tmp_path / "records"


def refused(act, *words):
    """The act ends in one sentence with these words in it."""
    with pytest.raises(UserError) as error:
        act()
    sentence = str(error.value)
    assert "\n" not in sentence
    for word in words:
        assert word in sentence
    return sentence


def change(path, kind, how):
    """Change the first line of a kind, as somebody may who knows the format: the digest goes. Returns its number."""
    lines = [json.loads(text) for text in path.read_text().splitlines()]
    number = next(number for number, line in enumerate(lines) if line["kind"] == kind)
    how(lines[number])
    lines[-1].pop("sha256", None)
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return number + 1


def test_the_records_are_good(path, folder):
    assert not read_record(path).cut_off
    foreign.check(path)
    assert again.rows(folder)


# ---- what was written is there, or the record is refused ----


def test_a_last_line_that_is_cut_off_costs_nothing_else(path):
    whole = path.read_bytes()
    last = len(whole) - len(whole.splitlines(keepends=True)[-1])
    for end in (last, last + 1, last + 20, len(whole) - 2):
        path.write_bytes(whole[:end])
        found = read_record(path)
        assert found.cut_off
        assert len(found.blocks) == 18
    refused(lambda: runs.report((path, path)), "cut off")


def test_a_flipped_bit_is_seen_wherever_it_is(path):
    whole, original = path.read_bytes(), read_record(path)
    rng, seen = np.random.default_rng(7), 0
    for place in rng.integers(0, len(whole) - 1, 100):
        spoiled = bytearray(whole)
        spoiled[place] ^= 1 << int(rng.integers(8))
        path.write_bytes(spoiled)
        try:
            found = read_record(path)
        except UserError:
            seen += 1
        else:
            # In the last line, where no time stands.
            assert found.blocks == original.blocks
            assert found.run == original.run
            assert found.loops == original.loops
    assert seen > 70


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda lines: [*lines[:8], *lines[9:]], "not those that were written"),
        (lambda lines: [*lines[:5], lines[5][:20] + b"\n", *lines[6:]], "line 6 is no JSON"),
        (lambda lines: [*lines[:3], b'{"kind": "\xff"}\n', *lines[3:]], "line 4 is no JSON"),
        (lambda lines: [*lines, lines[-1]], "behind its end"),
        (lambda lines: [b"\xff\xfe\x00"], "not a record"),
        (lambda lines: [], "not a record"),
        (lambda lines: [b"[]\n"], "not a record"),
        (lambda lines: [b"[" * 100_000 + b"\n"], "not a record"),
    ],
)
def test_lines_that_were_not_written_so(path, spoil, words):
    path.write_bytes(b"".join(spoil(path.read_bytes().splitlines(keepends=True))))
    refused(lambda: read_record(path), words, str(path))


def test_what_is_no_record(path, tmp_path):
    refused(lambda: read_record(tmp_path), "is a folder")
    refused(lambda: read_record(tmp_path / "none"), "no record")
    change(path, "run", lambda line: line.update(format=99))
    refused(lambda: read_record(path), "99", "the version that wrote it")


# ---- each kind of line, with something in it that the schema does not allow, or that nobody thought of ----

SCHEMA = json.loads(foreign.SCHEMA.read_text())
# One value of each of the schema's types; the number is no integer.
SAMPLES = {"null": None, "boolean": True, "string": "a text", "number": 0.5, "array": [1], "object": {"a": [1]}}
# What is just out of a rule's range, from the rule's own value.
BEYOND = {
    "minimum": lambda least: least - 1,
    "exclusiveMinimum": lambda least: least,
    "maximum": lambda most: most + 1,
    "pattern": lambda _: SCRIPT,
    "enum": lambda _: "huge",
}
DROPPED = object()
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)


def first_lines(file):
    """The first line of each kind in a golden record, without the digest."""
    lines = {}
    for line in map(json.loads, (GOLDEN / file).read_text().splitlines()):
        lines.setdefault(line["kind"], line)
    lines["end"].pop("sha256", None)
    return lines


LINES = {file: first_lines(file) for file in ("calls.jsonl", MAIN)}


def rules(rule, value, above=()):
    """The schema's rules for what stands in a line: the names on the way there, and the rule."""
    if "$ref" in rule:
        rule = SCHEMA["definitions"][rule["$ref"].rpartition("/")[2]]
    yield above, rule
    for part in rule.get("allOf", []):
        yield from rules(part, value, above)
    if isinstance(value, list) and value and "items" in rule:
        yield from rules(rule["items"], value[0], (*above, 0))
    if isinstance(value, dict):
        for name, inner in value.items():
            part = rule.get("properties", {}).get(name, rule.get("additionalProperties", {}))
            yield from rules(part, inner, (*above, name))


def mistakes(file, kind):
    """Whatever a line must not be: the names on the way to a field, and its value."""
    first = {"calls.jsonl": "plan", MAIN: "session"}[file]
    for names, rule in rules(SCHEMA["lines"][first if kind == "run" else kind], LINES[file][kind]):
        yield from (((*names, needed), DROPPED) for needed in rule.get("required", []))
        if "type" in rule:
            yield from ((names, value) for name, value in SAMPLES.items() if name not in rule["type"])
        yield from ((names, beyond(rule[word])) for word, beyond in BEYOND.items() if word in rule)


MISTAKES = [(file, kind, *mistake) for file in LINES for kind in LINES[file] for mistake in mistakes(file, kind)]


def spoiled(folder, file, kind, names, value):
    """Write a short record with this value in a line of a kind; its path."""
    lines = copy.deepcopy(LINES[file])
    *above, last = names
    holder = functools.reduce(operator.getitem, above, lines[kind])
    if value is DROPPED:
        del holder[last]
    else:
        holder[last] = value
    path = folder / file
    path.write_text("".join(json.dumps(line) + "\n" for line in lines.values()))
    return path


def test_whatever_the_schema_does_not_allow_is_refused_and_named(tmp_path):
    assert len(MISTAKES) > 500
    for file, kind, names, value in MISTAKES:
        path = spoiled(tmp_path, file, kind, names, value)
        line = f"line {[*LINES[file]].index(kind) + 1}"
        sentence = refused(lambda path=path: foreign.check(path), line, file, "measure again")
        # A long list of what a line must contain is cut short.
        assert (names[0] if len(names) > 1 or value is not DROPPED else "must contain") in sentence, (names, value)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), 0, True], ids=str)
def test_a_time_that_is_none(tmp_path, value):
    cell = next(iter(LINES["calls.jsonl"]["block"]["ns"]))
    refused(lambda: foreign.check(spoiled(tmp_path, "calls.jsonl", "block", ("ns", cell), value)), "line 4")


@settings(max_examples=200, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.sampled_from(MISTAKES), JSON)
def test_whatever_stands_in_a_field_is_refused_in_a_sentence_or_read(tmp_path, mistake, value):
    file, kind, names, _ = mistake
    path = spoiled(tmp_path, file, kind, names, value)
    with contextlib.suppress(UserError):
        foreign.check(path)
        assert json.dumps(read_record(path).run) == path.read_text().splitlines()[0]


@pytest.mark.parametrize(
    ("file", "names", "value"),
    [("calls.jsonl", ("machine", "cores"), "two"), (MAIN, ("plan", "earlier"), ["../../elsewhere"])],
)
def test_every_record_of_a_chapter_is_checked_before_any_is_used(folder, file, names, value):
    number = change(folder / "one" / file, "run", lambda line: line[names[0]].update({names[1]: value}))
    refused(lambda: foreign.find(folder, "loaders"), f"line {number}", file, names[1])


def test_lines_that_contradict_each_other(path):
    lines = path.read_text().splitlines(keepends=True)
    at = {kind: next(n for n, line in enumerate(lines) if f'"kind": "{kind}"' in line) for kind in ("loops", "block")}
    for number in at.values():
        path.write_text("".join([*lines[: number + 1], *lines[number:-1]]))
        refused(lambda: foreign.check(path), "twice", f"line {number + 2}")
    path.write_text("".join(lines))
    change(path, "block", lambda line: line["ns"].pop("3.14/x"))
    refused(lambda: foreign.check(path), "3.14/x")


def test_a_chapter_reads_its_own_records_without_the_library_that_checks(folder):
    """The interpreters of the chapters do not have it."""
    code = (
        "import sys; sys.modules['fastjsonschema'] = None\n"
        "from pathlib import Path; from ffilab.measure.foreign import newest\n"
        "from ffilab.measure.reading import Reading\n"
        f"session = Reading('loaders', newest(Path({str(folder)!r}), 'loaders'))\n"
        "print(len(session.timed('calls').blocks) > 0, 'fastjsonschema' in str(sys.modules.get('fastjsonschema')))"
    )
    ended = ran(sys.executable, "-c", code, cwd=ROOT, timeout=60)
    assert ended.stdout.split() == ["True", "False"], ended.stderr


# ---- bundles ----


@pytest.fixture
def build(monkeypatch, tmp_path):
    (tmp_path / "build").mkdir()
    monkeypatch.setattr(foreign, "BUILD", tmp_path / "build")
    return tmp_path / "build"


def bundle(tmp_path, name, kind=tarfile.REGTYPE, link="", content=b""):
    path = tmp_path / "bundle.tar.gz"
    with tarfile.open(path, "w:gz") as made:
        member = tarfile.TarInfo(name)
        member.type, member.linkname, member.size = kind, link, len(content)
        made.addfile(member, io.BytesIO(content))
    return path


@pytest.mark.parametrize(
    ("name", "kind", "link"),
    [
        ("../out.jsonl", tarfile.REGTYPE, ""),
        ("x", tarfile.SYMTYPE, "/etc/passwd"),
        ("x", tarfile.LNKTYPE, "../../out"),
        ("x", tarfile.CHRTYPE, ""),
    ],
    ids=["a path that leads out", "a link to the system", "a hard link that leads out", "a device"],
)
def test_a_hostile_bundle_writes_nothing(tmp_path, build, name, kind, link):
    refused(
        lambda: foreign.unpacked(str(bundle(tmp_path, name, kind, link))), "neither a folder of records nor a bundle"
    )
    assert {one.name for one in tmp_path.iterdir()} == {"bundle.tar.gz", "build"}
    assert not [one for one in build.rglob("*") if not one.is_dir()]


def test_a_bundle_that_would_fill_the_disk(tmp_path, build):
    member = tarfile.TarInfo("x")
    member.size = 1 << 40
    path = tmp_path / "bomb.tar.gz"
    path.write_bytes(gzip.compress(member.tobuf() + bytes(1 << 20)))
    refused(lambda: foreign.unpacked(str(path)), "would unpack to more")


def test_a_bundle_that_is_cut_off_or_none(tmp_path, build):
    path = bundle(tmp_path, "x", content=os.urandom(200_000))
    whole = path.read_bytes()
    for length in (0, 5, 500, len(whole) // 2, len(whole) - 150):
        path.write_bytes(whole[:length])
        refused(lambda: foreign.unpacked(str(path)), "neither a folder of records nor a bundle")
    os.mkfifo(tmp_path / "pipe")
    for name in ("pipe", "none"):
        refused(lambda name=name: foreign.unpacked(str(tmp_path / name)), "neither a folder of records nor a bundle")


# ---- comparing two records ----


@pytest.mark.parametrize(("shape", "scatter"), [((6, 3), 0), ((1, 3), 0.01), ((2, 3), 0.01)])
def test_no_verdict_where_nothing_is_known_of_scatter(tmp_path, shape, scatter):
    paths = [write(a_record(seed, shape, scatter), tmp_path / str(seed) / "calls.jsonl") for seed in (1, 2)]
    (line,) = [line for line in runs.report(tuple(paths)).splitlines() if line.split()[:2] == ["3.14", "x"]]
    assert "no verdict" in line


def test_a_smoke_test_is_compared_and_decides_nothing(tmp_path):
    record = a_record(2)
    smoke = replace(record, run={**record.run, "plan": {**record.run["plan"], "budget": "smoke"}})
    paths = [write(one, tmp_path / str(number) / "calls.jsonl") for number, one in enumerate((a_record(), smoke))]
    text = runs.report(tuple(paths))
    assert "differs: budget: quick | smoke" in text
    assert "no verdict: a smoke test is no result" in text
    assert ", changed" not in text


# ---- writing, and what stands on a page ----


def test_no_record_is_written_over(path):
    before = path.read_bytes()
    with pytest.raises(FileExistsError):
        Writer(path)
    assert path.read_bytes() == before


def test_markup_in_a_reason_stands_on_a_page_as_text(monkeypatch):
    """Reasons are not checked as names are: the page escapes them."""
    row = {"id": "A1", "claim": "c", "published": "p", "verdict": "v", "qualifier": "", "beside": {}, "numbers": {}}
    row |= {"kind": "measured", "size": "", "parts": [], "counted": []}
    shown = []
    monkeypatch.setattr(draw, "display", lambda one: shown.append(one.data))
    draw.verdict({**row, "interval": {}, "takes": "", "untested": [], "reason": f"{SCRIPT}\n\n```{{raw}} html"})
    for text in (shown[0].partition("Why: ")[2], draw.plain(SCRIPT)):
        before = text.partition("<script")[0]
        # An odd number of backslashes: the last one is for the bracket.
        assert (len(before) - len(before.rstrip("\\"))) % 2 == 1
        assert "\n" not in text
