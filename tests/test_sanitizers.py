"""Every native project in C or C++ under AddressSanitizer, UndefinedBehaviorSanitizer and ThreadSanitizer.

Each project is built by its own tool, out of the tree, with the sanitizer's flags; a stock interpreter loads it and calls all
of it (`sanitized.py`). The sources as they are must bring no report. Copies with a mistake planted for each sanitizer must
bring that sanitizer's report, from the right file, and no other: else silence would mean nothing.

ThreadSanitizer needs to see what orders two accesses. The interpreter is not instrumented; what is seen of it all the same:

- The GIL. It is a pthread mutex with a condition, and the sanitizer intercepts those.
- Threads' starts and ends, sockets, and what headers inline into an extension: atomics, and PyMutex where it is free.
- With `SECTIONS` linked in: critical sections, and PyMutex where it is not free. These are functions of the interpreter; the
  linker puts ours in their places, which call them, and tell the sanitizer.

What is not seen: locks inside the interpreter, among them `threading.Lock` and those of its allocator. So a report counts only
if both accesses are in a project's own code, and not in the interpreter's (`of_ours`).
"""

import json
import re
import runpy
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from conftest import clean_environment

from ffilab import native
from ffilab.bench import instructions
from ffilab.bench.case import program
from ffilab.machine import compiler, cores_usable
from ffilab.paths import NATIVE, ROOT
from ffilab.provision import installed
from ffilab.provision.catalogue import BY_LABEL, FREE_THREADED, GIL

pytestmark = pytest.mark.slow

ASAN, UBSAN, TSAN = "AddressSanitizer", "UndefinedBehaviorSanitizer", "ThreadSanitizer"
# One build has the first two: they bear each other. Both go on after a report.
KINDS = {"address,undefined": (ASAN, UBSAN), "thread": (TSAN,)}
MEMORY, THREADS = KINDS
RUNTIMES = {MEMORY: "libasan.so", THREADS: "libtsan.so"}
INSTRUMENTED = Path(__file__).with_name("sanitized.py")
CONTRACTS = runpy.run_path(str(ROOT / "tests" / "boundary" / "test_conformance.py"))["CONTRACTS"]
CALLS = [*CONTRACTS, "m.add_one(2**31 - 1)", "emptied(m)"]
# A call that a tool lets through to C, which then reads behind an end: the chapter's table of contracts tells of it.
LET_THROUGH = {"boundary/cffi_abi": "m.scale([], 2.0)", "boundary/cffi_api": "m.scale([], 2.0)"}

# Runs in a process of its own for each build, with the flags in its environment.
BUILD = """
import sys
from pathlib import Path
from ffilab import native
from ffilab.provision import installed
from ffilab.provision.catalogue import BY_LABEL

project, out, *labels = sys.argv[1:]
sys.exit("\\n".join(native.build(Path(project), [installed.load(BY_LABEL[one]) for one in labels], Path(out))) or None)
"""

# Locks of the interpreter, and what ThreadSanitizer must know of them. Weak: not every module calls each of them.
SECTIONS = """
typedef struct { void *previous, *mutex, *second; } Section;
void __tsan_acquire(void *), __tsan_release(void *);
#define SEEN(name, arguments, given, before, after)      \\
    __attribute__((weak)) void __real_##name arguments;  \\
    void __wrap_##name arguments { before; __real_##name given; after; }
#define ENTER(mutex) if (mutex) __tsan_acquire(mutex)
#define LEAVE(mutex) if (mutex) __tsan_release(mutex)
SEEN(PyMutex_Lock, (void *m), (m), , ENTER(m))
SEEN(PyMutex_Unlock, (void *m), (m), LEAVE(m), )
SEEN(PyCriticalSection_Begin, (Section *s, void *o), (s, o), , ENTER(s->mutex))
SEEN(_PyCriticalSection_BeginSlow, (Section *s, void *m), (s, m), , ENTER(s->mutex))
SEEN(PyCriticalSection_BeginMutex, (Section *s, void *m), (s, m), , ENTER(s->mutex))
SEEN(PyCriticalSection_End, (Section *s), (s), LEAVE(s->mutex), )
SEEN(PyCriticalSection2_Begin, (Section *s, void *a, void *b), (s, a, b), , ENTER(s->mutex); ENTER(s->second))
SEEN(PyCriticalSection2_End, (Section *s), (s), LEAVE(s->mutex); LEAVE(s->second), )
"""
WRAPPED = re.findall(r"^SEEN\((\w+)", SECTIONS, re.M)

# Projects that are programs: what to run.
PROGRAMS = {
    "placement/programs": [
        ["functions", "time", "1"],
        ["functions", "run", "64", "8", "9"],
        ["loops", "time", "1"],
        ["stack"],
    ],
    "placement/story/first_commit": [["machine", "once"]],
    "races/sanitizers": [
        ["stress", variant] for variant in ("counter, mutex", "counter, atomic", "bank, mutex", "lazy table, mutex")
    ],
}
# Why ThreadSanitizer has nothing to see there.
NO_THREADS = {project: "these programs have one thread" for project in list(PROGRAMS)[:2]}

LIBRARY = "../library/boundary.c"
SHARED = (LIBRARY, "uint32_t state = 1;", "static uint32_t state = 1;", "boundary.c")
OVERFLOW = (LIBRARY, "(int)((unsigned)x + 1u)", "x + 1", "boundary.c")
ONE_TOO_FAR = (LIBRARY, "sum += values[i];", "sum += values[i + 1];", "boundary.c")
# Project: for each sanitizer a mistake, as (file, what stands there once, what is put in its place, file in the report).
PLANTED = {
    "arenas/library": {
        ASAN: ("arenas.c", "i < bytes; i += 4096", "i <= bytes; i += 4096", "arenas.c"),
        UBSAN: ("arenas.c", "now.tv_sec * INT64_C(1000000000)", "(int)now.tv_sec * 1000000000", "arenas.c"),
        TSAN: ("arenas.c", "ns + (size_t)i * pairs", "ns", "arenas.c"),
    },
    "balm/balm": {
        ASAN: (
            "module.c",
            "PyMem_Free(self->lines);",
            "PyMem_Free(self->lines), self->count = self->lines->length;",
            "module.c",
        ),
        UBSAN: (
            "module.c",
            "return ((Text *)op)->count;",
            "return (int)((Text *)op)->count << 40 >> 40;",
            "module.c",
        ),
        TSAN: ("buffer.c", "count_add(&alive, 1);", "alive++;", "buffer.c"),
    },
    "boundary/c_api": {
        ASAN: ("boundary_c_api.c", "failed = items[i] == -1", "failed = items[i + 1] == -1", "boundary_c_api.c"),
        UBSAN: ("boundary_c_api.c", "PyLong_FromLong(add_one(x))", "PyLong_FromLong(x + 1)", "boundary_c_api.c"),
        TSAN: (
            "counter_type.cpp",
            "Py_BEGIN_CRITICAL_SECTION(self);\n    value = reinterpret_cast<CounterObject *>(self)->counter.add(n);\n"
            "    Py_END_CRITICAL_SECTION();",
            "value = reinterpret_cast<CounterObject *>(self)->counter.add(n);",
            "counter_type.cpp",
        ),
    },
    "boundary/c_api_limited": {
        ASAN: (
            "boundary_c_api_limited.cpp",
            "items[i] = PyLong_AsInt(item);",
            "items[i] = items[i + 1], items[i] = PyLong_AsInt(item);",
            "boundary_c_api_limited.cpp",
        ),
        UBSAN: (
            "boundary_c_api_limited.cpp",
            "PyLong_FromLong(add_one(x))",
            "PyLong_FromLong(x + 1)",
            "boundary_c_api_limited.cpp",
        ),
        # Its lock is the GIL.
        TSAN: (
            "boundary_c_api_limited.cpp",
            "sum = data_of<Counter>(self)->add(n);",
            "Py_BEGIN_ALLOW_THREADS sum = data_of<Counter>(self)->add(n); sleep_ms(1); Py_END_ALLOW_THREADS",
            "boundary_c_api_limited.cpp",
        ),
    },
    "boundary/cffi_abi": {
        ASAN: ONE_TOO_FAR,
        UBSAN: OVERFLOW,
        TSAN: SHARED,
    },
    "boundary/cffi_api": {
        ASAN: ONE_TOO_FAR,
        UBSAN: OVERFLOW,
        TSAN: SHARED,
    },
    "boundary/ctypes": {
        ASAN: ONE_TOO_FAR,
        UBSAN: OVERFLOW,
        TSAN: SHARED,
    },
    "boundary/cython": {
        ASAN: (
            "boundary_cython.pyx",
            "result = c_sum_ints(items, n)",
            "result = c_sum_ints(items, n + 1)",
            "boundary_cython.cpp",
        ),
        UBSAN: ("boundary_cython.pyx", "return c_add_one(x)", "return x + 1", "boundary_cython.cpp"),
        TSAN: (
            "boundary_cython.pyx",
            "with cython.critical_section(self):\n            value = self.counter.add(n)",
            "value = self.counter.add(n)",
            "boundary_cython.cpp",
        ),
    },
    "boundary/nanobind": {
        ASAN: (
            "boundary_nanobind.cpp",
            "sum_ints(items.data(), items.size())",
            "sum_ints(items.data(), items.size() + 1)",
            "boundary_nanobind.cpp",
        ),
        UBSAN: (
            "boundary_nanobind.cpp",
            'm.def("add_one", &add_one)',
            'm.def("add_one", [](int x) { return x + 1; })',
            "boundary_nanobind.cpp",
        ),
        TSAN: ("boundary_nanobind.cpp", '"add", &Counter::add, nb::lock_self()', '"add", &Counter::add', "counter.cpp"),
    },
    "boundary/pybind11": {
        ASAN: (
            "boundary_pybind11.cpp",
            "sum_ints(items.data(), items.size())",
            "sum_ints(items.data(), items.size() + 1)",
            "boundary_pybind11.cpp",
        ),
        UBSAN: (
            "boundary_pybind11.cpp",
            'm.def("add_one", &add_one)',
            'm.def("add_one", [](int x) { return x + 1; })',
            "boundary_pybind11.cpp",
        ),
        # Each call locks something else before it comes to `add`, which puts most additions in order: so wait there.
        TSAN: (
            "boundary_pybind11.cpp",
            "return locked<Counter>(self, [n](Counter &counter) { return counter.add(n); });",
            "const auto value = self.cast<Counter &>().add(n);\n                 sleep_ms(1);\n                 return value;",
            "boundary_pybind11.cpp",
        ),
    },
    "convoy/gil_wait": {
        ASAN: (
            "gil_wait.c",
            "if (received <= 0",
            "if ((0 & *(volatile char *)(&byte + 1)) || received <= 0",
            "gil_wait.c",
        ),
        UBSAN: ("gil_wait.c", "now.tv_sec * 1000000000LL", "(int)now.tv_sec * 1000000000", "gil_wait.c"),
        TSAN: ("gil_wait.c", "char byte;", "static char byte;", "gil_wait.c"),
    },
    "convoy/library": {
        ASAN: ("convoy.c", "n--;", "n -= 1 + 0 * (&n)[1];", "convoy.c"),
        UBSAN: ("convoy.c", "n++;", "n += 1 << (loops | 32);", "convoy.c"),
        TSAN: ("convoy.c", "volatile long n = 0;", "static volatile long n;", "convoy.c"),
    },
    "critical_sections/lock_pieces": {
        ASAN: (
            "lock_pieces.c",
            "type->tp_free(self);\n    Py_DECREF(type);",
            "type->tp_free(self);\n    Py_DECREF(Py_TYPE(self));",
            "lock_pieces.c",
        ),
        UBSAN: ("lock_pieces.c", "((Cell *)self)->value);", "((Cell *)self)->value << 64);", "lock_pieces.c"),
        TSAN: (
            "lock_pieces.c",
            "PyMutex_Lock(&cell->mutex);\n        cell->value++;\n        PyMutex_Unlock(&cell->mutex);",
            "cell->value++;",
            "lock_pieces.c",
        ),
    },
    "loaders/detach_attach": {
        ASAN: ("detach_attach.c", "if (loops == -1", "if ((&loops)[1] == -1", "detach_attach.c"),
        UBSAN: (
            "detach_attach.c",
            "PyLong_AsLong(arg);",
            "PyLong_AsLong(arg) + LONG_MAX - LONG_MAX;",
            "detach_attach.c",
        ),
        TSAN: ("detach_attach.c", "for (long i = 0;", "static long i;\n    for (i = 0;", "detach_attach.c"),
    },
    "loaders/library": {
        ASAN: (
            "loaders.c",
            "int noop(void)\n{\n    return 0;",
            "int noop(void)\n{\n    volatile int one = 0;\n    return (&one)[1];",
            "loaders.c",
        ),
        UBSAN: ("loaders.c", "* 1000000L}", "* 1000000000}", "loaders.c"),
        TSAN: ("loaders.c", "static atomic_int ready;", "static int ready;", "loaders.c"),
    },
    "measuring/library": {
        ASAN: ("spin.c", '__asm__ volatile("" ::: "memory");', "(void)*(volatile int *)(&iterations + 1);", "spin.c"),
        UBSAN: ("spin.c", "i < iterations; i++", "i < iterations; i += 1 + (0 << iterations)", "spin.c"),
        TSAN: ("spin.c", "for (int i = 0;", "static int i;\n    for (i = 0;", "spin.c"),
    },
    "placement/programs": {
        ASAN: ("stack.c", "(uintptr_t)&increment;", "(uintptr_t)&increment + 0 * (&increment)[1];", "stack.c"),
        UBSAN: ("stack.c", "i += increment;", "i += increment << 64;", "stack.c"),
    },
    "placement/story/first_commit": {
        ASAN: ("machine.c", "at < length;", "at <= length;", "machine.c"),
        UBSAN: ("machine.c", "long value = 1;", "long value = 1 + 0 * (1 << (argc + 31));", "machine.c"),
    },
    "races/library": {
        ASAN: ("races.c", "i < ENTRIES;", "i <= ENTRIES;", "races.c"),
        UBSAN: (
            "races.c",
            "return global_counter + atomic_counter;",
            "return (global_counter + atomic_counter) << 64;",
            "races.c",
        ),
        TSAN: (
            "races.c",
            "pthread_mutex_lock(&counter_lock);\n        seen = ++global_counter;\n        pthread_mutex_unlock(&counter_lock);",
            "seen = ++global_counter;",
            "races.c",
        ),
    },
    "races/sanitizers": {
        ASAN: ("stress.c", "job->run(job->thread);", "job->run(job[2].thread);", "stress.c"),
        UBSAN: ("stress.c", "{ lazy_locked(0); }", "{ lazy_locked(0 << (thread | 32)); }", "stress.c"),
        TSAN: ("stress.c", "{ mutex_increment(LOOPS); }", "{ unsafe_increment(LOOPS); }", "stress.c"),
    },
    "races/shared_state": {
        ASAN: (
            "remedies.c",
            "return pair->left != pair->right;",
            "return pair->left != (&pair->right)[2];",
            "remedies.c",
        ),
        UBSAN: ("shared_state.c", "now.tv_sec * INT64_C(1000000000)", "(int)now.tv_sec * 1000000000", "shared_state.c"),
        TSAN: (
            "remedies.c",
            "PyMutex_Lock(&lock);\n        locked++;\n        PyMutex_Unlock(&lock);",
            "locked++;",
            "remedies.c",
        ),
    },
}


def labels_of(project):
    """The interpreters that load it, if it is built for each; the free-threaded one for a library, None for programs."""
    if project in PROGRAMS:
        return [None]
    if not native.is_extension(NATIVE / project):
        return [FREE_THREADED]
    return [
        one for one in (GIL, FREE_THREADED) if not native.unsupported(NATIVE / project, installed.load(BY_LABEL[one]))
    ]


CLEAN = [(project, kind, label) for project in PLANTED for kind in KINDS for label in labels_of(project)]
MISTAKES = [(project, kind) for project in PLANTED for kind in KINDS if set(KINDS[kind]) & set(PLANTED[project])]


@pytest.fixture(scope="module")
def built(request, tmp_path_factory):
    """A function of (project, kind, planted): the folder that holds what was built. Builds for the chosen tests run ahead."""
    folder = tmp_path_factory.mktemp("sanitizers")
    environments = {kind: flags(folder, kind) for kind in KINDS}
    jobs = {}
    with ThreadPoolExecutor(cores_usable()) as pool:
        for item in request.session.items:
            if hasattr(item, "callspec") and "built" in item.fixturenames and item.module is request.module:
                chosen = item.callspec.params
                key = chosen["project"], chosen["kind"], "label" not in chosen
                if key not in jobs:
                    here = folder / f"{len(jobs)}"
                    jobs[key] = pool.submit(build, here, *key, environments[chosen["kind"]])

        def folder_of(*key):
            if key not in jobs:
                jobs[key] = pool.submit(build, folder / f"{len(jobs)}", *key, environments[key[1]])
            return jobs[key].result()

        yield folder_of
        pool.shutdown(cancel_futures=True)


def flags(folder, kind):
    """Variables with which every tool builds for a sanitizer. `-O0` comes last, after what a project asks for."""
    runtime(kind)
    compilers = folder / kind
    compilers.mkdir()
    for name, real in (("cc", compiler()), ("c++", "c++")):
        (compilers / name).write_text(f'#!/bin/sh\nexec {real} "$@" -O0\n')
        (compilers / name).chmod(0o755)
    instrument = f"-fsanitize={kind} -fno-omit-frame-pointer -g"
    link = f"-fsanitize={kind}"
    if kind == MEMORY:
        instrument += " -fsanitize-recover=address"
    else:
        source, built = compilers / "sections.c", compilers / "sections.o"
        source.write_text(SECTIONS)
        subprocess.run([*compiler().split(), "-fPIC", "-c", source, "-o", built], check=True)
        link += f" {built} " + " ".join(f"-Wl,--wrap={name}" for name in WRAPPED)
    return {
        "CC": str(compilers / "cc"),
        "CFLAGS": instrument,
        "CXXFLAGS": instrument,
        "LDFLAGS": link,
        # Or what CMake builds has its symbols taken away.
        "SKBUILD_CMAKE_BUILD_TYPE": "Debug",
    }


def build(folder, project, kind, planted, environment):
    """Build a copy of a project, if asked with its mistakes, for each interpreter that the tests use."""
    source = folder / "native" / project
    # What it shares with its neighbours.
    for one in {source, source.parent / "library"}:
        if (original := NATIVE / one.relative_to(folder / "native")).exists():
            shutil.copytree(original, one, ignore=shutil.ignore_patterns("build", "machine"))
    for tool in KINDS[kind] if planted else ():
        if tool in PLANTED[project]:
            plant(source, *PLANTED[project][tool])
    labels = [mistaken(project, kind)] if planted else labels_of(project)
    command = [sys.executable, "-c", BUILD, source, folder / "out", *filter(None, labels)]
    own = {**clean_environment(), **environment, "FFILAB_BUILD": str(folder / "build")}
    done = subprocess.run(command, cwd=ROOT, env=own, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return folder


def plant(source, file, old, new, _):
    text = (source / file).read_text()
    assert text.count(old) == 1, f"{file} has not one {old!r}: choose another mistake"
    (source / file).write_text(text.replace(old, new))


def mistaken(project, kind):
    """The interpreter that runs a project's mistakes: with the GIL, where objects of Python can come from malloc; for threads
    without, where critical sections do something."""
    return labels_of(project)[0 if kind == MEMORY else -1]


def runtime(kind):
    """The sanitizer's library, which a process must load first. Skips where the compiler has none."""
    name = RUNTIMES[kind]
    found = subprocess.run(
        [*compiler().split(), f"-print-file-name={name}"], capture_output=True, text=True
    ).stdout.strip()
    if not Path(found).is_absolute():
        pytest.skip(f"the compiler here has no {name}")
    return found


def run(folder, project, kind, label):
    """How each process ended, and the reports on the project's own code: (sanitizer, files in its stack)."""
    options = "halt_on_error=0 hard_rss_limit_mb=4000"
    environment = {
        "ASAN_OPTIONS": f"detect_leaks=0 {options}",
        "UBSAN_OPTIONS": "print_stacktrace=1",
        "TSAN_OPTIONS": f"exitcode=0 history_size=7 {options}",
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    out = folder / "out"
    # Shadow memory of ThreadSanitizer does not fit every address layout.
    fixed = instructions.fixed_addresses() if kind == THREADS else []
    if project in PROGRAMS:
        place = out if (out / PROGRAMS[project][0][0]).exists() else folder / "native" / project
        commands = [[place / name, *arguments] for name, *arguments in PROGRAMS[project]]
    else:
        if label == GIL:
            # Each object is a block of its own, with borders. The other build has its own allocator and no choice.
            environment["PYTHONMALLOC"] = "malloc"
        # The C++ library must be there when the sanitizer looks for what throws.
        cxx = subprocess.run(
            [*compiler().split(), "-print-file-name=libstdc++.so.6"], capture_output=True, text=True
        ).stdout
        python = installed.load(BY_LABEL[label]).python
        preload = f"LD_PRELOAD={runtime(kind)} {cxx.strip()}"
        calls = json.dumps([call for call in CALLS if call != LET_THROUGH.get(project)])
        commands = [["env", preload, python, "-s", INSTRUMENTED, project, NATIVE, out, calls]]
    ended, reports = set(), []
    for command in commands:
        end, _, err = program([*fixed, *command], 120, environment, memory_bytes=None)
        if "unexpected memory mapping" in err:
            pytest.skip(
                "its shadow memory does not fit this system's address randomisation, which cannot be switched off here"
            )
        ended.add(end if end == "ok" else f"{end}: {err[-1000:]}")
        reports += of_ours(err, folder)
    return ended, reports


# Where a report begins, and the name of its sanitizer.
BEGINS = re.compile(r"^(?:==\d+==ERROR: |WARNING: )(\w+Sanitizer): |^(\S+?):\d+:\d+: runtime error: ", re.M)
FRAME = re.compile(r"^ +#\d+ (?:0x\w+ in )?(.*)$")
OF_THE_TOOLS = re.compile(r"\blib(a|t|ub)san\b|/libsanitizer/")


def of_ours(said, folder):
    """(sanitizer, names of the files in the stack) of each report on what was built in this folder, less those of
    ThreadSanitizer with an access in the interpreter: it does not see what orders that one."""
    starts = list(BEGINS.finditer(said))
    found = []
    for start, after in zip(starts, [*starts[1:], None]):
        text = said[start.start() : after.start() if after else len(said)]
        tool = start.group(1) or UBSAN
        stacks = [
            [FRAME.match(line).group(1) for line in part.splitlines() if FRAME.match(line)]
            for part in text.split("\n\n")
        ]
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


def test_every_project_is_looked_at():
    """Left out: Rust, whose sanitizers a stable compiler does not offer without being told to bootstrap; and projects of a neighbour's sources (`sources-of`)."""
    here = {
        str(one.relative_to(NATIVE))
        for one in native.projects()
        if not (one / "Cargo.toml").exists() and not (native.is_extension(one) and "sources-of" in native.ours(one))
    }
    assert here == set(PLANTED)
    for project, planted in PLANTED.items():
        assert {ASAN, UBSAN, TSAN} - set(planted) == ({TSAN} if project in NO_THREADS else set())


@pytest.mark.parametrize(("project", "kind", "label"), CLEAN)
def test_the_sanitizers_say_nothing(project, kind, label, built):
    ended, reports = run(built(project, kind, False), project, kind, label)
    assert not reports, reports[0][2]
    assert ended == {"ok"}


def test_what_cffi_lets_through_is_found(built, monkeypatch):
    """With an empty list for a pointer to a struct, the library reads behind the end of an array of none."""
    monkeypatch.setitem(LET_THROUGH, "boundary/cffi_api", None)
    _, reports = run(built("boundary/cffi_api", MEMORY, False), "boundary/cffi_api", MEMORY, GIL)
    assert {tool for tool, _, _ in reports} == {ASAN}


@pytest.mark.parametrize(("project", "kind"), MISTAKES)
def test_each_planted_mistake_is_found_by_its_sanitizer(project, kind, built):
    expected = {tool: PLANTED[project][tool][3] for tool in KINDS[kind]}
    # Whether two threads meet is a matter of luck, and so is whose lines stand between whose where several report.
    for _ in range(5):
        ended, reports = run(built(project, kind, True), project, kind, mistaken(project, kind))
        if located(reports) >= set(expected.items()):
            break
    assert {tool for tool, _, _ in reports} == set(expected), (ended, reports)
    assert located(reports) >= set(expected.items()), reports


def located(reports):
    return {(tool, file) for tool, files, _ in reports for file in files}
