"""The first run on a machine: two lanes of work, what is said of the time, and a first page to read."""

import contextlib
import io
import itertools
import os
import signal
import threading
import time

import psutil
import pytest
from rich.console import Console

from ffilab import native, progress, subprocesses
from ffilab.errors import UserError
from ffilab.lanes import second_lane
from ffilab.press import book, forecast
from ffilab.press.chapters import Chapter
from ffilab.provision import build, environments, installed, interpreters
from ffilab.provision.catalogue import BY_LABEL, CHAPTER_PAIR, Request, parse
from ffilab.provision.stages import STAGES, Stages, expected

GIL, FREE_THREADED = CHAPTER_PAIR
LONG_S = 120
PATIENCE_S = 30
TITLES = {stage.name: stage for stage in STAGES}
TRAINING = TITLES["training run"].begins


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


# Progress


class Clock:
    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now


def simulated(slowness=1.0, many=1.0, jobs=2):
    """Shares as a reader sees them, one each second: a build of CPython that takes `slowness` times as long as expected, and
    prints `many` times as many lines."""
    clock = Clock()
    going = Stages(jobs, expected(jobs), clock)
    for stage in STAGES[1:]:
        if not stage.begins:
            going.enter(stage.name)
        elif stage.name == "instrumented build":
            # What a real make prints before it begins: the heading of the training, far too early.
            going.enter(stage.name)
            going.line("Running code to generate profile data (this can take a while):")
            going.line(stage.begins + ":")
        else:
            going.line(f"# Next, {stage.begins} to generate the profile information.")
        seconds = int(stage.expected(jobs) * slowness)
        for second in range(seconds):
            clock.now += 1
            for _ in range(
                int(stage.lines * many * (second + 1) / seconds) - int(stage.lines * many * second / seconds)
            ):
                going.line("cc -c x.c")
            yield going.name, going.share(), going.left()


@pytest.mark.parametrize("slowness", [0.3, 1, 4])
@pytest.mark.parametrize("many", [0.2, 1, 5])
def test_the_bar_of_a_build_never_stands_and_never_ends_too_early(slowness, many):
    seen = list(simulated(slowness, many))
    shares = [share for _, share, _ in seen]
    assert all(before < after < 1 for before, after in itertools.pairwise(shares))
    # 99 % is for the last stage.
    assert max(share for name, share, _ in seen if name != "install") < 0.985
    assert all(left > 0 for *_, left in seen)
    assert list(dict.fromkeys(name for name, *_ in seen)) == [stage.name for stage in STAGES[1:]]


def test_a_build_as_expected_shows_the_share_of_its_time():
    seen = list(simulated())
    for second, (_, share, left) in enumerate(seen, 1):
        assert share == pytest.approx(second / len(seen), abs=0.06)
        assert left == pytest.approx(len(seen) - second, abs=0.1 * len(seen))


def test_a_silent_training_goes_on_by_the_time():
    shares = [share for name, share, _ in simulated() if name == "training run"]
    assert len(shares) > 10
    assert shares[-1] - shares[0] > 0.05


def test_a_build_that_goes_on_where_it_stopped_begins_in_the_middle():
    going = Stages(2, expected(2), Clock())
    going.enter("instrumented build")
    going.line("Rebuilding with profile guided optimizations:")
    assert going.name == "final build"
    # `make install` looks at the earlier targets again.
    going.enter("install")
    going.line("Rebuilding with profile guided optimizations:")
    assert going.name == "install"


def test_more_cores_shorten_what_make_can_share_out():
    assert (
        sum(stage.seconds for stage in STAGES if stage.cores)
        < expected(64)
        < expected(2)
        == pytest.approx(274, rel=0.2)
    )


def test_the_last_whole_build_says_how_long_the_next_takes():
    assert build.expected_seconds() == expected(os.cpu_count())
    folder = build.prefix(GIL)
    folder.mkdir(parents=True)
    said = '{"seconds": 1234, "jobs": %d, "whole": %s}'
    (folder / "ffilab-build.json").write_text(said % (os.cpu_count(), "true"))
    assert build.expected_seconds() == 1234
    # One that was interrupted took longer than it says.
    (folder / "ffilab-build.json").write_text(said % (os.cpu_count(), "false"))
    assert build.expected_seconds() == expected(os.cpu_count())


def test_more_work_than_expected_is_said_and_is_never_100_percent(monkeypatch):
    said = []
    monkeypatch.setattr(progress, "say", said.append)
    monkeypatch.setattr(progress, "LOG_INTERVAL_S", -1)
    monkeypatch.setattr(progress, "console", Console(file=io.StringIO()))
    with progress.step("work") as bar:
        for share in (0.5, 1, 1.5, 20, 1000):
            bar.update(share)
    percents = [int(line.partition("%")[0].split()[-1]) for line in said if "%" in line]
    assert percents == [50, 97, 99, 99, 99]
    assert "longer than expected" in said[-2]


class Screen(io.StringIO):
    def isatty(self):
        return True


def test_steps_of_two_threads_share_one_display(monkeypatch):
    screen = Screen()
    monkeypatch.setattr(progress, "console", Console(file=screen, force_terminal=True, width=120))
    both = threading.Barrier(2, timeout=PATIENCE_S)

    def work(title):
        with progress.step(title) as bar:
            both.wait()
            bar.update(0.5, f"detail of {title}")
            wait_until(lambda: f"detail of {title}" in screen.getvalue())
            both.wait()

    with second_lane() as later:
        later(work, "one")
        work("other")
    for title in ("one", "other"):
        assert f"{title}: done in" in screen.getvalue()
    # The next step finds the terminal free.
    with progress.step("next"):
        assert len(progress.bars.enter().tasks) == 1
        progress.bars.leave()


def test_ticking_ends_with_its_work():
    ticks = []
    with progress.ticking(lambda: ticks.append(1), every_s=0.01):
        wait_until(lambda: len(ticks) > 2)
    count = len(ticks)
    time.sleep(0.05)
    assert len(ticks) == count


# Lanes


def wait_until(true):
    deadline = time.monotonic() + PATIENCE_S
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def found(interpreter):
    return interpreters.Found(interpreter, "x", "source")


@pytest.fixture
def builders(monkeypatch):
    """Builders that only note what happens; interpreters come by compiling. `before` holds what they wait for."""
    events, before = [], {}

    def note(event):
        wait_until(lambda: before.get(event, event) in [*events, event])
        events.append(event)

    def source(interpreter):
        note(f"compile {interpreter.label}")
        note(f"{interpreter.label} is there")
        return found(interpreter)

    def make(one):
        note(f"environment {one.interpreter.label}")
        return installed.Installed(one.interpreter, None, {"version": "x", "route": "source"})

    monkeypatch.setattr(interpreters, "known_to_uv", lambda i: None)
    monkeypatch.setattr(interpreters.Downloads, "install", lambda self, i: None)
    monkeypatch.setattr(interpreters, "source", source)
    monkeypatch.setattr(environments, "make", make)
    monkeypatch.setattr(native, "build_libraries", lambda: note("libraries"))
    monkeypatch.setattr(native, "build_extensions", lambda one: note(f"extensions {one.label}"))
    return events, before


def test_native_projects_are_built_while_an_interpreter_compiles(builders):
    events, before = builders
    # Each waits for something of the other lane: one after the other they would wait for ever.
    before |= {"libraries": "compile 3.14", "3.14 is there": "libraries"}
    before |= {"extensions 3.14": "compile 3.14t", "3.14t is there": "extensions 3.14"}
    one, other = book.set_up(Request({}, CHAPTER_PAIR, ()), lambda: events.append("compiled"))
    assert (one.label, other.label) == ("3.14", "3.14t")
    assert events.index("3.14 is there") < events.index("environment 3.14") < events.index("extensions 3.14")
    assert events.index("3.14t is there") < events.index("compiled")
    assert events.index("environment 3.14t") < events.index("extensions 3.14t")


def test_environments_alone_are_made_behind_too(builders):
    events, before = builders
    before |= {"3.14t is there": "environment 3.14"}
    assert [one.label for one in environments.provision(parse("pair"))] == ["3.14", "3.14t"]
    assert "libraries" not in events


def child(begun=lambda: None):
    """Run a long child as the builders do; returns as `logged` does."""
    with subprocesses.group(["sleep", str(LONG_S)]) as process:
        begun()
        return process.wait()


def children():
    return [one for one in psutil.Process().children(recursive=True) if one.name() == "sleep"]


def nothing_is_left():
    assert not children()
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("second lane")]
    # And the next work may start children again.
    with subprocesses.group(["true"]) as process:
        assert process.wait() == 0


def test_an_error_of_the_second_lane_stops_the_first():
    def fails():
        wait_until(children)
        raise UserError("the library failed")

    def both():
        with second_lane() as later:
            later(fails)
            child()
            pytest.fail("the first lane went on to its end")

    with pytest.raises(UserError, match="the library failed"):
        both()
    nothing_is_left()


def test_an_error_of_the_first_lane_stops_the_second():
    never = []

    def both():
        with second_lane() as later:
            later(child)
            later(never.append, "begun")
            wait_until(children)
            raise UserError("the interpreter failed")

    with pytest.raises(UserError, match="the interpreter failed"):
        both()
    assert not never
    nothing_is_left()


def test_the_first_error_is_raised_when_the_first_lane_is_done():
    done = []

    def both():
        with second_lane() as later:
            later(done.append, "before")
            later(fail_with, UserError("late"))

    with pytest.raises(UserError, match="late"):
        both()
    assert done == ["before"]
    nothing_is_left()


def fail_with(error):
    raise error


def test_a_lane_that_is_between_two_children_starts_no_other():
    def between():
        wait_until(subprocesses._ending.is_set)
        child()

    def both():
        with second_lane() as later:
            later(between)
            raise KeyboardInterrupt

    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        both()
    assert time.monotonic() - began < LONG_S / 2
    nothing_is_left()


@pytest.mark.parametrize("where", ["in a child", "waiting for the second lane"])
def test_an_interrupt_stops_both_lanes(where):
    def interrupt():
        wait_until(lambda: len(children()) == (2 if where == "in a child" else 1))
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=interrupt).start()

    def both():
        with second_lane() as later:
            later(child)
            later(child)
            if where == "in a child":
                child()

    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        both()
    assert time.monotonic() - began < LONG_S / 2
    nothing_is_left()


def test_an_extension_whose_build_was_interrupted_is_not_noted_as_failed(tmp_path, monkeypatch):
    project = tmp_path / "corner" / "binding"
    project.mkdir(parents=True)
    (project / "pyproject.toml").write_text('[project]\nname = "x"\n')
    monkeypatch.setattr(native, "soabi", lambda one: "tag")

    def extension(*_):
        if child():
            raise UserError("the build failed")

    monkeypatch.setattr(native, "_extension", extension)

    def both():
        with second_lane() as later:
            later(native.build_extensions, installed.Installed(GIL, None, {}), tmp_path, tmp_path / "out")
            wait_until(children)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        both()
    assert not list((tmp_path / "out").rglob("missing-*"))
    nothing_is_left()


@pytest.mark.skipif(not hasattr(os, "sched_setscheduler"), reason="a priority for each thread is Linux's")
def test_the_second_lane_takes_what_the_first_leaves():
    with second_lane() as later:
        nice = later(os.getpriority, os.PRIO_PROCESS, 0).result()
    assert nice > os.getpriority(os.PRIO_PROCESS, 0)


# The book


@pytest.fixture
def press(tmp_path, monkeypatch):
    """A book of three chapters that only notes what happens."""
    events = []
    corners = ["arenas", "loaders", "races"]
    monkeypatch.setattr(book, "HTML", tmp_path / "html")
    monkeypatch.setattr(book, "RESULTS", tmp_path / "results")
    monkeypatch.setattr(book, "chapters", lambda: [Chapter(corner, executed_folder=tmp_path) for corner in corners])
    monkeypatch.setattr(book.status, "in_order", lambda: [Chapter("loaders")])
    monkeypatch.setattr(book, "source_digests", lambda corner: {})
    monkeypatch.setattr(book, "set_up", lambda request, compiled: compiled() or [installed.Installed(GIL, None, {})])
    monkeypatch.setattr(book, "drawn_layouts", lambda *_: contextlib.nullcontext())
    # Not in no time: the book says in which share of it.
    monkeypatch.setattr(book, "execute", lambda each, *_, **__: time.sleep(0.1) or events.append(each.corner))
    monkeypatch.setattr(book.render, "render", lambda: events.append("render"))
    monkeypatch.setattr(interpreters, "not_at_hand", lambda request: [])
    monkeypatch.setenv(installed.CHOSEN, "")
    return events


def test_the_chapter_that_is_read_first_is_rendered_before_the_others_are_measured(press, capsys):
    book.book(parse("pair"), "smoke")
    assert press == ["loaders", "render", "arenas", "races", "render"]
    assert "notebooks/loaders/loaders.html" in capsys.readouterr().err


def test_where_pages_are_already_there_they_are_rendered_once(press):
    book.HTML.mkdir()
    (book.HTML / "index.html").touch()
    book.book(parse("pair"), "smoke")
    assert press == ["arenas", "loaders", "races", "render"]


def test_a_first_page_that_cannot_be_rendered_stops_no_measuring(press, monkeypatch, capsys):
    def render():
        press.append("render")
        if "races" not in press:
            raise UserError("a page is missing")

    monkeypatch.setattr(book.render, "render", render)
    book.book(parse("pair"), "smoke")
    assert press == ["loaders", "render", "arenas", "races", "render"]
    assert "a page is missing" in capsys.readouterr().err


def test_the_run_says_at_once_how_long_it_takes_and_after_each_part_what_is_left(press, capsys):
    book.book(parse("pair"), "quick")
    said = [line for line in capsys.readouterr().err.splitlines() if "about" in line]
    assert "in all" in said[0]
    assert "chapters" in said[0]
    assert [line.split(";")[0].strip() for line in said if "chapters;" in line] == [
        f"{number} of 3 chapters" for number in (1, 2, 3)
    ]
    # The chapters took no time at all, and that is what the next run expects.
    assert forecast.remembered()["chapter quick arenas"] < 5


# What is expected


def test_an_interpreter_to_be_compiled_counts(monkeypatch, tmp_path):
    monkeypatch.setattr(forecast, "NATIVE_OUT", tmp_path / "native")
    monkeypatch.setattr(interpreters, "known_to_uv", lambda i: None)
    cold = forecast.of(parse("pair"), ["loaders"], "quick", early=True)
    for label in ("3.14", "3.14t"):
        path = build.executable(BY_LABEL[label])
        path.parent.mkdir(parents=True)
        path.write_text(f"#!/bin/sh\necho {label}\n")
        path.chmod(0o755)
        (tmp_path / "native" / "loaders" / f"cpython-{label.replace('.', '')}-x86_64-linux-gnu").mkdir(parents=True)
    warm = forecast.of(parse("pair"), ["loaders"], "quick", early=False)
    assert cold.left() - warm.left() > 2 * build.expected_seconds()
    assert warm.done(forecast.INTERPRETERS) == warm.done(forecast.NATIVE) == 0


def test_one_of_two_at_hand_is_not_enough(monkeypatch):
    monkeypatch.setattr(interpreters, "known_to_uv", lambda i: found(i) if i == GIL else None)
    assert interpreters.not_at_hand(parse("pair")) == [GIL, FREE_THREADED]
    monkeypatch.setattr(interpreters, "known_to_uv", found)
    assert interpreters.not_at_hand(parse("pair")) == []
    assert interpreters.not_at_hand(parse("3.14=/x")) == []


def test_chapters_go_on_at_the_pace_of_those_before():
    names = [forecast.chapter("quick", corner) for corner in ("a", "b", "c")]
    going = forecast.Forecast({**dict.fromkeys(names, 100), forecast.RENDERING: 10})
    assert going.left() == 310
    going.done(names[0], 200)
    assert going.left() == 410
    assert forecast.remembered() == {names[0]: 200}
    assert going.done("what nobody expected", 5) == 0
    assert "what nobody expected" not in forecast.remembered()


def test_an_interrupt_in_the_middle_of_a_start_leaves_no_child(monkeypatch):
    started = subprocesses.subprocess.Popen

    def interrupted(*words, **options):
        process = started(*words, **options)
        os.kill(os.getpid(), signal.SIGINT)
        return process

    monkeypatch.setattr(subprocesses.subprocess, "Popen", interrupted)
    with pytest.raises(KeyboardInterrupt):
        child()
    monkeypatch.undo()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    nothing_is_left()
