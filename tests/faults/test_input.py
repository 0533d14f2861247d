"""Options, variables, paths and claims that are wrong, empty, huge, foreign or hostile."""

import os
import shutil
import subprocess
import sys

import pytest
from conftest import clean_environment

from faults import fake_source
from ffilab import cli, machine, native, paths, subprocesses
from ffilab.errors import UserError
from ffilab.judge import claims
from ffilab.paths import ROOT
from ffilab.provision import catalogue, installed
from ffilab.provision.catalogue import BY_LABEL

GIL = BY_LABEL["3.14"]


def ends(monkeypatch, capsys, *words):
    """The one sentence in which a verb ends that is run in this process."""
    monkeypatch.setattr(sys, "argv", ["ffilab", *words])
    monkeypatch.setattr(cli.signal, "signal", lambda *_: None)
    with pytest.raises(SystemExit) as caught:
        cli.main()
    said = str(caught.value.code)
    assert said.startswith("ffilab: ")
    assert "Traceback" not in "".join(capsys.readouterr())
    return said


HUGE = "3.14 " * 9000 + "3.99"


@pytest.mark.parametrize(
    ("title", "given", "says"),
    [
        ("names an unknown version", "3.99", "'3.99', which this book does not know"),
        ("has a label without its path", "3.14=", "without a path"),
        ("has two paths for one label", "3.14=/a 3.14=/b", "two interpreters for 3.14"),
        ("has an open quote", "3.14='/a b", "close its quotes"),
        ("is 45 kB long", HUGE, "'3.99'"),
        ("is one word of 50 kB", "x" * 50_000, "xxx...'"),
        ("is in another script", "३.१४", "'३.१४'"),
        ("is a command of a shell", "$(touch F);`touch F`", "which this book does not know"),
        ("holds bytes of a terminal", "3.14\x1b[2J", r"\x1b"),
        ("mixes a word for many with a label", "all 3.14", "'all'"),
        ("begins with an equals sign", "=/usr/bin/python3", "''"),
    ],
    ids=lambda value: value.replace(" ", "_")[:30] if isinstance(value, str) and value.isprintable() else "x",
)
@pytest.mark.fault("input", "KERNELS {title}", "One short sentence that names it")
def test_kernels(seen, title, given, says):
    with pytest.raises(UserError) as caught:
        catalogue.parse(given)
    assert says in str(caught.value)
    assert len(str(caught.value)) < 300
    seen(caught.value)


@pytest.mark.fault("input", "KERNELS names a path with a space and a letter that is not ASCII", "It is read whole")
def test_kernels_with_a_space(seen):
    asked = catalogue.parse("3.14='/opt/mein Python é/bin/python', 3.14t")
    assert asked.named == {GIL: "/opt/mein Python é/bin/python"}
    assert len(asked.required) == 2
    seen("/opt/mein Python é/bin/python")


@pytest.mark.parametrize(
    ("title", "words", "environment", "says"),
    [
        ("BUDGET is unknown", ("book",), {"BUDGET": "huge"}, "BUDGET is 'huge': choose one of"),
        ("BUDGET is a number", ("book",), {"BUDGET": "-1"}, "BUDGET is '-1': choose one of"),
        ("BUDGET has other letters", ("chapter", "loaders"), {"BUDGET": "ｓｍｏｋｅ"}, "choose one of"),
        ("NAME is no chapter", ("chapter", "nothing"), {}, "nothing"),
        ("NAME is empty", ("chapter", ""), {}, "chapter"),
        ("NAME is a path out of the clone", ("chapter", "../../etc"), {}, "../../etc"),
        ("NAME is an option", ("chapter", "--nothing"), {}, "No such option"),
        ("FROM is nowhere", ("book",), {"FROM": "nowhere"}, "neither a folder of records nor a bundle"),
        ("FROM is a program", ("book",), {"FROM": "/bin/sh"}, "neither a folder of records nor a bundle"),
        ("FROM is empty for judge", ("judge", ""), {}, "Name the records"),
        ("A and B are empty", ("compare", "", ""), {}, ""),
        ("A and B are folders", ("compare", "/tmp", "/tmp"), {}, ""),
        ("A is nowhere", ("compare", "nowhere.jsonl", "nowhere.jsonl"), {}, "nowhere.jsonl"),
        ("a verb is unknown", ("measure",), {}, "No such command"),
        ("a study is unknown", ("study",), {}, "Missing argument"),
    ],
    ids=lambda value: value.replace(" ", "_") if isinstance(value, str) else "",
)
@pytest.mark.fault("input", "{title}", "One sentence, a non-zero exit, nothing built")
def test_option(monkeypatch, capsys, seen, title, words, environment, says):
    for name in ("BUDGET", "KERNELS", "FROM", "CC"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    before = sorted(paths.BUILD.rglob("*"))
    said = ends(monkeypatch, capsys, *words)
    assert says in said
    assert sorted(paths.BUILD.rglob("*")) == before
    seen(said)


HOSTILE = ['a"; touch F; "', "$(touch F)", "`touch F`", "$(shell touch F)", "x; touch F", "x' && touch F #", "a\\"]


@pytest.mark.slow
@pytest.mark.parametrize("variable", ["NAME", "FROM", "A", "KERNELS", "BUDGET"])
@pytest.mark.fault(
    "input", "{variable} is a command of a shell or of make", "It reaches the verb as it is, and nothing runs"
)
def test_hostile_variable(tmp_path, seen, variable):
    (tmp_path / "ffilab").mkdir()
    shutil.copy(ROOT / "Makefile", tmp_path / "Makefile")
    script = "import json, os, sys; print(json.dumps([sys.argv[2:], dict(os.environ)]))"
    (tmp_path / "ffilab" / "bootstrap.py").write_text(script)
    import json

    goal = {"NAME": "chapter", "FROM": "judge", "A": "compare"}.get(variable, "book")
    for given in HOSTILE:
        for words, more in (([f"{variable}={given}"], {}), ([], {variable: given})):
            answer = subprocess.run(
                ["make", "-s", goal, *words],
                cwd=tmp_path,
                capture_output=True,
                text=True,
                env=clean_environment(**more),
            )
            assert answer.returncode == 0, answer.stderr
            arguments, environment = json.loads(answer.stdout)
            assert environment[variable] == given
            assert goal == "book" or arguments[0] == given
    assert sorted(path.name for path in tmp_path.iterdir()) == ["Makefile", "ffilab"]
    seen(f"{len(HOSTILE)} commands, on the command line and in the environment: none ran")


@pytest.mark.fault("input", "Further words to pytest are a command of a shell", "pytest gets them as they are")
def test_further_words(monkeypatch, seen):
    ran = []
    monkeypatch.setattr(cli.subprocess, "run", lambda command, **options: ran.append((command, options)) or Done())
    cli.pytest("slow", "-k", "x; touch F", "$(touch F)")
    ((command, options),) = ran
    assert command[-3:] == ["-k", "x; touch F", "$(touch F)"]
    assert not options.get("shell")
    seen("a list of words, no shell")


class Done:
    returncode = 0


@pytest.mark.parametrize(
    ("title", "given", "says"),
    [
        ("is not on this machine", "no-such-cc", "there is no such compiler"),
        ("has an open quote", "gcc 'x", "no command"),
        ("is a command of a shell", "; touch F", "there is no such compiler"),
    ],
    ids=["missing", "quote", "hostile"],
)
@pytest.mark.fault("input", "CC {title}", "It is said, and no other compiler is taken instead")
def test_cc(monkeypatch, tmp_path, seen, title, given, says):
    monkeypatch.setenv("CC", given)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError, match=says) as caught:
        machine.compiler()
    assert list(tmp_path.iterdir()) == []
    seen(caught.value)


LIBRARY = """all: $(OUT)/libtiny.so
$(OUT)/libtiny.so: tiny.c
	@mkdir -p $(OUT)
	$(CC) -O1 -fPIC -shared -o $@.tmp $<
	mv $@.tmp $@
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("title", "name"),
    [
        ("with spaces", "a clone of mine"),
        ("that is not ASCII", "Büchér-本"),
        ("with quotes, a dollar and a semicolon", 'it\'s a "$HOME"; touch F'),
        ("of 600 characters", "/".join(["d" * 100] * 6)),
    ],
    ids=["spaces", "not_ascii", "hostile", "long"],
)
@pytest.mark.fault("input", "The clone lies below a path {title}", "C libraries and extensions are built and load")
def test_path_of_the_clone(monkeypatch, tmp_path, seen, title, name):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    root, out = tmp_path / name / "native", tmp_path / name / "_build" / "native"
    (root / "corner" / "library").mkdir(parents=True)
    (root / "corner" / "library" / "Makefile").write_text(LIBRARY)
    (root / "corner" / "library" / "tiny.c").write_text("int tiny(int x) { return x + 1; }\n")
    shutil.copytree(ROOT / "native" / "loaders" / "detach_attach", root / "corner" / "detach_attach")
    one = installed.load(GIL)
    assert native.build_all([one], root=root, out=out) == []
    ask = "import ctypes, sys; sys.path.insert(0, sys.argv[2]); import detach_attach; print(ctypes.CDLL(sys.argv[1]).tiny(1))"
    target = out / "corner" / installed.soabi(one)
    answer = subprocess.run(
        [one.python, "-c", ask, out / "corner" / "libtiny.so", target], capture_output=True, text=True
    )
    assert answer.stdout == "2\n", answer.stderr
    assert not list(tmp_path.rglob("F"))
    seen("a library and an extension were built there, and answer")


@pytest.mark.fault("input", "There is no HOME, and the system knows no home folder", "It is said which variable helps")
def test_no_home(monkeypatch, seen):
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)

    def none():
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(paths.Path, "home", none)
    with pytest.raises(UserError, match="set XDG_CACHE_HOME") as caught:
        paths.cache()
    assert paths.without_paths("a text") == "a text"
    seen(caught.value)


@pytest.mark.slow
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become a user whom the system does not know")
@pytest.mark.fault("input", "A user without a name and a home starts a verb", "One sentence")
def test_unknown_user(tmp_path, seen):
    tmp_path.chmod(0o755)
    code = "import os, pwd; from ffilab.paths import cache; os.setuid(54321); del os.environ['HOME']; print(cache())"
    answer = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        env={"PYTHONPATH": str(ROOT), "PATH": os.environ["PATH"], "HOME": "/nonexistent"},
    )
    assert "UserError: You have no home folder (HOME is not set)" in answer.stderr
    seen("You have no home folder (HOME is not set): set XDG_CACHE_HOME")


@pytest.mark.fault("input", "XDG_CACHE_HOME is a relative path", "It is refused, and no folder is made")
def test_relative_cache(monkeypatch, tmp_path, seen):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", "here")
    with pytest.raises(UserError, match="no absolute path") as caught:
        paths.cache()
    assert list(tmp_path.iterdir()) == []
    seen(caught.value)


@pytest.mark.parametrize(
    ("title", "make"),
    [
        ("a link to itself", lambda path: path.symlink_to(path)),
        ("a file", lambda path: path.write_text("x")),
    ],
    ids=["circle", "file"],
)
@pytest.mark.fault("input", "Where a folder of the book should be stands {title}", "It is named, with what to do")
def test_in_the_way(tmp_path, seen, title, make):
    make(tmp_path / "folder")
    with pytest.raises(UserError, match="move away what stands in its place") as caught:
        with subprocesses.explain_os_errors("x"):
            (tmp_path / "folder" / "below").mkdir(parents=True)
    seen(str(caught.value).replace(str(tmp_path), "…"))


def as_nobody(clone, *words):
    """The first step of a verb as a user who owns nothing."""
    code = "import os, sys; os.setgid(65534); os.setuid(65534); os.execv(sys.argv[1], sys.argv[1:])"
    python = shutil.which("python3", path="/usr/bin:/bin") or sys.executable
    return subprocess.run(
        [sys.executable, "-c", code, python, str(clone / "ffilab" / "bootstrap.py"), *words],
        capture_output=True,
        text=True,
        timeout=60,
        env=clean_environment(HOME=str(clone)),
    )


@pytest.mark.slow
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
@pytest.mark.parametrize("goal", ["book", "judge"])
@pytest.mark.fault(
    "input", "The clone cannot be written by who runs `make {goal}`", "It is said which path, and what to do"
)
def test_read_only_clone(tmp_path_factory, seen, goal):
    import tempfile

    with tempfile.TemporaryDirectory(prefix="ffilab-clone-") as folder:
        os.chmod(folder, 0o755)
        clone = paths.Path(folder)
        for name in ("ffilab/bootstrap.py", "requirements/book.txt"):
            (clone / name).parent.mkdir(exist_ok=True)
            shutil.copy(ROOT / name, clone / name)
        before = sorted(clone.rglob("*"))
        said = fake_source.sentence(as_nobody(clone, goal))
        assert "Permission denied" in said
        assert "make this folder writable for you" in said
        assert sorted(clone.rglob("*")) == before
    seen("Cannot write … (Permission denied): make this folder writable for you")


@pytest.mark.fault("input", "KEEP_LAYOUTS is set to 0", "No layout is kept")
def test_keep_layouts(monkeypatch, seen):
    from ffilab.budget import BUDGETS
    from ffilab.press import book

    removed = []
    monkeypatch.setattr(book.layout_pool, "make", lambda *words: None)
    monkeypatch.setattr(book.layout_pool, "remove", removed.append)
    for given, count in (("0", 2), ("", 2), ("1", 0), ("yes", 0)):
        removed.clear()
        monkeypatch.setenv("KEEP_LAYOUTS", given)
        with book.drawn_layouts([], BUDGETS["smoke"]):
            pass
        assert len(removed) == count, given
    seen("0 and an empty value keep none, anything else keeps them")


# Claims.

GOOD = '{kind = "side", measured = "x", direction = "above", null = 1.0, interest = 0.1}'
HEAD = 'id = "X1"\nwhere = "w"\nclaim = "c"\npublished = "p"\n'


def rule(**changed):
    words = {"kind": '"side"', "measured": '"x"', "direction": '"above"', "null": "1.0", "interest": "0.1"} | changed
    return "{" + ", ".join(f"{key} = {value}" for key, value in words.items() if value is not None) + "}"


def one(test=GOOD, head="", entry=HEAD):
    return f"{head}\n[[claim]]\n{entry}test = [{test}]\n"


def size(**changed):
    words = {"kind": '"size"', "measured": '"x"', "null": "1.0", "published": "1.2", "margin": "0.25"} | changed
    return f"{GOOD}, {{" + ", ".join(f"{key} = {value}" for key, value in words.items()) + "}"


MISTAKES = {
    "a misspelt key": (one(rule(publishd="1.2")), "publishd"),
    "a direction that is none": (one(rule(direction='"abov"')), "direction"),
    "a kind that is none": (one(rule(kind='"sid"')), "a kind"),
    "a kind that is a list": (one(rule(kind='["side"]')), "a kind"),
    "no number to compare with": (one(rule(null=None)), "`null`"),
    "NaN as a number": (one(rule(null="nan")), "finite number"),
    "infinity as a number": (one(rule(interest="inf")), "finite number"),
    "a number of 400 digits": (one(rule(null="1" + "0" * 400)), "finite number"),
    "a text as a number": (one(rule(null='"1"')), "finite number"),
    "NaN as the published number": (one(size(published="nan")), "finite number"),
    "a margin of 1e9 around a published size": (one(size(margin="1e9")), "below 1"),
    "a negative margin": (one(size(margin="-0.1")), "not negative"),
    "a margin that everything meets": (one('{kind = "equal", measured = "x", null = 1.0, margin = 5}'), "no larger"),
    "a margin on the wrong side that everything meets": (one(rule(interest="-1e9")), "less than `null`"),
    "a rate of 0": (one('{kind = "never", measured = "x", rate = 0}'), "between 0 and 1"),
    "a rate of more than all": (one('{kind = "never", measured = "x", rate = 1.5}'), "between 0 and 1"),
    "no tests": (one(""), "needs tests"),
    "tests that are a text": (one().replace(f"[{GOOD}]", '"x"'), "list of tables"),
    "tests that are one table": (one().replace(f"[{GOOD}]", GOOD), "list of tables"),
    "tests that are numbers": (one("1, 2"), "list of tables"),
    "no id": (one(entry=HEAD.replace('id = "X1"\n', "")), "needs the texts id"),
    "an id that is no letter and number": (one(entry=HEAD.replace("X1", "X²")), "no id such as A1"),
    "a number as what was published": (one(entry=HEAD.replace('"p"', "3")), "needs the texts id"),
    "claims that are one table": (one().replace("[[claim]]", "[claim]"), "list of tables"),
    "claims that are a text": ('claim = "x"\n', "list of tables"),
    "a corner of its own": (one(head='corner = "loaders"'), "no rule knows: corner"),
    "a corner that is not there": (one(head='uses = ["loader"]'), "no such corner"),
    "a text in place of a list": (one(head='uses = "loaders"'), "needs a list"),
    "untested parts that are a text": (one() + 'untested = "part"\n', "untested"),
    "syntax that is no TOML": ("[[claim]\n", "cannot be read"),
    "bytes that are no text": (b"\xff\xfe", "cannot be read"),
    "one key twice": (one() + f"test = [{GOOD}]\n", "cannot be read"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
@pytest.mark.fault("input", "Claims with {mistake}", "They are refused with the file, the claim and what is needed")
def test_claims(tmp_path, seen, mistake):
    text, says = MISTAKES[mistake]
    (tmp_path / "c").mkdir()
    path = tmp_path / "c" / "claims.toml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(UserError, match=says) as caught:
        claims.read(path, "c")
    assert "claims.toml" in str(caught.value)
    seen(str(caught.value).partition("claims.toml")[2].lstrip(": ")[:160])


@pytest.mark.fault("input", "Claims without a mistake", "They are read, so that each refusal above is for its mistake")
def test_good_claims(tmp_path, seen):
    (tmp_path / "c").mkdir()
    path = tmp_path / "c" / "claims.toml"
    for text in (one(), one(size()), one('{kind = "never", measured = "x", rate = 0.1}'), one(rule(interest="-0.1"))):
        path.write_text(text)
        assert len(claims.read(path, "c").claims) == 1
    seen("read")


@pytest.mark.fault("input", "One id stands in two claims", "It is named, and nothing is judged")
def test_id_twice(tmp_path, monkeypatch, seen):
    for corner in ("c", "d"):
        (tmp_path / corner).mkdir()
        (tmp_path / corner / "claims.toml").write_text(one())
    monkeypatch.setattr(claims, "NOTEBOOKS", tmp_path)
    monkeypatch.setattr(claims, "UNWRITTEN", tmp_path / "none")
    with pytest.raises(UserError, match="X1 stands twice") as caught:
        claims.all_claims()
    seen(caught.value)
