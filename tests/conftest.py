"""Fixtures. Whatever is measured or rendered here goes into a temporary folder, never into the reader's _build."""

import atexit
import os
import shutil
import signal
import tempfile

import pytest

if "PYTEST_XDIST_WORKER" not in os.environ or "FFILAB_BUILD" not in os.environ:
    SHARED = tempfile.mkdtemp(prefix="ffilab-tests-")
    atexit.register(shutil.rmtree, SHARED, ignore_errors=True)
else:
    SHARED = os.path.dirname(os.environ["FFILAB_BUILD"])
# One for each process of pytest-xdist, side by side: what they share lies beside them (golden_pages.py).
os.environ["FFILAB_BUILD"] = os.path.join(SHARED, os.environ.get("PYTEST_XDIST_WORKER", "alone"))
os.makedirs(os.environ["FFILAB_BUILD"])
os.environ["BUDGET"] = "smoke"
# A shell that starts us in the background has SIGINT ignored; the tests send it.
signal.signal(signal.SIGINT, signal.default_int_handler)
for name in ("FFILAB_TOLD", "LANGUAGE"):
    os.environ.pop(name, None)

from ffilab.measure import session as sessions
from ffilab.run import machine, paths, settings
from ffilab.run.budget import BUDGETS
from ffilab.setup import installed
from ffilab.setup.catalogue import FREE_THREADED, GIL

pytest_plugins = ["tests.durations"]


def clean_environment(**extra):
    """What a reader's shell has: nothing of pytest's, and no lock that `make test` holds."""
    dropped = ("FFILAB_", "PYTHON", "JUPYTER", "BUDGET", "KERNELS", "FROM", "MAKE", "MFLAGS", "PYTEST_XDIST")
    return {**{k: v for k, v in os.environ.items() if not k.startswith(dropped)}, **extra}


@pytest.fixture(scope="session")
def labels():
    """Labels of all interpreters present; the chapter pair is always among them."""
    return [one.label for one in installed.present()]


@pytest.fixture(scope="session")
def smoke():
    return BUDGETS["smoke"]


@pytest.fixture
def tell(monkeypatch):
    """Tell this process what a verb would have told it, for the time of a test."""
    return lambda **told: monkeypatch.setenv(settings.TOLD, settings.telling(**told)[settings.TOLD])


@pytest.fixture
def quiet_progress(tmp_path, tell):
    """Send the bench's progress to a file instead of stderr."""
    tell(progress=str(tmp_path / "progress.json"))


@pytest.fixture
def quiet_machine(monkeypatch):
    """Nothing disturbs what a test measures, whatever else runs."""

    class Quiet:
        def __init__(self, cpu=None):
            pass

        def end(self, children_s=0.0):
            return {"strangers_s": 0.0, "throttled_s": 0.0, "steal_s": 0.0, "wall_s": 0.1}

    monkeypatch.setattr(machine, "Watch", Quiet)


@pytest.fixture
def session(monkeypatch, tmp_path):
    """A session of a chapter that is none, on the pair."""
    monkeypatch.setattr(sessions, "RECORDS", tmp_path)
    return sessions.Measuring("chapter", [GIL, FREE_THREADED])


@pytest.fixture(scope="session")
def library():
    path = paths.NATIVE_OUT / "loaders" / "libloaders.so"
    assert path.exists(), "run the tests with `make test`, which builds the native projects"
    return path


@pytest.fixture(scope="session")
def browser():
    """Headless Chromium, where the machine has it; one for all tests, as a thread can drive one only."""
    from playwright.sync_api import sync_playwright

    path = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if path is None:
        pytest.skip("no Chromium on this machine: `make doctor` names the package")
    flags = [
        "--no-sandbox",
        "--disable-gpu",
        "--disable-quic",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
        "--no-first-run",
    ]
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=path, args=flags)
        yield chromium
        chromium.close()


@pytest.fixture
def executed(chapter, request):
    """A parametrised `chapter`, made from golden records, of a `variant` if the test has one. Shared: see golden_pages.py."""
    from tests import golden_pages

    variant = request.getfixturevalue("variant") if "variant" in request.fixturenames else golden_pages.MEASURED
    return golden_pages.page(chapter, variant)


@pytest.fixture(scope="session")
def golden_book():
    """The whole book made from golden records of real runs: a folder of pages; beside it `generated`, the parts that were put in."""
    from ffilab.judge.claims import chapter_names
    from ffilab.page import render
    from tests import golden_pages

    target = golden_pages.folder() / "html"
    for name in chapter_names():
        golden_pages.page(name)
    with golden_pages.locked("html"):
        if not target.exists():
            shutil.copytree(golden_pages.folder() / golden_pages.MEASURED, paths.EXECUTED, dirs_exist_ok=True)
            # Other tests render what they measured to the same place.
            pages = render.render().parent
            shutil.copytree(paths.BUILD / "source" / "book" / "_generated", target.with_name("generated"))
            shutil.copytree(pages, target)
    return target
