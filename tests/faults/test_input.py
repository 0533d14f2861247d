"""Options, variables, paths and claims that are wrong, empty, huge, foreign or hostile."""

import json
import os
import shutil
import sys
import tempfile
from pathlib import Path

import pytest

from ffilab import cli, doctor
from ffilab.judge import claims
from ffilab.run import machine, paths
from ffilab.run.errors import UserError
from ffilab.run.paths import ROOT
from ffilab.setup import catalogue, chapters, installed, native
from ffilab.setup.catalogue import BY_LABEL
from tests.helpers import fake_source
from tests.helpers.environment import clean_environment, ran, script
from tests.helpers.tiny import library

GIL = BY_LABEL["3.14"]


@pytest.fixture
def ends(monkeypatch, capsys):
    """A function that runs a verb in this process; the one sentence in which it ends."""
    monkeypatch.setattr(cli.command.signal, "signal", lambda *_: None)
    for name in ("BUDGET", "KERNELS", "FROM", "CC"):
        monkeypatch.delenv(name, raising=False)

    def run(*words, **environment):
        monkeypatch.setattr(sys, "argv", ["ffilab", *words])
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        with pytest.raises(SystemExit) as caught:
            cli.main()
        out, err = capsys.readouterr()
        assert caught.value.code == 1
        assert "Traceback" not in out + err
        # Before it may stand that somebody else measures.
        sentence = err.strip().rpartition("\n")[2]
        assert sentence.startswith("ffilab: ")
        return sentence

    return run


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ("3.99", "'3.99', which this book does not know"),
        ("3.14=", "without a path"),
        ("3.14=/a 3.14=/b", "two interpreters for 3.14"),
        ("3.14='/a b", "close its quotes"),
        ("3.14 " * 9000 + "3.99", "'3.99'"),
        ("$(touch F);`touch F`", "which this book does not know"),
        ("3.14\x1b[2J", r"\x1b"),
        ("all 3.14", "'all'"),
    ],
    ids=range(8),
)
def test_kernels_that_cannot_be_read_are_named_in_one_short_sentence(given, says):
    with pytest.raises(UserError) as caught:
        catalogue.parse(given)
    assert says in str(caught.value)
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize(
    ("words", "environment", "says"),
    [
        (("book",), {"BUDGET": "huge"}, "BUDGET is 'huge'"),
        (("chapter", "nothing"), {}, "nothing"),
        (("chapter", ""), {}, "chapter"),
        (("chapter", "../../etc"), {}, "../../etc"),
        (("book",), {"FROM": "nowhere"}, "neither a folder of records nor a bundle"),
        (("book",), {"FROM": "/bin/sh"}, "neither a folder of records nor a bundle"),
        (("judge", ""), {}, "Name the records"),
        (("compare", "nowhere.jsonl", "nowhere.jsonl"), {}, "nowhere.jsonl"),
        (("measure",), {}, "No such command"),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, tuple) else "",
)
def test_a_wrong_option_ends_in_one_sentence_and_builds_nothing(ends, words, environment, says):
    before = {path for path in paths.BUILD.rglob("*") if path.is_file()}
    assert says in ends(*words, **environment)
    assert {path for path in paths.BUILD.rglob("*") if path.is_file()} == before


def test_an_empty_folder_of_records_is_named(ends, tmp_path):
    assert "no complete session of any chapter" in ends("book", FROM=str(tmp_path))


@pytest.mark.parametrize("variable", ["PYTHON_GIL=1", "PYTHONMALLOC=debug"])
@pytest.mark.parametrize("verb", [("book",), ("chapter", "loaders"), ("lab",)], ids=lambda words: words[0])
def test_a_variable_that_changes_interpreters_is_refused(ends, variable, verb):
    name, _, value = variable.partition("=")
    says = f"{variable} would change the interpreters that are measured: `unset {name}`"
    assert says in ends(*verb, **{name: value})


HOSTILE = ['a"; touch F; "', "$(touch F)", "$(shell touch F)", "x' && touch F #"]


@pytest.mark.parametrize("variable", ["NAME", "FROM"])
def test_a_command_in_a_variable_reaches_the_verb_as_it_is(tmp_path, variable):
    (tmp_path / "ffilab").mkdir()
    shutil.copy(ROOT / "Makefile", tmp_path / "Makefile")
    script = "import json, os, sys; print(json.dumps([sys.argv[2:], dict(os.environ)]))"
    (tmp_path / "ffilab" / "bootstrap.py").write_text(script)
    for given in HOSTILE:
        for words, more in (([f"{variable}={given}"], {}), ([], {variable: given})):
            command = ["make", "-s", {"NAME": "chapter", "FROM": "judge"}[variable], *words]
            environment = clean_environment(**more)
            answer = ran(*command, cwd=tmp_path, env=environment)
            assert answer.returncode == 0, answer.stderr
            (argument, *_), environment = json.loads(answer.stdout)
            assert environment[variable] == argument == given
    assert sorted(path.name for path in tmp_path.iterdir()) == ["Makefile", "ffilab"]


@pytest.mark.parametrize(
    ("given", "says"),
    [("no-such-cc", "there is no such compiler"), ("gcc 'x", "no command"), ("; touch F", "there is no such compiler")],
    ids=["missing", "quote", "hostile"],
)
def test_a_wrong_compiler_is_named_and_no_other_is_taken(monkeypatch, tmp_path, given, says):
    monkeypatch.setenv("CC", given)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError, match=says):
        machine.compiler()
    assert list(tmp_path.iterdir()) == []


def test_the_doctor_asks_for_the_compiler_that_cc_names(monkeypatch, tmp_path):
    script(tmp_path / "my cc", f'exec {machine.compiler()} "$@"')
    monkeypatch.setenv("CC", f"'{tmp_path / 'my cc'}' -O1")
    assert machine.compiler_command() == [str(tmp_path / "my cc"), "-O1"]
    assert doctor.present("C compiler", [])
    assert doctor.header_present("stdio.h")
    monkeypatch.setenv("CC", "gcc 'x")
    assert doctor.c_compilers() == doctor.KNOWN["tools"]["C compiler"][2]


@pytest.mark.full
def test_native_code_is_built_below_a_path_with_spaces_quotes_and_a_dollar(monkeypatch, tmp_path):
    name = 'it\'s a "$HOME"; touch F of Büchér'
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    root, out = tmp_path / name / "native", tmp_path / name / "_build" / "native"
    library(root / "chapter")
    shutil.copytree(ROOT / "native" / "loaders" / "detach_attach", root / "chapter" / "detach_attach")
    one = installed.load(GIL)
    assert native.build_all([one], root=root, out=out) == []
    ask = (
        "import ctypes, sys; sys.path.insert(0, sys.argv[2]); import detach_attach; "
        "print(ctypes.CDLL(sys.argv[1]).tiny(1))"
    )
    target = out / "chapter" / installed.soabi(one)
    answer = ran(one.python, "-c", ask, out / "chapter" / "libtiny.so", target)
    assert answer.stdout == "2\n", answer.stderr
    assert not list(tmp_path.rglob("F"))


def test_no_home(monkeypatch):
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)

    def none():
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(paths.Path, "home", none)
    with pytest.raises(UserError, match="set XDG_CACHE_HOME"):
        paths.cache()
    assert paths.without_paths("a text") == "a text"


def test_relative_cache(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", "here")
    with pytest.raises(UserError, match="no absolute path"):
        paths.cache()
    assert list(tmp_path.iterdir()) == []


def as_nobody(clone, *words):
    """The first step of a verb as a user who owns nothing."""
    code = "import os, sys; os.setgid(65534); os.setuid(65534); os.execv(sys.argv[1], sys.argv[1:])"
    python = shutil.which("python3", path="/usr/bin:/bin") or sys.executable
    command = [sys.executable, "-c", code, python, clone / "ffilab" / "bootstrap.py", *words]
    return ran(*command, timeout=60, env=clean_environment(HOME=str(clone)))


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_a_clone_that_cannot_be_written(monkeypatch):
    with tempfile.TemporaryDirectory(prefix="ffilab-clone-") as folder:
        os.chmod(folder, 0o755)
        clone = Path(folder)
        for name in ("ffilab/bootstrap.py", "requirements/book.txt"):
            (clone / name).parent.mkdir(exist_ok=True)
            shutil.copy(ROOT / name, clone / name)
        before = sorted(clone.rglob("*"))
        said = fake_source.sentence(as_nobody(clone, "html"))
        assert "Permission denied" in said
        assert "make this folder writable for you" in said
        assert sorted(clone.rglob("*")) == before


# Claims.

HEAD = 'id = "X1"\nwhere = "w"\nclaim = "c"\npublished = "p"\n'


SIDE = {"kind": '"side"', "number": '"x"', "part": '"y"', "direction": '"above"', "null": "1.0", "interest": "0.1"}


def rule(**changed):
    """A side, with some of its words changed, or left out where they are None."""
    words = (SIDE | changed).items()
    return "{" + ", ".join(f"{key} = {value}" for key, value in words if value is not None) + "}"


GOOD = rule()


def one(test=GOOD, head="", entry=HEAD):
    return f"{head}\n[[claim]]\n{entry}test = [{test}]\n"


def size(**changed):
    """A good side, and beside it a size."""
    words = {"kind": '"size"', "published": "1.2", "margin": "0.25", "direction": None, "interest": None}
    return f"{GOOD}, {rule(**words | changed)}"


MISTAKES = {
    "a misspelt key": (one(rule(publishd="1.2")), "publishd"),
    "a direction that is none": (one(rule(direction='"abov"')), "direction"),
    "a kind that is none": (one(rule(kind='"sid"')), "`kind`: side, size"),
    "no number to compare with": (one(rule(null=None)), "`null`"),
    "NaN as a number": (one(rule(null="nan")), "finite number"),
    "a text as a number": (one(rule(null='"1"')), "finite number"),
    "a margin of 1e9 around a published size": (one(size(margin="1e9")), "below 1"),
    "a margin that everything meets": (
        one('{kind = "equal", number = "x", part = "y", null = 1.0, margin = 5}'),
        "no larger",
    ),
    "a margin on the wrong side that everything meets": (one(rule(interest="-1e9")), "less than `null`"),
    "a rate of more than all": (one('{kind = "never", number = "x", part = "y", rate = 1.5}'), "between 0 and 1"),
    "a rate of none": (one('{kind = "occurs", number = "x", part = "y", rate = 0}'), "between 0 and 1"),
    "no rate": (one('{kind = "occurs", number = "x", part = "y"}'), "`rate`"),
    "no kind": (one(rule(kind=None)), "`kind`: side, size"),
    "a truth as a number": (one(rule(null="true")), "`null`: a finite number"),
    "no interest": (one(rule(interest=None)), "`interest`"),
    "an experiment that is none": (one(rule(experiment='"run"')), "as run, corrected or beside"),
    "no margin": (one('{kind = "equal", number = "x", part = "y", null = 1.0}'), "`margin`"),
    "a margin below nothing": (one(size(margin="-1")), "not negative"),
    "a rounding below nothing": (one(size(rounding="-1")), "not negative"),
    "a rule that stands twice": (one(f"{GOOD}, {GOOD}"), "twice"),
    "no number": (one('{kind = "occurs"}'), "number"),
    "no part": (one('{kind = "occurs", number = "x", rate = 0.1}'), "`part`"),
    "a number without a name": (one('{kind = "occurs", number = 3, part = "y"}'), "number"),
    "no tests": (one(""), "needs tests"),
    "no id": (one(entry=HEAD.replace('id = "X1"\n', "")), "needs `id`: an id such as A1"),
    "a chapter that is not there": (one(head='uses = ["loader"]'), "no such chapter"),
    "a section that is nowhere": (one(entry=HEAD + 'section = "nowhere"\n'), "section"),
    "what its author saw without what differs": (one(entry=HEAD + 'saw = "Two."\n'), "together"),
    "what is no sentence": (one(entry=HEAD + 'saw = "Two"\ndiffers = "It."\n'), "whole sentences"),
    "a number as a text": (one(entry=HEAD + "saw = 2\ndiffers = 2\n"), "`saw`: whole sentences"),
    "a claim that is no table": ("claim = [3]", "the claim . needs `claim`: a table"),
    "a key of another kind": (one(rule(rate="0.1")), "its kind does not know: rate"),
    "a part that is no text": (one(entry=HEAD + "untested = [3]\n"), "`untested`: a text"),
    "syntax that is no TOML": ("[[claim]\n", "cannot be read"),
}


def written(folder, text, chapter="c"):
    (folder / chapter).mkdir(exist_ok=True)
    (folder / chapter / "claims.toml").write_text(text)
    return folder / chapter / "claims.toml"


@pytest.mark.parametrize("mistake", MISTAKES)
def test_claims(tmp_path, mistake):
    text, says = MISTAKES[mistake]
    with pytest.raises(UserError, match=says) as caught:
        claims.read_claims(written(tmp_path, text), "c")
    assert "claims.toml" in str(caught.value)


def test_good_claims(tmp_path):
    for test in (GOOD, size(), rule(interest="-0.1"), '{kind = "never", number = "x", part = "y", rate = 0.1}'):
        assert len(claims.read_claims(written(tmp_path, one(test)), "c").claims) == 1


def test_id_twice(tmp_path, monkeypatch):
    for chapter in ("c", "d"):
        written(tmp_path, one(), chapter)
    for module in (claims, chapters):
        monkeypatch.setattr(module, "NOTEBOOKS", tmp_path)
    monkeypatch.setattr(claims, "UNWRITTEN", tmp_path / "none")
    with pytest.raises(UserError, match="X1 stands twice"):
        claims.all_claims()
