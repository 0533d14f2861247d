"""Threads that start together, for the experiments of all chapters. Standard library only."""

import random
import statistics
import threading
import time


def together(bodies):
    """Run all bodies at the same time, one thread each; returns the ns from the first start to the last end."""
    return made_and_run([lambda body=body: body for body in bodies])


def made_and_run(makers):
    """Run bodies that each thread makes itself, before the clock starts; returns the ns from the first start to the
    last end."""
    barrier = threading.Barrier(len(makers))
    spans = []

    def run(make):
        try:
            body = make()
        except BaseException:
            barrier.abort()  # the others would wait for ever
            raise
        barrier.wait()
        started = time.perf_counter_ns()
        body()
        spans.append((started, time.perf_counter_ns()))

    threads = [threading.Thread(target=run, args=(make,)) for make in makers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if len(spans) < len(makers):
        raise RuntimeError("a thread ended early: its own message stands above")
    return max(end for _, end in spans) - min(start for start, _ in spans)


# [rate]
ROUNDS, WARM = 3, 1_000


def rate(make, threads, milliseconds, made_by_worker=False):
    """Operations per second of one thread alone and of all together, in an order drawn for each round: medians of
    ROUNDS.

    `make(number)` gives each thread a function of a loop count. Alone and together stand side by side in one
    process, since the speed of a core may change from one process to the next.
    made_by_worker: each thread calls `make` itself. What it makes is then its own; else it is the main thread's.
    """
    bodies = [make(number) for number in range(threads)]

    def maker(number):
        body = make(number) if made_by_worker else bodies[number]
        # Before the clock starts: without the GIL a new thread first specialises bytecode of its own.
        body(min(WARM, loops))
        return lambda: body(loops)

    loops, elapsed = 100, 0
    while elapsed < 2_000_000:
        loops *= 2
        started = time.perf_counter_ns()
        bodies[0](loops)
        elapsed = time.perf_counter_ns() - started
    loops = max(1, round(loops * milliseconds * 1e6 / elapsed))
    makers = [lambda number=number: maker(number) for number in range(threads)]
    per_second = {1: [], threads: []}
    for _ in range(ROUNDS):
        # Alone in a thread of its own too: both pay for its start.
        for running in random.sample([1, threads], 2):
            per_second[running].append(running * loops / made_and_run(makers[:running]) * 1e9)
    return {"alone": statistics.median(per_second[1]), "together": statistics.median(per_second[threads])}


# [/rate]
