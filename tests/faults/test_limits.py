"""A limit of the system on the runner itself: one sentence that names it, and nothing left behind."""

import contextlib
import errno
import os
import resource
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import psutil
import pytest
from conftest import clean_environment

from ffilab.bench import foreign, runner
from ffilab.bench import session as sessions
from ffilab.bench.plan import Arm, controls, plan
from ffilab.bench.record import read
from ffilab.errors import UserError
from ffilab.paths import ROOT
from ffilab.provision.catalogue import BY_LABEL, GIL
from ffilab.provision.installed import load

from .test_cores import control_group, enter

ARMS = Path(__file__).with_name("arms.py")
pytestmark = pytest.mark.usefixtures("quiet_progress")


def open_files():
    return set(os.listdir("/proc/self/fd" if sys.platform == "linux" else "/dev/fd"))


def limited(smoke):
    """A plan of four workers, one of them on a copy of the interpreter."""
    return plan("limits", [Arm("plain", str(ARMS), "plain"), *controls(0, 8)], [GIL], smoke, 1, False)


def assert_nothing_is_left(before):
    assert open_files() == before
    assert not list(load(BY_LABEL[GIL]).python.parent.glob(f"copy-of-{os.getpid()}-*"))
    assert not psutil.Process().children(recursive=True)


@pytest.mark.slow
@pytest.mark.fault(
    "measuring",
    "The runner is out of file descriptors, at whichever it needs",
    "One sentence names the limit; none is left open",
)
def test_no_more_files(smoke, tmp_path, seen):
    before, said = open_files(), set()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    free = [number for number in range(1000) if str(number) not in before]
    # Enough to look for the interpreter, and then none for the record, or for one of the pipes of one of four workers: until
    # there are enough.
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
    seen(sentence)


@contextlib.contextmanager
def no_more_processes(monkeypatch):
    """None can be started beside those that run: yields by which means."""
    used = len(psutil.Process().threads())
    limit = resource.getrlimit(resource.RLIMIT_NPROC)
    with contextlib.ExitStack() as stack:
        try:
            enter(stack.enter_context(control_group("pids", pids__max=used)))
        except OSError:
            pass
        else:
            yield "a control group"
            return
        if os.getuid():
            # Of all processes of this user; root has no such limit.
            resource.setrlimit(resource.RLIMIT_NPROC, (1, limit[1]))
            stack.callback(resource.setrlimit, resource.RLIMIT_NPROC, limit)
            yield "the limit of the user"
            return

        def none(*_, **__):
            raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))

        with monkeypatch.context() as patch:
            patch.setattr("subprocess.Popen", none)
            yield "a stub"


@pytest.mark.slow
@pytest.mark.fault(
    "measuring", "The runner can start no more processes", "One sentence names the limit; nothing is left"
)
def test_no_more_processes(smoke, tmp_path, seen, monkeypatch):
    before = open_files()
    with no_more_processes(monkeypatch) as means, pytest.raises(UserError) as error:
        runner.run(limited(smoke), tmp_path)
    sentence = str(error.value)
    assert "ulimit -u" in sentence
    assert_nothing_is_left(before)
    assert read(tmp_path / "limits.jsonl").cut_off
    seen(f"by {means}: {sentence}")


@pytest.mark.fault("measuring", "A verb is out of memory", "One sentence, and an exit code that is not zero")
def test_no_more_memory(tmp_path, seen):
    # What the verb does is to ask for more than the process may have.
    code = (
        "import resource, sys; from ffilab import cli\n"
        "cli.verbs.commands['html'].callback = lambda: bytearray(1 << 40)\n"
        "resource.setrlimit(resource.RLIMIT_AS, (1 << 36, 1 << 36))\n"
        "sys.argv = ['ffilab', 'html']; cli.main()"
    )
    ended = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, env=clean_environment(), timeout=60
    )
    assert ended.returncode == 1
    assert "Traceback" not in ended.stderr
    assert "not enough memory" in ended.stderr
    seen(ended.stderr.strip())


@pytest.mark.fault(
    "measuring",
    "The wall clock was a year ahead when one session was measured, and is right again",
    "The session that was measured after it is the newest; without another one it is read",
)
def test_dated_in_the_future(tmp_path, seen, monkeypatch):
    monkeypatch.setattr(sessions, "RECORDS", tmp_path)
    facts, ahead = sessions.machine.facts, datetime.now(UTC) + timedelta(days=365)

    def measured(date=None):
        with monkeypatch.context() as patch:
            if date:
                patch.setattr(sessions.machine, "facts", lambda corner: {**facts(corner), "date": date.isoformat()})
            session = sessions.Measuring("corner", [GIL])
            session.close()
        return session.folder

    wrong = measured(ahead)
    assert foreign.find(tmp_path, "corner") == wrong
    right = measured()
    assert foreign.find(tmp_path, "corner") == right
    # The clock that is behind all records says nothing of them.
    later = measured(ahead + timedelta(days=1))
    assert foreign.find(tmp_path, "corner") == right
    assert foreign.find(later.parent / later.name, "corner") == later
    seen("the one that was measured later was read")
