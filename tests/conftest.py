"""Fixtures. Whatever is measured or rendered here goes into a temporary folder, never into the reader's _build."""

import atexit
import contextlib
import os
import shutil
import signal
import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import settings as hypothesis_settings

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

from ffilab.judge.claims import chapter_names
from ffilab.measure import neighbour
from ffilab.measure import session as sessions
from ffilab.run import machine, paths, settings
from ffilab.run.budget import BUDGETS
from ffilab.run.subprocesses import group
from ffilab.setup import installed
from ffilab.setup.catalogue import FREE_THREADED, GIL

pytest_plugins = ["tests.helpers.durations", "tests.helpers.snapshots"]
# A busy machine takes long for an example, and proves nothing by it.
hypothesis_settings.register_profile("suite", deadline=None)
hypothesis_settings.load_profile("suite")
CHROMIUM = ("chromium", "chromium-browser", "google-chrome")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Whoever asks for the browser needs one: before `-m` chooses."""
    for item in items:
        if "browser" in item.fixturenames:
            item.add_marker(pytest.mark.tool(*CHROMIUM))


def pytest_runtest_setup(item):
    """Skip what needs a tool that is not here. tool(NAME, ...): programs, any of which is enough."""
    for mark in item.iter_markers("tool"):
        if not any(map(shutil.which, mark.args)):
            pytest.skip(f"there is no {mark.args[0]} here: `make doctor` names the package")


@pytest.fixture(scope="session")
def labels():
    """Labels of all interpreters present; the chapter pair is always among them."""
    return [one.label for one in installed.present()]


@pytest.fixture(
    params=[
        pytest.param(one.label, marks=() if one.label in (GIL, FREE_THREADED) else pytest.mark.full)
        for one in installed.present()
    ]
)
def label(request):
    """Each interpreter that is here: the chapter pair in the default suite, the others in `make test-all`."""
    return request.param


@pytest.fixture(params=[GIL, FREE_THREADED])
def build(request):
    """Each build of the chapter pair."""
    return request.param


@pytest.fixture(params=chapter_names())
def chapter(request):
    return request.param


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
    """Nothing disturbs what a test measures, whatever else runs: no load is seen, and no neighbour on the core."""

    nothing = {"strangers_s": 0.0, "throttled_s": 0.0, "steal_s": 0.0, "wall_s": 0.1}
    quiet = SimpleNamespace(end=lambda children_s=0.0: dict(nothing))
    monkeypatch.setattr(machine, "Watch", lambda cpu=None: quiet)
    monkeypatch.setattr(neighbour, "of_processes", lambda cases, cores: [0.0] * len(cases))
    monkeypatch.setattr(
        neighbour, "shares", lambda blocks, cells, cores: {cell: np.zeros(len(blocks)) for cell in cells}
    )


# It ends with the tests, also when these are killed.
BUSY = "import os\nparent = os.getppid()\nwhile os.getppid() == parent: pass"


@pytest.fixture
def busy_machine():
    """Something else wants every core, from before a test until after it."""
    with contextlib.ExitStack() as stack:
        for _ in range(machine.cores_usable()):
            stack.enter_context(group([sys.executable, "-c", BUSY]))
        yield


@pytest.fixture
def one_core():
    """This test, and what it starts, may use one core."""
    usable = machine.cores_to_pin()
    if not usable:
        pytest.skip("this system cannot pin a process to a core")
    os.sched_setaffinity(0, usable[:1])
    yield usable[0]
    os.sched_setaffinity(0, usable)


@pytest.fixture
def cache_home(tmp_path, monkeypatch):
    """A cache that nothing was built into yet; its folder."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def hide_tools(monkeypatch, tmp_path_factory):
    """A function that hides programs from a test and from what it starts: PATH becomes a folder of links without
    them."""

    def hide(*names):
        folder = tmp_path_factory.mktemp("bin")
        for path in os.environ["PATH"].split(os.pathsep):
            for program in Path(path).iterdir() if os.path.isdir(path) else ():
                if program.name not in names and not (folder / program.name).is_symlink():
                    (folder / program.name).symlink_to(program)
        monkeypatch.setenv("PATH", str(folder))

    return hide


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
    """Headless Chromium; one for all tests, as a thread can drive one only."""
    from playwright.sync_api import sync_playwright

    path = next(filter(None, map(shutil.which, CHROMIUM)))
    off = ("gpu", "quic", "background-networking", "component-update", "sync")
    flags = ["--no-sandbox", "--no-first-run", *(f"--disable-{name}" for name in off)]
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=path, args=flags)
        yield chromium
        chromium.close()


@pytest.fixture
def displayed(monkeypatch):
    """What cells of a page that is a result display: (what, its metadata) of each."""
    from ffilab.page import draw

    shown = []
    monkeypatch.setattr(draw, "_page", dict(draw._page))
    monkeypatch.setattr(draw, "display", lambda what, metadata=None, **_: shown.append((what, metadata or {})))
    draw.start_page(True)
    return shown


@pytest.fixture
def open_tab(browser):
    """A function that opens an address in a tab: in a browser of its own, as wide as a desk, unless it is given the
    context of another tab. An error on a page fails the test."""
    errors = []

    def opened(address, width=1280, context=None, **options):
        if not context:
            context = browser.new_context(viewport={"width": width, "height": 900}, **options)
            stack.callback(context.close)
        tab = context.new_page()
        tab.on("pageerror", lambda error: errors.append(str(error)))
        tab.goto(address)
        return tab

    with contextlib.ExitStack() as stack:
        yield opened
    assert errors == []


@pytest.fixture(scope="module")
def source_tree(tmp_path_factory):
    """An assembled tree of sources in which loaders was measured."""
    from tests.helpers import source_pages

    return source_pages.source_tree(tmp_path_factory.mktemp("tree"))


@pytest.fixture
def executed(chapter, request):
    """A parametrised `chapter`, made from golden records, of a `variant` if the test has one. Shared: see
    golden_pages.py."""
    from tests.helpers import golden_pages

    variant = request.getfixturevalue("variant") if "variant" in request.fixturenames else golden_pages.MEASURED
    return golden_pages.page(chapter, variant)


@pytest.fixture(scope="session")
def golden_book():
    """The whole book made from golden records of real runs: a folder of pages; beside it `generated`, the parts that
    were put in."""
    from ffilab.page import render
    from tests.helpers import golden_pages

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
