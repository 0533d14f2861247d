"""Every native project in C or C++ under AddressSanitizer, UndefinedBehaviorSanitizer and ThreadSanitizer.

Each project is built by its own tool, out of the tree, with the sanitizer's flags; a stock interpreter loads it and
calls all of it (`helpers/sanitized.py`, or what the chapter's cells define). The sources as they are must bring no
report. A copy of one project with a mistake planted for each sanitizer must bring that sanitizer's report, from the
right file, and no other: else silence would mean nothing.

ThreadSanitizer needs to see what orders two accesses. The interpreter is not instrumented; what is seen of it all the
same:

- The GIL. It is a pthread mutex with a condition, and the sanitizer intercepts those.
- Threads' starts and ends, sockets, and what headers inline into an extension: atomics, and PyMutex where it is free.
- With `SECTIONS` linked in: critical sections, and PyMutex where it is not free. These are functions of the
interpreter; the
  linker puts ours in their places, which call them, and tell the sanitizer.

What is not seen: locks inside the interpreter, among them `threading.Lock` and those of its allocator. So a report
counts only if both accesses are in a project's own code, and not in the interpreter's (`of_ours`).
"""

import json
import re
import runpy
import shlex
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from ffilab.measure import instructions
from ffilab.measure.case import program
from ffilab.measure.source import source_of
from ffilab.measure.workers import WORKER
from ffilab.run.machine import compiler, compiler_command, cores_usable
from ffilab.run.paths import NATIVE, ROOT
from ffilab.setup import installed, native
from ffilab.setup.catalogue import BY_LABEL, FREE_THREADED, GIL
from notebooks.sharing import experiment as sharing
from tests.helpers import arrays_worker, balm_worker, buffers_worker
from tests.helpers.environment import clean_environment, ran, script

pytestmark = pytest.mark.full

ASAN, UBSAN, TSAN = "AddressSanitizer", "UndefinedBehaviorSanitizer", "ThreadSanitizer"
# One build has the first two: they bear each other. Both go on after a report.
KINDS = {"address,undefined": (ASAN, UBSAN), "thread": (TSAN,)}
MEMORY, THREADS = KINDS
RUNTIMES = {MEMORY: "libasan.so", THREADS: "libtsan.so"}
INSTRUMENTED = Path(__file__).parent / "helpers" / "sanitized.py"
CONTRACTS = runpy.run_path(str(ROOT / "tests" / "boundary" / "test_conformance.py"))["CONTRACTS"]
CALLS = [*CONTRACTS, "m.add_one(2**31 - 1)", "emptied(m)"]
# A call that a tool lets through to C, which then reads behind an end: the chapter's table of contracts tells of it.
LET_THROUGH = {"boundary/cffi_abi": "m.scale([], 2.0)", "boundary/cffi_api": "m.scale([], 2.0)"}

# Runs in a process of its own for each build, with the flags in its environment.
BUILD = """
import sys
from pathlib import Path
from ffilab.setup import installed, native
from ffilab.setup.catalogue import BY_LABEL

project, out, *labels = sys.argv[1:]
sys.exit("\\n".join(native.build(Path(project), [installed.load(BY_LABEL[one]) for one in labels], Path(out))) or None)
"""

# Locks of the interpreter, and what ThreadSanitizer must know of them.
SECTIONS = INSTRUMENTED.with_name("sections.c")
WRAPPED = re.findall(r"^SEEN\((\w+)", SECTIONS.read_text(), re.M)

# Projects that are programs: what to run.
PROGRAMS = {
    "placement/programs": ["functions time 1", "functions run 64 8 9", "loops time 1", "stack"],
    "placement/story/first_commit": ["machine once"],
    "races/sanitizers": [
        f"stress '{variant}'" for variant in ("counter, mutex", "counter, atomic", "bank, mutex", "lazy table, mutex")
    ],
}
# Projects of chapters whose functions stand in their cells: what calls all of it.
IN_CELLS = {
    "balm/balm": balm_worker.everything,
    **{f"arrays/{path.parent.name}": arrays_worker.everything for path in NATIVE.glob("arrays/*/pyproject.toml")},
}
# A project that takes the rest of its functions from a neighbour: both are built.
TAKES_FROM = {"boundary/cython_tuned": "boundary/cython"}
MISTAKEN = "races/shared_state"
# For each sanitizer a mistake: the file, what stands there once, what is put in its place.
PLANTED = {
    ASAN: ("remedies.c", "return pair->left != pair->right;", "return pair->left != (&pair->right)[2];"),
    UBSAN: ("shared_state.c", "now.tv_sec * INT64_C(1000000000)", "(int)now.tv_sec * 1000000000"),
    TSAN: ("remedies.c", "PyMutex_Lock(&lock);\n        locked++;\n        PyMutex_Unlock(&lock);", "locked++;"),
}


def is_looked_at(project):
    """Left out: Rust, whose stable compiler offers no sanitizers, and projects of a neighbour's sources
    (`sources-of`)."""
    of_a_neighbour = native.is_extension(project) and "sources-of" in native.ours(project)
    return not (project / "Cargo.toml").exists() and not of_a_neighbour


def labels_of(project):
    """The interpreters that load it, if it is built for each; the free-threaded one for a library, None for
    programs."""
    if project in PROGRAMS:
        return [None]
    if not native.is_extension(NATIVE / project):
        return [FREE_THREADED]
    pair = {label: installed.load(BY_LABEL[label]) for label in (GIL, FREE_THREADED)}
    return [label for label, interpreter in pair.items() if not native.unsupported(NATIVE / project, interpreter)]


PROJECTS = sorted(str(path.relative_to(NATIVE)) for path in native.projects() if is_looked_at(path))


@pytest.fixture(scope="module")
def built(request, tmp_path_factory):
    """A function of (project, kind, planted): the folder that holds what was built. Builds for the chosen tests run
    ahead."""
    folder = tmp_path_factory.mktemp("sanitizers")
    environments = {kind: flags(folder, kind) for kind in KINDS}
    chosen = [item.callspec.params for item in request.session.items if item.module is request.module]
    keys = [(params.get("project", MISTAKEN), params["kind"], "project" not in params) for params in chosen]
    with ThreadPoolExecutor(cores_usable()) as pool:
        jobs = {
            key: pool.submit(build, folder / str(number), *key, environments[key[1]]) for number, key in enumerate(keys)
        }
        yield lambda *key: jobs[key].result()
        pool.shutdown(cancel_futures=True)


def flags(folder, kind):
    """Variables with which every tool builds for a sanitizer. `-O0` comes last, after what a project asks for."""
    runtime(kind)
    compilers = folder / kind
    compilers.mkdir()
    for name, real in (("cc", compiler()), ("c++", "c++")):
        script(compilers / name, f'exec {real} "$@" -O0')
    instrument = f"-fsanitize={kind} -fno-omit-frame-pointer -g"
    link = f"-fsanitize={kind}"
    if kind == MEMORY:
        instrument += " -fsanitize-recover=address"
    else:
        built = compilers / "sections.o"
        subprocess.run([*compiler_command(), "-fPIC", "-c", SECTIONS, "-o", built], check=True)
        link += f" {built} " + " ".join(f"-Wl,--wrap={name}" for name in WRAPPED)
    # Debug, or what CMake builds has its symbols taken away.
    of_cmake = {"SKBUILD_CMAKE_BUILD_TYPE": "Debug"}
    return {"CC": str(compilers / "cc"), "CFLAGS": instrument, "CXXFLAGS": instrument, "LDFLAGS": link, **of_cmake}


def build(folder, project, kind, planted, environment):
    """Build a copy of a project, if asked with its mistakes, for each interpreter that the tests use."""
    source = folder / "native" / project
    if neighbour := TAKES_FROM.get(project):
        build(folder, neighbour, kind, planted, environment)
    # What it shares with its neighbours.
    for copy in {source, source.parent / "library"}:
        if (original := NATIVE / copy.relative_to(folder / "native")).exists():
            shutil.copytree(original, copy, ignore=shutil.ignore_patterns("build", "machine"), dirs_exist_ok=True)
    for tool in KINDS[kind] if planted else ():
        plant(source, *PLANTED[tool])
    labels = [mistaken(kind)] if planted else labels_of(project)
    command = [sys.executable, "-c", BUILD, source, folder / "out", *filter(None, labels)]
    own = {**clean_environment(), **environment, "FFILAB_BUILD": str(folder / "build")}
    done = ran(*command, cwd=ROOT, env=own, timeout=300)
    assert done.returncode == 0, done.stderr
    return folder


def plant(source, file, old, new):
    text = (source / file).read_text()
    assert text.count(old) == 1, f"{file} has not one {old!r}: choose another mistake"
    (source / file).write_text(text.replace(old, new))


def mistaken(kind):
    """The interpreter that runs the mistakes: with the GIL, where objects of Python can come from malloc; for threads
    without, where critical sections do something."""
    return GIL if kind == MEMORY else FREE_THREADED


def runtime(kind):
    """The sanitizer's library, which a process must load first. Skips where the compiler has none."""
    found = of_the_compiler(RUNTIMES[kind])
    if not Path(found).is_absolute():
        pytest.skip(f"the compiler here has no {RUNTIMES[kind]}")
    return found


def of_the_compiler(name):
    """Where the compiler has a library; its name alone where it has none."""
    return ran(*compiler_command(), f"-print-file-name={name}").stdout.strip()


def commands_of(folder, project, label, runtime):
    """The command lines that use what was built, as a function of the project and of the interpreter that loads it."""
    out = folder / "out"
    if project in PROGRAMS:
        commands = [shlex.split(line) for line in PROGRAMS[project]]
        place = out if (out / commands[0][0]).exists() else folder / "native" / project
        return [[place / name, *arguments] for name, *arguments in commands]
    if everything := IN_CELLS.get(project):
        return [preloaded(runtime, label, called("everything", everything, folder=str(out)))]
    calls = json.dumps([call for call in CALLS if call != LET_THROUGH.get(project)])
    return [preloaded(runtime, label, [INSTRUMENTED, project, NATIVE, out, calls])]


def called(name, function, **arguments):
    """What has a worker call a function of a cell, or one beside it."""
    return [WORKER, "case", source_of(**{name: function}), name, json.dumps(arguments)]


def preloaded(runtime, label, command):
    # The C++ library must be there when the sanitizer looks for what throws.
    libraries = f"LD_PRELOAD={runtime} {of_the_compiler('libstdc++.so.6')}"
    return ["env", libraries, installed.load(BY_LABEL[label]).python, "-s", *command]


def run(folder, project, kind, label):
    """How each process ended, and the reports on the project's own code: (sanitizer, files in its stack, text)."""
    return watched(folder, kind, label, commands_of(folder, project, label, runtime(kind)))


def watched(folder, kind, label, commands):
    options = "halt_on_error=0 hard_rss_limit_mb=4000"
    environment = {
        "ASAN_OPTIONS": f"detect_leaks=0 {options}",
        "UBSAN_OPTIONS": "print_stacktrace=1",
        "TSAN_OPTIONS": f"exitcode=0 history_size=7 {options}",
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    if label == GIL:
        # Each object is a block of its own, with borders. The other build has its own allocator and no choice.
        environment["PYTHONMALLOC"] = "malloc"
    # Shadow memory of ThreadSanitizer does not fit every address layout.
    fixed = instructions.fixed_addresses() if kind == THREADS else []
    ended, reports = set(), []
    for command in commands:
        end, _, err = program([*fixed, *command], 120, environment, memory_bytes=None)
        if "unexpected memory mapping" in err:
            pytest.skip("its shadow memory does not fit this system's address randomisation, which stays on")
        ended.add(end if end == "ok" else f"{end}: {err[-1000:]}")
        reports += of_ours(err, folder)
    return ended, reports


# Where a report begins, and the name of its sanitizer.
BEGINS = re.compile(r"^(?:==\d+==ERROR: |WARNING: )(\w+Sanitizer): |^(\S+?):\d+:\d+: runtime error: ", re.M)
FRAME = re.compile(r"^ +#\d+ (?:0x\w+ in )?(.*)$", re.M)
OF_THE_TOOLS = re.compile(r"\blib(a|t|ub)san\b|/libsanitizer/")


def of_ours(said, folder):
    """(sanitizer, names of the files in the stack) of each report on what was built in this folder, less those of
    ThreadSanitizer with an access in the interpreter: it does not see what orders that one."""
    starts = list(BEGINS.finditer(said))
    found = []
    for start, after in zip(starts, [*starts[1:], None]):
        text = said[start.start() : after.start() if after else len(said)]
        tool = start.group(1) or UBSAN
        stacks = [FRAME.findall(part) for part in text.split("\n\n")]
        accesses = [
            [frame for frame in stack if not OF_THE_TOOLS.search(frame)] for stack in stacks[: 2 if tool == TSAN else 1]
        ]
        if "data race" in text and not all(stack and in_folder(stack[0], folder) for stack in accesses):
            continue
        files = {Path(name).name for stack in accesses for frame in stack for name in re.findall(r"(\S+?):\d+", frame)}
        found.append((tool, files | {Path(start.group(2)).name} if start.group(2) else files, text[:3000]))
    return found


def in_folder(frame, folder):
    """Is this frame in a shared object or a program that was built there?"""
    place = re.search(r"\(([^()+]+)\+0x\w+\)", frame)
    return bool(place) and any(folder.rglob(Path(place.group(1)).name))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("project", PROJECTS)
def test_the_sanitizers_say_nothing(project, kind, built):
    for label in labels_of(project):
        ended, reports = run(built(project, kind, False), project, kind, label)
        assert not reports, (label, reports[0][2])
        assert ended == {"ok"}, label


@pytest.mark.parametrize("kind", KINDS)
def test_each_sanitizer_would_find_a_mistake(kind, built):
    expected = {(tool, PLANTED[tool][0]) for tool in KINDS[kind]}
    # Whether two threads meet is a matter of luck, and so is whose lines stand between whose where several report.
    for _ in range(5):
        ended, reports = run(built(MISTAKEN, kind, True), MISTAKEN, kind, mistaken(kind))
        located = {(tool, file) for tool, files, _ in reports for file in files}
        if located >= expected:
            break
    assert located >= expected, (ended, reports)
    assert {tool for tool, _, _ in reports} == set(KINDS[kind])


# What the chapter on sharing says of a buffer that changes while C reads it: by the sanitizer, what exports, what C
# holds and what happens meanwhile. Empty: no report. Memory is seen with the GIL alone, where objects can come from
# malloc.
HELD, BARE = "the Py_buffer", "the pointer"
FREED = "heap-use-after-free"
BUFFERS = {
    **{(MEMORY, kind, BARE, how): FREED for kind in sharing.EXPORTERS for how in ("resized", "dropped")},
    **{(MEMORY, kind, HELD, "dropped"): "" for kind in sharing.EXPORTERS},
    **{(MEMORY, kind, HELD, "resized"): "" for kind in ("bytearray", "array.array")},
    **{(MEMORY, kind, HELD, "resized"): FREED for kind in ("ctypes array", "NumPy array")},
    **{(THREADS, "array.array", holding, "written by C"): "data race" for holding in (BARE, HELD)},
}


@pytest.mark.parametrize("project", ["sharing/waiting"])
@pytest.mark.parametrize(("kind", "exporter", "holding", "meanwhile"), BUFFERS)
def test_of_a_buffer_that_changes_the_sanitizers_say_what_the_page_says(
    project, kind, exporter, holding, meanwhile, built
):
    folder, label = built(project, kind, False), mistaken(kind)
    given = {"folder": str(folder / "out")}
    if kind == MEMORY:
        given |= {"kind": exporter, "holding": holding, "meanwhile": meanwhile, "size": 1 << 16, "ms": 50}
        scene = called("changed_while_read", sharing.changed_while_read, **given)
    else:
        scene = called("written_while_read", buffers_worker.written_while_read, keep=holding == HELD, **given)
    ended, reports = watched(folder, kind, label, [preloaded(runtime(kind), label, scene)])
    assert ended == {"ok"}
    said = [text for tool, files, text in reports if "sharing_waiting.c" in files and tool in KINDS[kind]]
    expected = BUFFERS[kind, exporter, holding, meanwhile]
    assert bool(said) == bool(reports) == bool(expected), reports
    assert all(expected in text for text in said)
