"""Records and bundles that are damaged, hostile or not what they seem: said, never a wrong number, never markup on a page."""

import gzip
import io
import json
import os
import subprocess
import sys
import tarfile
from dataclasses import replace

import numpy as np
import pytest
from made_up import timed, write

from faults import small
from ffilab.bench import session as sessions
from ffilab.bench.plan import EMPTY, control_pair
from ffilab.bench.record import Writer, read
from ffilab.errors import UserError
from ffilab.judge import runs
from ffilab.press import status
from ffilab.subprocesses import explain_os_errors


def a_record(seed=1):
    rng = np.random.default_rng(seed)
    return timed({arm: rng.normal(log, 0.01, (6, 3)) for arm, log in ((control_pair(1)[0], 0), (EMPTY, -3), ("x", 1))})


@pytest.fixture
def path(tmp_path):
    return write(a_record(), tmp_path / "a" / "calls.jsonl")


def refused(path, seen):
    with pytest.raises(UserError) as error:
        read(path)
    said = str(error.value)
    assert str(path) in said
    seen(said.replace(str(path), "calls.jsonl"))
    return said


def change(path, kind, how):
    """Rewrite the first line of a kind; the digest goes, as with an older record."""
    lines = [json.loads(text) for text in path.read_text().splitlines()]
    how(next(line for line in lines if line["kind"] == kind))
    for line in lines:
        line.pop("sha256", None)
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))


@pytest.mark.fault(
    "records", "The last line is cut off at each of its bytes", "What was whole is read and marked as cut off"
)
def test_cut_off_at_every_byte(path, seen):
    whole = path.read_bytes()
    last = len(whole) - len(whole.splitlines(keepends=True)[-1])
    for end in range(last, len(whole) - 1):
        path.write_bytes(whole[:end])
        found = read(path)
        assert found.cut_off
        assert len(found.blocks) == 18
    with pytest.raises(UserError, match="cut off"):
        runs.report((path, path))
    seen(f"cut off at {len(whole) - 1 - last} places: marked each time, and `compare` refuses it")


def test_whole_is_not_cut_off(path):
    assert not read(path).cut_off


@pytest.mark.fault("records", "A line in the middle is broken", "The record is refused, and the line is named")
def test_broken_line(path, seen):
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join([*lines[:5], lines[5][:20] + "\n", *lines[6:]]))
    assert "line 6" in refused(path, seen)


@pytest.mark.fault(
    "records", "One byte is flipped, at any place", "The record is refused, or what changed is no fact of it"
)
def test_flipped_byte(path, seen):
    whole = path.read_bytes()
    rng, said, same = np.random.default_rng(7), 0, 0
    original = read(path)
    for place in rng.integers(0, len(whole) - 1, 300):
        spoiled = bytearray(whole)
        spoiled[place] ^= 1 << int(rng.integers(8))
        path.write_bytes(spoiled)
        try:
            found = read(path)
        except UserError:
            said += 1
        else:
            # A spoiled last line is a line that was cut off, or what stands in it about the end.
            assert found.blocks == original.blocks
            assert found.run == original.run
            assert found.loops == original.loops
            same += 1
    assert said > 200
    seen(f"300 flips: {said} refused, {same} in the last line, where no time stands")


@pytest.mark.parametrize(
    ("value", "name"),
    [(float("nan"), "NaN"), (float("inf"), "infinite"), (-5, "negative"), (0, "zero"), ("12", "a text"), (None, "null"), (True, "a truth value"), ([1], "a list")],
    ids=str,
)  # fmt: skip
@pytest.mark.fault("records", "A time is {name}", "The record is refused, and the time is named")
def test_no_time(path, seen, value, name):
    change(path, "block", lambda line: line["ns"].update(dict.fromkeys(list(line["ns"])[:1], value)))
    assert "the time of" in refused(path, seen)


@pytest.mark.fault("records", "Loops are zero", "The record is refused")
def test_no_loops(path, seen):
    change(path, "loops", lambda line: line["loops"].update(dict.fromkeys(list(line["loops"])[:1], 0)))
    assert "loops of" in refused(path, seen)


@pytest.mark.fault("records", "A block stands twice", "The record is refused, and the block is named")
def test_twice(path, seen):
    lines = path.read_text().splitlines(keepends=True)
    number = next(n for n, line in enumerate(lines) if '"kind": "block"' in line)
    path.write_text("".join([*lines[:-1][: number + 1], *lines[number:-1]]))
    assert "twice" in refused(path, seen)


@pytest.mark.fault(
    "records", "A block is taken out, and the rest is whole", "The digest of the last line does not fit: refused"
)
def test_taken_out(path, seen):
    lines = path.read_text().splitlines(keepends=True)
    number = next(n for n, line in enumerate(lines) if '"kind": "block"' in line)
    path.write_text("".join(lines[:number] + lines[number + 1 :]))
    assert "not those that were written" in refused(path, seen)


@pytest.mark.parametrize("lacking", ["machine", "plan"])
@pytest.mark.fault("records", "It says no {lacking}", "The record is refused, and what is missing is named")
def test_lacks(path, seen, lacking):
    change(path, "run", lambda line: line.pop(lacking))
    assert lacking in refused(path, seen)


@pytest.mark.fault("records", "A later version wrote it", "The record is refused, and the format is named")
def test_later_format(path, seen):
    change(path, "run", lambda line: line.update(format=99))
    assert "99" in refused(path, seen)


@pytest.mark.parametrize(
    ("content", "name"),
    [(b"\xff\xfe\x00", "binary"), (b"", "empty"), (b"[]\n", "a list"), (b'"x"\n', "a text"), (b"[" * 100_000 + b"\n", "brackets without end"), (b'{"kind": []}\n', "of no kind")],
    ids=lambda x: x if isinstance(x, str) else "",
)  # fmt: skip
@pytest.mark.fault("records", "The file is {name}", "It is refused as no record")
def test_no_record(path, seen, content, name):
    path.write_bytes(content)
    assert "not a record" in refused(path, seen)


@pytest.mark.fault("records", "Text in the middle is not UTF-8", "The record is refused, and the line is named")
def test_not_utf8(path, seen):
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*lines[:3], b'{"kind": "\xff"}\n', *lines[3:]]))
    assert "line 4" in refused(path, seen)


@pytest.mark.fault("records", "A folder is named in place of a record", "It is refused with a word on what to name")
def test_folder(tmp_path, seen):
    assert "folder" in refused(tmp_path, seen)


def planned(tmp_path, **other):
    found = []
    for number, further in enumerate(({}, other)):
        record = a_record(number)
        plan = {**record.run["plan"], **further}
        found.append(write(replace(record, run={**record.run, "plan": plan}), tmp_path / str(number) / "calls.jsonl"))
    return runs.report(tuple(found))


@pytest.mark.fault(
    "records", "Two records of different plans are compared", "The differences are named above the ratios"
)
def test_other_plan(tmp_path, seen):
    text = planned(tmp_path, restarts=99, name="other")
    assert "differs: restarts" in text
    assert "differs: name: calls | other" in text
    seen(next(line for line in text.splitlines() if "differs: name" in line))


@pytest.mark.fault(
    "records", "A smoke test is compared with a quick run", "The budgets are named, and no change is claimed"
)
def test_other_budget(tmp_path, seen):
    text = planned(tmp_path, budget="smoke")
    assert "differs: budget: quick | smoke" in text
    assert "no verdict: a smoke test is no result" in text
    assert ", changed" not in text
    seen("budget: quick | smoke; no verdict: a smoke test is no result")


def bundle(tmp_path, *members):
    path = tmp_path / "bundle.tar.gz"
    with tarfile.open(path, "w:gz") as made:
        for name, kind, link in members:
            info = tarfile.TarInfo(name)
            info.type, info.linkname = kind, link
            made.addfile(info)
    return path


@pytest.mark.parametrize(
    ("name", "kind", "link", "what"),
    [
        ("../out.jsonl", tarfile.REGTYPE, "", "a path that leads out"),
        ("x", tarfile.SYMTYPE, "/etc/passwd", "a symbolic link to the system"),
        ("x", tarfile.SYMTYPE, "../../../out", "a symbolic link that leads out"),
        ("x", tarfile.LNKTYPE, "../../out", "a hard link that leads out"),
        ("x", tarfile.CHRTYPE, "", "a device"),
        ("x", tarfile.FIFOTYPE, "", "a pipe"),
    ],
    ids=lambda value: value if isinstance(value, str) and " " in value else "",
)
@pytest.mark.fault("records", "A bundle holds {what}", "It is refused, and nothing of it is written elsewhere")
def test_hostile_bundle(tmp_path, seen, monkeypatch, name, kind, link, what):
    monkeypatch.setattr(sessions, "BUILD", tmp_path / "build")
    path = bundle(tmp_path, (name, kind, link))
    with pytest.raises(UserError) as error:
        sessions.unpacked(str(path))
    assert {one.name for one in tmp_path.iterdir()} <= {"bundle.tar.gz", "build"}
    assert not [one for one in tmp_path.rglob("*") if one.is_symlink() or one.name.startswith("out")]
    seen(str(error.value).replace(str(tmp_path), ""))


@pytest.mark.fault("records", "A bundle begins with a slash in a name", "The file lands in the folder of the bundle")
def test_absolute_name(tmp_path, seen, monkeypatch):
    monkeypatch.setattr(sessions, "BUILD", tmp_path / "build")
    folder = sessions.unpacked(str(bundle(tmp_path, ("/ffilab-nowhere/x", tarfile.REGTYPE, ""))))
    assert (folder / "ffilab-nowhere" / "x").exists()
    assert not os.path.exists("/ffilab-nowhere")
    seen("unpacked below the folder of the bundle")


@pytest.mark.fault("records", "A small bundle unpacks to terabytes", "It is refused before anything large is written")
def test_bomb(tmp_path, seen, monkeypatch):
    monkeypatch.setattr(sessions, "BUILD", tmp_path / "build")
    info = tarfile.TarInfo("x")
    info.size = 1 << 40
    path = tmp_path / "bomb.tar.gz"
    path.write_bytes(gzip.compress(info.tobuf() + bytes(1 << 20)))
    with pytest.raises(UserError, match="more than records ever are") as error:
        sessions.unpacked(str(path))
    assert not [one for one in tmp_path.rglob("*") if one.is_file() and one.stat().st_size > 1 << 20]
    seen(str(error.value).replace(str(tmp_path), ""))


@pytest.mark.fault("records", "A bundle holds files without number", "It is refused at a limit")
def test_many_files(tmp_path, seen, monkeypatch):
    monkeypatch.setattr(sessions, "BUILD", tmp_path / "build")
    monkeypatch.setattr(sessions, "MAX_FILES", 5)
    with pytest.raises(UserError, match="more than records") as error:
        sessions.unpacked(str(bundle(tmp_path, *[(f"x{n}", tarfile.REGTYPE, "") for n in range(9)])))
    seen(str(error.value).replace(str(tmp_path), ""))


@pytest.mark.fault("records", "A bundle is cut off", "It is refused in one sentence")
def test_bundle_cut_off(tmp_path, seen, monkeypatch):
    monkeypatch.setattr(sessions, "BUILD", tmp_path / "build")
    info = tarfile.TarInfo("x")
    info.size = 200_000
    path = tmp_path / "x.tar.gz"
    with tarfile.open(path, "w:gz") as made:
        made.addfile(info, io.BytesIO(os.urandom(info.size)))
    whole = path.read_bytes()
    for length in (0, 5, 12, 500, len(whole) // 2, len(whole) - 150):
        path.write_bytes(whole[:length])
        with pytest.raises(UserError, match="neither a folder of records nor a bundle") as error:
            sessions.unpacked(str(path))
    seen(str(error.value).replace(str(tmp_path), ""))


@pytest.mark.fault("records", "A fact of the machine holds a script", "The record is refused")
def test_markup_in_a_record(path, seen):
    change(path, "run", lambda line: line["machine"].update(cpu="<script>alert(1)</script>"))
    assert "markup" in refused(path, seen)


@pytest.mark.fault(
    "records", "A text on a page holds markup, fences and line breaks", "It stands there as text on one line"
)
def test_markup_on_a_page(seen):
    shown = status.plain("a\n\n:::{raw} html\n<script>alert(1)</script>\n:::\n```{raw} html")
    assert "\n" not in shown
    assert not [at for at in range(len(shown)) if shown[at] in "<`[" and shown[at - 1] != "\\"]
    seen(shown[:60])


SMALL = """
import sys
from pathlib import Path
from ffilab.bench.record import Writer, read
from ffilab.cli import explain_os_errors
from ffilab.errors import UserError
writer = Writer(Path(sys.argv[1]) / "x.jsonl")
writer.write("run", plan={"name": "x"}, machine={})
try:
    with explain_os_errors("the records"):
        while True:
            writer.write("observation", text="x" * 5000)
except UserError as error:
    sys.exit(str(error))
"""


@pytest.mark.fault(
    "records",
    "The disk is full in the middle of a write",
    "Said in one sentence; the lines before are read, as cut off",
)
def test_disk_full(tmp_path, seen):
    with small.disk(tmp_path / "small", "size=256k") as place:
        ended = subprocess.run([sys.executable, "-c", SMALL, place], capture_output=True, text=True, timeout=60)
        found = read(place / "x.jsonl")
    assert ended.returncode == 1
    assert "is full" in ended.stderr
    assert "Traceback" not in ended.stderr
    assert found.cut_off
    assert found.observations
    seen(ended.stderr.replace(str(tmp_path), ""))


@pytest.mark.fault("records", "A record of that name is there already", "It is not written over")
def test_no_overwriting(path, seen):
    before = path.read_bytes()
    with pytest.raises(FileExistsError):
        Writer(path)
    assert path.read_bytes() == before
    seen("FileExistsError; the record is as it was")


@pytest.mark.fault("records", "The folder of records cannot be written", "Said in one sentence")
def test_no_permission(tmp_path, seen, monkeypatch):
    monkeypatch.setattr(
        "pathlib.Path.open", lambda *_, **__: (_ for _ in ()).throw(PermissionError(13, "denied", "x.jsonl"))
    )
    with pytest.raises(UserError, match="No permission") as error, explain_os_errors("the records"):
        Writer(tmp_path / "x.jsonl")
    seen(error.value)
