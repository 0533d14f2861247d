"""A run in one file: it comes back as it was, names nobody, and what is damaged or hostile is refused in a sentence."""

import copy
import gzip
import io
import json
import socket
import tarfile

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ffilab.atlas import pack
from ffilab.judge import again
from ffilab.measure import foreign
from ffilab.measure.record import MAIN
from ffilab.page.ledger_page import finite
from ffilab.run import paths
from ffilab.run.errors import UserError
from ffilab.run.paths import ROOT

GOLDEN = ROOT / "tests" / "golden" / "loaders"


@pytest.fixture(scope="module")
def packed(tmp_path_factory):
    """The golden records of a chapter that has timed plans, processes and observations, in a pack."""
    return pack.written(pack.sessions(GOLDEN), tmp_path_factory.mktemp("packs"), "golden records")


@pytest.fixture(scope="module")
def heads(packed):
    """What stands at its head: the facts and the ledger."""
    return [json.loads(content) for content in pack._heads(packed)[0].values()][::-1]


def archive(path, *members, packed=gzip.compress):
    """Write an archive of members: a name with its content, or a TarInfo of another kind."""
    whole = io.BytesIO()
    with tarfile.open(fileobj=whole, mode="w") as file:
        for name, content in members:
            member = name if isinstance(name, tarfile.TarInfo) else tarfile.TarInfo(name)
            member.size = len(content)
            file.addfile(member, io.BytesIO(content))
    path.write_bytes(packed(whole.getvalue()))
    return path


def headed(path, facts, rows):
    return archive(
        path, *((name, json.dumps(what).encode()) for name, what in zip(("machine.json", "ledger.json"), (facts, rows)))
    )


def refused(path, *words):
    with pytest.raises(UserError) as error:
        pack.opened(path)
    said = str(error.value)
    assert "\n" not in said
    assert said.startswith(f"The pack {path} is refused (")
    for word in words:
        assert word in said


def test_a_run_comes_back_as_it_was(packed, tmp_path, monkeypatch):
    """Its head says what the ledger says, and its records give the same ledger as those that were packed."""
    monkeypatch.setattr(foreign, "BUILD", tmp_path)
    found = pack.opened(packed)
    judged = finite({row["id"]: row for row in again.rows(GOLDEN)})
    assert {name: row["verdict"] for name, row in found.rows.items()} == {
        n: row["verdict"] for n, row in judged.items()
    }
    assert all(row["interval"] == judged[name]["interval"] for name, row in found.rows.items())
    assert any(row["errors"] for row in found.rows.values())
    assert found.facts["called"] == "golden records"
    assert found.facts["rules"] == pack.rules()
    assert found.facts["chapters"]["loaders"]["budget"] == "quick"
    assert all(map(found.is_result, found.rows.values()))
    folder = foreign.unpacked(str(packed))
    assert finite(again.rows(folder)) == finite(again.rows(GOLDEN))
    originals, copies = (sorted(one.rglob("*.jsonl")) for one in (GOLDEN, folder))
    assert [path.name for path in originals] == [path.name for path in copies]
    # The digest at their end is of what was written.
    (main,) = (path for path in copies if path.name == MAIN)
    main.write_text(main.read_text().replace('"round": 1', '"round": 2', 1))
    with pytest.raises(UserError, match="not those that were written"):
        again.rows(folder)


def test_a_light_one_has_no_records(packed, tmp_path):
    light = pack.written(pack.sessions(GOLDEN), tmp_path, light=True)
    assert pack.opened(light).rows == pack.opened(packed).rows
    with tarfile.open(light) as members:
        assert sorted(members.getnames()) == ["ledger.json", "machine.json"]


def test_it_names_no_host_no_user_and_no_folder(tmp_path, monkeypatch):
    """What a process said holds them; a case and a processor that are called like the host keep their names."""
    monkeypatch.setattr(socket, "gethostname", lambda: "anna-laptop.example.org")
    monkeypatch.setattr(pack.getpass, "getuser", lambda: "annabella")
    monkeypatch.setattr(paths, "home", lambda: paths.Path("/somewhere/annabella"))
    pack.names.cache_clear()
    told = "annabella at Anna-Laptop: no file /somewhere/annabella/x/y.so, nor /scratch/annabella/deep/z.so"
    source = tmp_path / "records" / "loaders"
    source.mkdir(parents=True)
    for path in GOLDEN.glob("*.jsonl"):
        lines = [json.loads(text) for text in path.read_text().splitlines()]
        for line in lines:
            if line["kind"] == "run":
                line["machine"]["cpu"] = "a CPU like anna-laptop has"
                for build in line.get("interpreters", {}).values():
                    build["config_args"] = "'CC=/data/annabella/bin/gcc' -I/run/media/annabella/include"
            if line["kind"] == "child":
                line["ended"] = told
        (source / path.name).write_text("".join(json.dumps(line) + "\n" for line in lines))
    made = pack.written(pack.sessions(tmp_path / "records"), tmp_path / "packs")
    pack.names.cache_clear()
    with tarfile.open(made) as members:
        texts = {member.name: members.extractfile(member).read().decode() for member in members}
        owners = {(member.uname, member.gname, member.uid, member.mtime) for member in members}
    assert owners == {("", "", 0, 0)}
    everything = "".join(texts.values())
    assert "annabella" not in everything
    assert "/somewhere" not in everything
    assert "NAME at NAME: no file ~/x/y.so, nor .../z.so" in texts["records/loaders/loaders/session.jsonl"]
    assert "'CC=.../gcc'" in texts["machine.json"]
    assert "a CPU like anna-laptop has" in texts["machine.json"]
    # The same again has the same bytes.
    first = made.read_bytes()
    assert (
        pack.written(pack.sessions(foreign_copy(tmp_path, made, monkeypatch)), tmp_path / "again").read_bytes() == first
    )


def foreign_copy(tmp_path, made, monkeypatch):
    monkeypatch.setattr(foreign, "BUILD", tmp_path / "build")
    return foreign.unpacked(str(made))


def test_what_other_rules_judged_is_judged_anew(packed, tmp_path, monkeypatch):
    """From its records, if it has them; what it said itself is left aside."""
    monkeypatch.setattr(foreign, "BUILD", tmp_path)
    with tarfile.open(packed) as members:
        held = {member.name: members.extractfile(member).read() for member in members}
    facts, rows = (json.loads(held[name]) for name in (pack.FACTS, pack.LEDGER))
    held[pack.FACTS] = json.dumps(facts | {"rules": "0" * 16}).encode()
    held[pack.LEDGER] = json.dumps([row | {"verdict": "holds"} for row in rows]).encode()
    found = pack.judged_here(pack.opened(archive(tmp_path / "other.tar.gz", *held.items())))
    assert found.rows == pack.opened(packed).rows
    assert found.facts["rules"] == pack.rules()
    light = archive(tmp_path / "light.tar.gz", *((name, held[name]) for name in (pack.FACTS, pack.LEDGER)))
    assert {row["verdict"] for row in pack.judged_here(pack.opened(light)).rows.values()} == {"holds"}
    # Of records that this version does not understand, or can make no numbers of, it keeps what was said there.
    (main,) = (name for name in held if name.endswith(MAIN))
    later = held | {main: held[main].replace(b'"kind": "child"', b'"kind": "offspring"')}
    for number, members in enumerate([later, held]):
        kept = pack.judged_here(pack.opened(archive(tmp_path / f"later{number}.tar.gz", *members.items())))
        assert {row["verdict"] for row in kept.rows.values()} == {"holds"}
        assert kept.facts["rules"] == "0" * 16
        monkeypatch.setattr(pack, "findings", lambda session: None)


def test_what_cannot_be_packed(tmp_path):
    with pytest.raises(UserError, match="nothing to pack"):
        pack.sessions(tmp_path)
    with pytest.raises(UserError, match=r"facts\.called must be short text without markup"):
        pack.written(pack.sessions(GOLDEN), tmp_path, "<b>room</b>")
    for chapter, cores in (("loaders", 2), ("arrays", 64)):
        folder = tmp_path / "two" / chapter
        folder.mkdir(parents=True)
        text = (ROOT / "tests" / "golden" / chapter / MAIN).read_text()
        (folder / MAIN).write_text(text.replace('"cores": 2,', f'"cores": {cores},', 1))
    with pytest.raises(UserError, match="from more than one machine"):
        pack.sessions(tmp_path / "two")


# ---- what others made ----


def test_a_pack_that_is_cut_off_or_damaged(packed, tmp_path):
    whole, path = packed.read_bytes(), tmp_path / "x.tar.gz"
    for end in (0, 1, 10, 1000, len(whole) // 2, len(whole) - 9, len(whole) - 1):
        path.write_bytes(whole[:end])
        refused(path)
    # The end of gzip's own sum, and the middle.
    for place in (len(whole) - 6, len(whole) // 3, len(whole) // 2):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        refused(path)


def test_what_is_no_pack(tmp_path):
    refused(tmp_path / "none", "no such file")
    refused(tmp_path, "no such file")
    path = tmp_path / "x.tar.gz"
    path.write_text("records")
    refused(path, "Not a gzipped file")
    archive(path)
    refused(path, "has no machine.json")
    archive(path, ("machine.json", b"{}"), packed=lambda content: content)
    refused(path)


@pytest.mark.parametrize(
    "name",
    [
        "../machine.json",
        "/machine.json",
        "records/../../x/session.jsonl",
        "records/a/b/../../../x.jsonl",
        "records/a/session.jsonl",
        "records/a/b/x.py",
        "machine.json/x",
        "x\x1b[31m",
    ],
)
def test_no_path_leaves_its_folder(heads, tmp_path, name):
    facts, rows = (json.dumps(one).encode() for one in heads)
    path = archive(tmp_path / "x.tar.gz", ("machine.json", facts), ("ledger.json", rows), (name, b"{}"))
    refused(path, "no part of a pack")
    with pytest.raises(UserError) as error:
        pack.opened(path)
    assert "\x1b" not in str(error.value)


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, tarfile.CHRTYPE, tarfile.DIRTYPE])
def test_nothing_but_files(heads, tmp_path, kind):
    facts, rows = (json.dumps(one).encode() for one in heads)
    link = tarfile.TarInfo("records/loaders/one/session.jsonl")
    link.type, link.linkname = kind, "/etc/passwd"
    refused(
        archive(tmp_path / "x.tar.gz", ("machine.json", facts), ("ledger.json", rows), (link, b"")), "no part of a pack"
    )


def test_a_name_stands_once(heads, tmp_path):
    facts = json.dumps(heads[0]).encode()
    refused(archive(tmp_path / "x.tar.gz", ("machine.json", facts), ("machine.json", facts)), "no part of a pack")


def test_headers_upon_headers(tmp_path):
    head = tarfile.TarInfo("x")
    head.type, head.size = tarfile.XHDTYPE, len(b"13 comment=a\n")
    path = tmp_path / "x.tar.gz"
    path.write_bytes(gzip.compress((head.tobuf(tarfile.GNU_FORMAT) + b"13 comment=a\n".ljust(512, b"\0")) * 3000))
    refused(path, "recursion")
    with pytest.raises(UserError, match="neither a folder of records nor a bundle"):
        foreign.unpacked(str(path))


def test_sizes(heads, tmp_path, monkeypatch):
    """A megabyte of zeros packs to a kilobyte: what unpacks to too much is refused before it is all there."""
    path = tmp_path / "x.tar.gz"
    path.write_bytes(gzip.compress(bytes(50 << 20)))
    monkeypatch.setattr(pack, "MOST_WHOLE", 20 << 20)
    refused(path, "unpacks to more than 20 MB")
    monkeypatch.setattr(pack, "MOST_HEAD", 100)
    refused(headed(path, *heads), "too much")
    monkeypatch.setattr(pack, "MOST_PACKED", 100)
    refused(path, "it has more than")


SCRIPT = "<script>alert(1)</script>"


@pytest.mark.parametrize(
    ("spoil", "says"),
    [
        (lambda facts, rows: facts.pop("machine"), "facts must contain"),
        (lambda facts, rows: facts.update(format=2), "facts.format must"),
        (lambda facts, rows: facts.update(called=SCRIPT), "facts.called must be short text without markup"),
        (lambda facts, rows: facts.update(called="x" * 201), "facts.called must be short text"),
        (lambda facts, rows: facts.update(called="\x1b[2J"), "facts.called must be short text"),
        (lambda facts, rows: facts.update(called="\u202e"), "facts.called must be short text"),
        (
            lambda facts, rows: facts["machine"].update({"\x1b\n": SCRIPT}),
            r"facts.machine.\x1b\n must be short text",
        ),
        (lambda facts, rows: facts["machine"].update(cpu=SCRIPT), "facts.machine.cpu must be short text"),
        (lambda facts, rows: facts["machine"].update(further=SCRIPT), "further"),
        (lambda facts, rows: facts["machine"].update(cores="many"), "facts.machine.cores must be number"),
        (lambda facts, rows: facts["machine"].update(cores=float("inf")), "Infinity"),
        (lambda facts, rows: facts["machine"].update(cpu="half \ud800"), "text that is none"),
        (lambda facts, rows: facts["chapters"].update({"../x": {}}), "facts.chapters"),
        (lambda facts, rows: facts["chapters"]["loaders"].update(budget="endless"), "budget must"),
        (lambda facts, rows: facts["interpreters"].update({SCRIPT: {}}), "facts.interpreters"),
        (lambda facts, rows: rows.append(rows[0] | {"id": SCRIPT}), "id must be short text"),
        (lambda facts, rows: rows.append(rows[0] | {"verdict": SCRIPT}), "verdict must be short text"),
        (lambda facts, rows: rows.append(rows[0] | {"further": 1}), "must not contain"),
        (lambda facts, rows: rows.append(rows[0] | {"numbers": {"x": "1"}}), "must be number or null"),
        (lambda facts, rows: rows.append(rows[0] | {"numbers": {"x": 10**301}}), "smaller than"),
        (lambda facts, rows: rows.append(rows[0] | {"interval": {"x": [1]}}), "must contain at least 2 items"),
        (lambda facts, rows: rows.append(3), "must be object"),
    ],
)
def test_a_head_that_no_run_writes(heads, tmp_path, spoil, says):
    facts, rows = copy.deepcopy(heads)
    spoil(facts, rows)
    refused(headed(tmp_path / "x.tar.gz", facts, rows), says)


@pytest.mark.parametrize(
    ("content", "says"), [(b"\xff", "is no JSON"), (b"[" * 100_000, "is no JSON"), (b"3", "must be object")]
)
def test_a_head_that_is_something_else(heads, tmp_path, content, says):
    refused(archive(tmp_path / "x.tar.gz", ("machine.json", content), ("ledger.json", b"[]")), says)


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=10), inner, max_size=3),
    max_leaves=10,
)


@settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data(), anything=ANYTHING)
def test_anything_in_any_field_is_taken_or_refused_in_one_sentence(heads, tmp_path, data, anything):
    facts, rows = copy.deepcopy(heads)
    whole = {"facts": facts, "ledger": rows}
    place, key = whole, data.draw(st.sampled_from(sorted(whole)))
    while isinstance(place[key], dict | list) and place[key] and data.draw(st.booleans()):
        place = place[key]
        key = data.draw(st.sampled_from(sorted(place) if isinstance(place, dict) else range(len(place))))
    place[key] = anything
    path = headed(tmp_path / "x.tar.gz", whole["facts"], whole["ledger"])
    try:
        found = pack.opened(path)
    except UserError as error:
        assert "\n" not in str(error)  # noqa: PT017
    else:
        assert all(isinstance(row["verdict"], str) for row in found.rows.values())
        assert "<" not in json.dumps([found.facts["machine"], found.facts["called"], [*found.rows]])
