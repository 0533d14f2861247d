"""What runs inside an instrumented process: every function of a native project, in one thread and in several.

Standard library only: `python sanitized.py PROJECT NATIVE FOLDER CALLS`, with the project's path under native/, the
folder native/ itself, the folder that the project was built into, and expressions for the bindings, as JSON. Answers
are not looked at, other tests do that: whoever started this reads what the sanitizer says.
"""

import array
import contextlib
import ctypes
import importlib
import json
import os
import socket
import sys
import sysconfig
import threading
import time
import timeit

THREADS = 3
FREE_THREADED = bool(sysconfig.get_config_var("Py_GIL_DISABLED"))


def together(bodies):
    """All bodies at the same time. No thread ends before the last one is done: on a free-threaded build another thread
    would get its memory, in an order that ThreadSanitizer cannot see, as it comes about in the interpreter."""
    barrier = threading.Barrier(len(bodies))

    def run(body):
        barrier.wait()
        try:
            body()
        finally:
            barrier.wait()

    threads = [threading.Thread(target=run, args=(body,)) for body in bodies]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


# These lock in Python (threading.Lock), which ThreadSanitizer sees through the GIL only; and a Point is the caller's
# own.
LOCKED_IN_PYTHON = {"cffi_api", "cffi_abi", "ctypes"}


def boundary(project, built, calls):
    import arms
    import evaluate

    for title, binding in {**arms.BINDINGS, **getattr(arms, "VARIANTS", {})}.items():
        if binding.project == project:
            m = arms.load(built, title)
            for signature in arms.SIGNATURES:
                with contextlib.suppress(AttributeError):  # a signature that this binding lacks
                    timeit.Timer(*arms.SIGNATURES[signature], globals={"m": m, "arms": arms}).timeit(20)
            for expression in calls:
                evaluate.evaluate(built, title, expression)
            in_threads(m, project)


def in_threads(m, project):
    own_lock = project not in LOCKED_IN_PYTHON
    counter, point, numbers = m.Counter(0), m.Point(1.0, 2.0), list(range(1000))

    def body():
        own, prepared, text = m.Point(3.0, 4.0), m.callback(lambda x: 2 * x), "mind thé gap"
        for i in range(100):
            m.add_one(i), m.code_points(text), m.motto(), m.checksum(b"mind the gap"), m.make_bytes(10, 7)
            m.apply(prepared, i), m.sum_list(numbers), m.dot(own), m.scale(own, 1.0)
            if own_lock or not FREE_THREADED:
                counter.add(1)
            if own_lock:
                m.dot(point), m.scale(point, 1.0), point.x + point.y
        m.work(100_000)

    together([body] * THREADS)


def extension(built, name):
    """The extension module that was built for this interpreter."""
    sys.path.insert(0, os.path.join(built, sysconfig.get_config_var("SOABI")))
    return importlib.import_module(name)


def lock_pieces(built):
    locks = extension(built, "lock_pieces")
    cell, other = locks.Cell(), locks.Cell()
    for name, _, safe in locks.pieces():
        locks.run(name, cell, other, 100)
        if safe:
            together([lambda: locks.run(name, cell, other, 100)] * THREADS)  # noqa: B023
    print(cell.value, [locks.Cell() for _ in range(10)])


def shared_state(built):
    import calls

    module = calls.extension(built)
    guarded = module.Guarded()
    for name in ("PyMutex", "atomic", "critical section", "sharded, 16 atomics", "per-thread state"):
        together([lambda: module.run(name, guarded, 200)] * THREADS)  # noqa: B023
        module.total(name, guarded)
    for name in module.names():
        module.run(name, guarded, 10)
    for way in ("read under a PyMutex", "read an immutable snapshot"):
        together([lambda: module.pairs(way, 100, True), lambda: module.pairs(way, 200, False)])  # noqa: B023
        module.pairs(way, 10, False)
    for variant in ("mutex", "atomic"):
        for increment in (module.increment_keeping, module.increment_releasing):
            together([lambda: increment(variant, 200, THREADS, 10_000_000, calls.Visit())] * THREADS)  # noqa: B023
    together([lambda: [module.ticket() for _ in range(100)]] * THREADS)
    module.first_strong([1.5]), module.sum_locked({1: 1.5}), module.reset(), module.value()


def neighbours(built):
    """Each thread writes to a line of its own, or atomically."""
    native = extension(built, "neighbours")
    row = native.Row(64)
    for piece in ("plain", "relaxed atomic", "read"):
        slots = [0] * THREADS if piece == "relaxed atomic" else [8 * number for number in range(THREADS)]
        together([lambda slot=slot: native.run(piece, row, slot, 200) for slot in slots])  # noqa: B023
    together([lambda: native.count(row, 200)] * THREADS)
    native.counted_per_thread(type(row)), native.counted_per_thread(neighbours.__code__), len(row), row[0]


def waiting(built):
    """What locks both, elements of one's own, and strong references; what is unsafe is asked by name."""
    native = extension(built, "sharing_waiting")
    for outer, other in {"both at once": "section", "PyMutex outside": "PyMutex", "POSIX outside": "POSIX"}.items():
        pair = native.Guarded(), native.Guarded()
        together([lambda how=how: native.update(how, *pair, 3, 2_000_000) for how in (outer, "in the way", other)])  # noqa: B023
        native.twice(pair[0], False, 100), native.twice(pair[0], True, 100), pair[0].value
    for lock in ("PyMutex", "critical section", "pthread mutex", "std::mutex"):
        one = native.Guarded()
        together([lambda: native.take(lock, one, THREADS, 2_000_000, 20, lambda: None)] * THREADS)  # noqa: B023
    numbers = array.array("q", bytes(8 * THREADS))
    together([lambda index=index: native.add(numbers, 200, index) for index in range(THREADS)])
    shared = [1.5]
    together([lambda: native.borrow(shared, True, time.monotonic_ns() + 2_000_000)] * 2)
    native.read_twice([bytearray(100)], True, 1), native.stay(1000, True), native.stay(1000, False)
    for kind in (native.Plain, native.Traversed):
        kind().hold(print)
    native.alive()


def gil_wait(built):
    gil_wait = extension(built, "gil_wait")
    with contextlib.suppress(OSError):
        gil_wait.echo(-1)
    pairs = [socket.socketpair() for _ in range(THREADS)]

    def ask(one):
        for _ in range(50):
            one.send(b"x")
            one.recv(1)
        one.close()

    together(
        [lambda server=server: gil_wait.echo(server.fileno()) for _, server in pairs]
        + [lambda client=client: ask(client) for client, _ in pairs]
    )


def detach_attach(built):
    cycle = extension(built, "detach_attach").cycle
    together([lambda: cycle(2_000)] * THREADS)


def arenas(built):
    import memory

    lib = memory.library(built)
    lib.short_lived_round(THREADS, 8, 4096, 4096, 1, 7)
    for by_turns in (0, 1):
        lib.pool_start(THREADS, by_turns, 7)
        for _ in range(3):
            lib.pool_round(16, 16, 5000, 1)
        lib.pool_stop()
    lib.allocate_and_free(10, 4096, 1)
    lib.populate(10, 100)
    lib.free_every_other()
    lib.latencies(THREADS, 100, (ctypes.c_int64 * (THREADS * 100))())
    memory.heap(lib)
    lib.trim()
    mmap = ctypes.CDLL(os.path.join(built, "libhuge_pages.so")).mmap
    size, number = ctypes.c_size_t, ctypes.c_int
    mmap.argtypes, mmap.restype = [ctypes.c_void_p, size, number, number, number, ctypes.c_long], ctypes.c_void_p
    mmap(None, 1 << 20, 3, 0x22, -1, 0)  # readable and writable; private and anonymous


def convoy(built):
    library = ctypes.CDLL(os.path.join(built, "libconvoy.so"))
    together([lambda: library.count_up_and_down(20_000)] * THREADS)


def loaders(built):
    library = ctypes.CDLL(os.path.join(built, "libloaders.so"))
    library.noop(), library.sleep_ms(3), library.add_one(1), library.first_byte(b"x"), library.is_waiting()
    together([lambda: library.wait_for_announcement(2_000), library.announce])


def measuring(built):
    library = ctypes.CDLL(os.path.join(built, "libspin.so"))
    together([lambda: library.spin(200_000), lambda: library.count_to(200_000)] * THREADS)


def races(built):
    import calls

    library = calls.library(built)
    library.lazy_locked.restype = ctypes.c_void_p
    for variant in ("mutex", "mutex_once", "atomic"):
        together([lambda: getattr(library, f"{variant}_increment")(2_000)] * THREADS)  # noqa: B023
    library.counter_value(), library.counter_reset()
    for way in (library.safe_withdraw, library.atomic_withdraw, library.exchange_withdraw):
        library.bank_open(100)
        together([lambda: [way(1, 0) for _ in range(20)]] * THREADS)  # noqa: B023
        library.bank_balance()
    together([lambda: [library.lazy_locked(slot) for slot in range(10)]] * THREADS)
    together([lambda: (library.describe_thread_local(7), library.fail_thread_local(7))] * THREADS)
    together([lambda: library.publish_release(42), library.read_acquire])
    text = array.array("b", bytes(100))
    library.describe_into(7, ctypes.c_char_p(text.buffer_info()[0]), 100)
    together([lambda: library.meet(THREADS)] * THREADS)


def objects(project, built):
    import model

    tool = next(title for title, said in model.tools().items() if said["module"] == f"objects_{project}")
    names = {**vars(model), "m": model.load(built, tool)}
    for statement, setup in (call for calls in model.CALLS.values() for call in calls.values()):
        with contextlib.suppress(AttributeError):  # a call that this binding lacks
            timeit.Timer(statement, setup, globals=names).timeit(20)
    for expression, _ in (question for questions in model.QUESTIONS.values() for question in questions.values()):
        model.answer(names["m"], expression)


def outside(name, built):
    """Threads of C that call Python, in each tool's way; of the scenes, those that end by themselves."""
    import ways

    if name == "exceptions":
        ctypes.CDLL(os.path.join(built, "libexceptions.so")).caught_inside()
        return
    if name == "library":
        ways.library(built).answer_here(100, ctypes.byref(ctypes.c_int64()))
    native = None if name == "library" else ways.module(built, name)
    if name == "scenes":
        native.hold("PyMutex"), native.take("PyMutex")
        native.start_caller("loop", False), native.compute(5, "detached"), native.end_caller()
        native.call_later(1), native.compute(5, "checks"), native.price_of_check(100), native.call_times()
    elif name == "whose":
        native.mine(), native.ensure(), native.handed_over()
    else:
        call = native.call_from_thread if native else ways.by_ctypes(built)
        for keep in (False, True):
            call(lambda: None, THREADS, 20, keep)
    if name == "c_api":
        native.end_states(10, 10)
        for how in range(3):
            native.attach_for(2, THREADS, how)
    if name in ("nanobind", "pybind11"):
        native.call_caught(lambda: None)
    if name == "pybind11":
        one = {"n": 0}
        together([lambda: native.mutex_first(one), lambda: native.section_first(one, True)])
        together([lambda: native.count(one, 100, True)] * THREADS)


LIBRARIES = {"arenas": arenas, "convoy": convoy, "loaders": loaders, "measuring": measuring, "races": races}
EXTENSIONS = {one.__name__: one for one in (lock_pieces, shared_state, gil_wait, detach_attach, neighbours, waiting)}


def main():
    project, native, built, calls = sys.argv[1:]
    chapter, name = project.split("/")
    sys.path[:0] = [os.path.join(native, chapter), native]
    if chapter == "boundary":
        boundary(name, built, json.loads(calls))
    elif chapter == "objects":
        objects(name, built)
    elif chapter == "outside":
        outside(name, built)
    else:
        (LIBRARIES[chapter] if name == "library" else EXTENSIONS[name])(built)


if __name__ == "__main__":
    main()
