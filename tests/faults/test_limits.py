"""A limit of the system on the runner itself: one sentence that names it, and nothing left behind."""

import errno
import os
import random
import resource
import subprocess
import sys
from contextlib import closing
from datetime import UTC, datetime, timedelta

import psutil
import pytest

from ffilab.measure import case, foreign, runner
from ffilab.measure import session as sessions
from ffilab.measure.case import Case
from ffilab.measure.plan import controls, plan
from ffilab.measure.record import read_record
from ffilab.measure.workers import Worker, WorkerFailed
from ffilab.run import machine
from ffilab.run.errors import UserError
from ffilab.run.machine import compiler_command
from ffilab.run.paths import ROOT
from ffilab.run.subprocesses import explain_os_errors, reached
from ffilab.setup.catalogue import BY_LABEL, GIL
from ffilab.setup.installed import load
from tests.helpers.environment import alone_here, clean_environment, ran
from tests.helpers.of_chapter import hostile

BROWSER = ("chromium", "chrome", "headless_shell", "node", "node-MainThread", "chrome_crashpad_handler")
pytestmark = pytest.mark.usefixtures("quiet_progress", "quiet_machine")


def children():
    """What this process has started: beside what is tested, a browser of other tests."""
    return {child for child in psutil.Process().children(recursive=True) if child.name() not in BROWSER}


def open_files():
    return set(os.listdir("/proc/self/fd" if sys.platform == "linux" else "/dev/fd"))


def limited(smoke):
    """A plan of three workers."""
    return plan("limits", [hostile("fine"), *controls(8)], [GIL], smoke, 1, False)


def assert_nothing_is_left(before):
    assert open_files() == before
    assert not children()


@pytest.mark.full
def test_no_more_files(smoke, tmp_path):
    before, said = open_files(), set()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    free = [number for number in range(1000) if str(number) not in before]
    # Enough to look for the interpreter, and then none for the record, or for one of the pipes of one of three workers:
    # until there are enough.
    for further in range(1, 40):
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (free[further], hard))
            runner.run(limited(smoke), tmp_path / str(further))
            break
        except UserError as error:
            said.add(str(error))
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        assert_nothing_is_left(before)
    assert further > 4
    assert len(said) == 1, said
    (sentence,) = said
    assert "ulimit -n" in sentence


def test_no_more_processes(smoke, tmp_path, monkeypatch):
    def none(*_, **__):
        raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))

    before = open_files()
    with monkeypatch.context() as patch:
        patch.setattr("subprocess.Popen", none)
        with pytest.raises(UserError, match="ulimit -u"):
            runner.run(limited(smoke), tmp_path)
    assert_nothing_is_left(before)
    assert read_record(tmp_path / "limits.jsonl").cut_off


REFUSES = """
#define _GNU_SOURCE
#include <errno.h>
#include <sched.h>
int sched_setaffinity(pid_t process, size_t size, const cpu_set_t *cores)
{
    (void)process, (void)size, (void)cores;
    errno = EPERM;
    return -1;
}
"""


@pytest.mark.skipif(sys.platform != "linux", reason="macOS cannot pin at all")
def test_pinning_is_refused(tmp_path):
    """As by seccomp in some containers, which still say where a process may run."""
    (tmp_path / "refuses.c").write_text(REFUSES)
    library = tmp_path / "refuses.so"
    subprocess.run([*compiler_command(), "-shared", "-fPIC", "-o", library, tmp_path / "refuses.c"], check=True)
    environment = clean_environment(LD_PRELOAD=str(library), PYTHONPATH=str(ROOT))
    command = [sys.executable, "-m", "ffilab", "time", "--time", "1s", "pass"]
    ended = ran(*command, cwd=tmp_path, env=environment, timeout=100)
    assert ended.returncode == 0, ended.stderr
    assert "cannot keep a process on one core" in ended.stdout
    ask = "from ffilab.run import machine as m; print(m.cores_to_pin(), m.Cores().next(), m.cores_usable())"
    said = ran(sys.executable, "-c", ask, env=environment).stdout
    assert said.split() == ["[]", "None", str(machine.cores_usable())]


def test_a_core_that_a_worker_may_not_have_is_named(tmp_path):
    with closing(Worker(load(BY_LABEL[GIL]), "shared", tmp_path / "log")) as worker:
        with pytest.raises(WorkerFailed, match=r"could not be kept on core 1023 \(OSError"):
            worker.load([], 1023, random.Random(1))
        worker.move(None)


def test_what_a_process_raises_has_no_colours_and_is_told_from_its_last_line(session, monkeypatch, quiet_machine):
    def raises():
        raise ValueError("of " + "many words " * 40 + "to the end")

    monkeypatch.setenv("FORCE_COLOR", "1")
    with pytest.raises(UserError) as raised:
        session.run("raises", [Case(GIL, raises)], 1)
    said = str(raised.value)
    assert "exit code 1. ValueError: of many words" in said
    assert said.endswith("to the end")
    assert "\x1b" not in said
    (child,) = session.record.children
    assert "\x1b" not in child["error"]


def test_the_end_of_what_a_process_said_is_whole_lines():
    assert case.last_lines("first\n" + "x" * 300 + "\n" + "y" * 300) == "y" * 300
    assert case.last_lines("x" * 1000) == "x" * case.KEPT_CHARACTERS
    assert case.last_lines("short\n") == "short\n"


def verb(code, **environment):
    """Run a verb whose work is this code."""
    program = (
        f"import sys; from ffilab import cli\ndef work(again):\n    {code}\n"
        "cli.verbs.commands['html'].callback = work; sys.argv = ['ffilab', 'html']; cli.main()"
    )
    return ran(sys.executable, "-c", program, env=alone_here(**environment), timeout=60)


@pytest.mark.parametrize("name", ["HOME", "XDG_CACHE_HOME"])
def test_a_cache_that_cannot_be_made_names_its_variable(name, tmp_path):
    (tmp_path / "file").touch()
    # A folder cannot be made in a file, nor in /proc, by root either.
    for folder in ("/proc/nowhere", str(tmp_path / "file")):
        ended = verb(
            "from ffilab.run.paths import cache; cache().mkdir(parents=True)", **{"XDG_CACHE_HOME": "", name: folder}
        )
        assert ended.returncode == 1
        assert f"point {name} to a folder that you can write" in ended.stderr
        assert ended.stderr.count("\n") == 1


def test_a_folder_for_temporary_files_that_cannot_be_used_is_not(tmp_path):
    ended = verb("import os; print(os.environ['TMPDIR'])", TMPDIR="/proc")
    assert ended.returncode == 0
    assert "TMPDIR is '/proc'" in ended.stderr
    assert os.access(ended.stdout.strip(), os.W_OK)


@pytest.mark.parametrize(
    ("code", "says"),
    [
        ('raise RuntimeError("can\'t start new thread")', "ulimit -u"),
        # More than its process may have.
        (
            "import resource; resource.setrlimit(resource.RLIMIT_AS, (1 << 36, 1 << 36)); bytearray(1 << 40)",
            "not enough memory",
        ),
    ],
    ids=["threads", "memory"],
)
def test_a_limit_that_a_verb_meets_is_one_sentence(code, says):
    ended = verb(code)
    assert ended.returncode == 1
    assert says in ended.stderr
    assert "Traceback" not in ended.stderr


@pytest.mark.parametrize(
    ("number", "says"),
    [
        (errno.ENOSPC, "The disk that holds x is full: free some space"),
        (errno.EACCES, "No permission to write x"),
        (errno.ENOTDIR, "move away what stands in its place"),
        (errno.EMFILE, "ulimit -n"),
    ],
)
def test_an_error_of_the_system_is_a_sentence(number, says):
    with pytest.raises(UserError, match=says), explain_os_errors("x"):
        raise OSError(number, os.strerror(number), "x")


@pytest.mark.parametrize(
    ("log", "limit"),
    [
        ("zmq.error.ZMQError: Too many open files", "ulimit -n"),
        ("BlockingIOError: [Errno 11] Resource temporarily unavailable", "ulimit -u"),
        ("Resource temporarily unavailable (src/thread.cpp:241)", "ulimit -u"),
        ("OSError: [Errno 12] Cannot allocate memory", "not enough memory"),
        ("OSError: [Errno 2] No such file or directory", None),
    ],
)
def test_a_limit_is_known_from_a_log(log, limit):
    found = reached(f"...\n{log}\n")
    assert found is None if limit is None else limit in str(found)


def test_what_nobody_thought_of_ends_in_one_sentence_and_its_traceback_is_kept(tmp_path):
    ended = verb("{}['gone']", TMPDIR=str(tmp_path))
    assert ended.returncode == 1
    # Beside another suite it says first that a measurement is running.
    (sentence,) = (line for line in ended.stderr.splitlines() if not line.startswith("  "))
    assert "KeyError: 'gone'" in sentence
    (log,) = tmp_path.glob("ffilab-*.log")
    assert str(log) in sentence
    assert "Traceback" in log.read_text()


def test_dated_in_the_future(tmp_path, monkeypatch):
    monkeypatch.setattr(sessions, "RECORDS", tmp_path)
    facts, ahead = sessions.machine.facts, datetime.now(UTC) + timedelta(days=365)

    def measured(date=None):
        with monkeypatch.context() as patch:
            if date:
                patch.setattr(sessions.machine, "facts", lambda chapter: {**facts(chapter), "date": date.isoformat()})
            session = sessions.Measuring("chapter", [GIL])
            session.close()
        return session.folder

    wrong = measured(ahead)
    assert foreign.find(tmp_path, "chapter") == wrong
    right = measured()
    assert foreign.find(tmp_path, "chapter") == right
    # The clock that is behind all records says nothing of them.
    later = measured(ahead + timedelta(days=1))
    assert foreign.find(tmp_path, "chapter") == right
    assert foreign.find(later.parent / later.name, "chapter") == later


# ---- limits that we set on a program ----

# The limits are set from outside, a moment after the start.
WAITS = (
    "import resource, time\n"
    "until = time.monotonic() + 20\n"
    "while (found := resource.getrlimit(resource.{name})[0]) != {value} and time.monotonic() < until: "
    "time.sleep(0.01)\n"
    "print(found)\n"
)


@pytest.mark.skipif(sys.platform != "linux", reason="limits are set from outside, on Linux only")
@pytest.mark.parametrize(("name", "value"), [("RLIMIT_AS", 3 << 30), ("RLIMIT_CORE", 0)])
def test_a_program_has_limits(name, value):
    code = WAITS.format(name=name, value=value)
    ended, printed, errors = case.program([sys.executable, "-c", code], memory_bytes=3 << 30)
    assert ended == "ok", errors
    assert int(printed) == value


def test_a_program_that_eats_memory_is_told_that_there_is_none():
    code = WAITS.format(name="RLIMIT_AS", value=1 << 30) + "bytearray(2 << 30)"
    ended, _, err = case.program([sys.executable, "-c", code], memory_bytes=1 << 30)
    assert ended == "exit code 1"
    assert "MemoryError" in err


def test_a_program_that_ends_before_it_has_its_limits_is_no_error():
    assert {case.program(["true"], memory_bytes=1 << 30)[0] for _ in range(20)} == {"ok"}
