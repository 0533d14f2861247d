"""Fixtures. Whatever is measured or rendered here goes into a temporary folder, never into the reader's _build."""

import atexit
import os
import shutil
import signal
import tempfile

import pytest

os.environ["FFILAB_BUILD"] = tempfile.mkdtemp(prefix="ffilab-tests-")
atexit.register(shutil.rmtree, os.environ["FFILAB_BUILD"], ignore_errors=True)
os.environ["BUDGET"] = "smoke"
# A shell that starts us in the background has SIGINT ignored; the tests send it.
signal.signal(signal.SIGINT, signal.default_int_handler)
os.environ.pop("FFILAB_PROGRESS", None)

from ffilab import paths
from ffilab.budget import BUDGETS
from ffilab.provision import installed


def clean_environment(**extra):
    """What a reader's shell has: nothing of pytest's, and no lock that `make test` holds."""
    dropped = ("FFILAB_", "PYTHON", "JUPYTER", "BUDGET", "KERNELS", "FROM", "MAKE", "MFLAGS")
    return {**{k: v for k, v in os.environ.items() if not k.startswith(dropped)}, **extra}


@pytest.fixture(scope="session")
def labels():
    """Labels of all interpreters present; the chapter pair is always among them."""
    return [one.label for one in installed.present()]


@pytest.fixture(scope="session")
def smoke():
    return BUDGETS["smoke"]


@pytest.fixture
def quiet_progress(tmp_path, monkeypatch):
    """Send the bench's progress to a file instead of stderr."""
    monkeypatch.setenv("FFILAB_PROGRESS", str(tmp_path / "progress.json"))


@pytest.fixture(scope="session")
def library():
    path = paths.NATIVE_OUT / "loaders" / "libloaders.so"
    assert path.exists(), "run the tests with `make test`, which builds the native projects"
    return path
