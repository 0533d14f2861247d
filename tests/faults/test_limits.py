"""A limit of the system on the runner itself: one sentence that names it, and nothing left behind."""

import errno
import os
import resource
import subprocess
import sys
from datetime import UTC, datetime, timedelta

import psutil
import pytest
from conftest import clean_environment

from ffilab.measure import foreign, runner
from ffilab.measure import session as sessions
from ffilab.measure.plan import Arm, controls, plan
from ffilab.measure.record import read
from ffilab.run.errors import UserError
from ffilab.run.paths import ROOT
from ffilab.setup.catalogue import GIL

BROWSER = ("chromium", "chrome", "headless_shell", "node", "node-MainThread", "chrome_crashpad_handler")
pytestmark = pytest.mark.usefixtures("quiet_progress", "quiet_machine")


def children():
    """What this process has started: beside what is tested, a browser of other tests."""
    return {child for child in psutil.Process().children(recursive=True) if child.name() not in BROWSER}


def open_files():
    return set(os.listdir("/proc/self/fd" if sys.platform == "linux" else "/dev/fd"))


def limited(smoke):
    """A plan of three workers."""
    return plan("limits", [Arm.of("plain", "tests/hostile_arms.py", "fine"), *controls(8)], [GIL], smoke, 1, False)


def assert_nothing_is_left(before):
    assert open_files() == before
    assert not children()


@pytest.mark.full
def test_no_more_files(smoke, tmp_path):
    before, said = open_files(), set()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    free = [number for number in range(1000) if str(number) not in before]
    # Enough to look for the interpreter, and then none for the record, or for one of the pipes of one of three workers: until
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


def test_no_more_processes(smoke, tmp_path, monkeypatch):
    def none(*_, **__):
        raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))

    before = open_files()
    with monkeypatch.context() as patch:
        patch.setattr("subprocess.Popen", none)
        with pytest.raises(UserError, match="ulimit -u"):
            runner.run(limited(smoke), tmp_path)
    assert_nothing_is_left(before)
    assert read(tmp_path / "limits.jsonl").cut_off


def test_no_more_memory():
    # The verb asks for more than its process may have.
    code = (
        "import resource, sys; from ffilab.run import cli\n"
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
