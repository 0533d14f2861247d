"""Experiments of the chapter on the convoy: servers, clients and CPU work, all on loopback, all with an end.

Standard library only: `ffilab/measure/worker.py case` calls one of these functions and prints what it returns. The same
file, `sys.argv[0]`, starts the processes beside it.
"""

import asyncio
import contextlib
import ctypes
import hashlib
import json
import mmap
import os
import random
import socket
import statistics
import subprocess
import sys
import sysconfig
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.dirname(HERE)]

from cpu_work import CHUNK, compute  # noqa: E402
from threads import together  # noqa: E402

HOST = "127.0.0.1"
now = time.perf_counter_ns


# [best of three]
def best_of_three(threads, bodies):
    """Seconds by number of threads, as the author took them: by `time.time`, the starts of the threads included, the best of three.
    But the numbers take turns: the speed of a core may change within a second."""
    seconds = dict.fromkeys(threads, float("inf"))
    for _ in range(3):
        for count in threads:
            started = [threading.Thread(target=body) for body in bodies(count)]
            began = time.time()
            for thread in started:
                thread.start()
            for thread in started:
                thread.join()
            seconds[count] = min(seconds[count], time.time() - began)
    return [{"threads": count, "seconds": best} for count, best in seconds.items()]


# [/best of three]


# [countdown]
def countdown(n):
    while n > 0:
        n -= 1


def countdowns(each, cells, seed):
    """C1, C5: ns for one step of a countdown by cell, a pair of a switch interval (s) and a number of threads.

    All in one process, in random order: the speed of a core may jump between two processes, and within a second. A cell that
    stands more than once is measured as often, and its median counts. Each thread counts down from `each`.
    """
    found = {tuple(cell): [] for cell in cells}
    for interval, count in random.Random(seed).sample(cells, len(cells)):
        sys.setswitchinterval(interval)
        found[interval, count].append(together([lambda: countdown(each)] * count) / (each * count))
    return [
        {"interval": interval, "threads": count, "ns": statistics.median(turns), "steps": each * count}
        for (interval, count), turns in found.items()
    ]


def one_countdown(steps, threads):
    """C1 as run: seconds for one countdown, divided among threads."""
    found = best_of_three(threads, lambda count: [lambda: countdown(steps // count)] * count)
    return [{**row, "steps": steps} for row in found]


# [/countdown]


# [hashes]
def hashes(bytes_each, threads):
    """C2: seconds to hash eight messages, divided among threads; the best of three. hashlib releases the GIL. As in the author's
    program, the messages are one object, eight times."""
    messages = [b"0" * bytes_each] * 8

    def work(part):
        for message in part:
            hashlib.sha256(message)

    found = best_of_three(threads, lambda count: [lambda i=i: work(messages[i::count]) for i in range(count)])
    return [{**row, "bytes": bytes_each} for row in found]


# [/hashes]


# [work]
def beside(file, function, **arguments):
    """Start a function of a file in a process of its own, on the same interpreter."""
    command = [sys.executable, "-I", sys.argv[0], "case", os.path.join(HERE, file), function, json.dumps(arguments)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def end(process):
    """Kill a process and see it out: the CPU time of a child that nobody waits for would count as a stranger's."""
    process.kill()
    process.wait()


class CpuWork:
    """`count` workers beside the server; `kind` says where they run: threads, processes, interpreters, native, or spinners, which
    keep a core each awake and give way to everybody. core: where threads stay."""

    def __init__(self, kind, count, folder, core=None):
        self._core = core
        self._file = tempfile.NamedTemporaryFile()  # noqa: SIM115 (it lives as long as the work)
        self._file.write(bytes(8 * (count + 1)))
        self._file.flush()
        self._memory = mmap.mmap(self._file.fileno(), 0)
        self._shared = memoryview(self._memory).cast("Q")
        self._processes, self._threads, self.thread_ids = [], [], []
        path = self._file.name
        for place in range(1, count + 1):
            if kind == "processes":
                self._processes.append(beside("cpu_work.py", "compute", path=path, place=place))
                continue
            if kind == "spinners":
                self._processes.append(beside("cpu_work.py", "spin", path=path, place=place))
                continue
            body = {
                "threads": lambda place=place: compute(path, place),
                "interpreters": lambda place=place: in_another_interpreter(path, place),
                "native": lambda place=place: natively(self._shared, place, folder),
            }[kind]
            self._threads.append(threading.Thread(target=self._noted, args=(body,), daemon=True))
        for thread in self._threads:
            thread.start()

    def _noted(self, body):
        stay_on(self._core)
        self.thread_ids.append(threading.get_native_id())
        body()

    def reading(self):
        """Chunks by now, and now."""
        return sum(self._shared[1:]), time.perf_counter()

    def speed_from(self, before, seconds=0):
        """Chunks per second since a reading, after so many more seconds."""
        time.sleep(seconds)
        (chunks, began), (more, ended) = before, self.reading()
        return (more - chunks) / (ended - began)

    def wait_until_all_work(self):
        deadline = time.monotonic() + 5
        while not all(self._shared[1:]) and time.monotonic() < deadline:
            time.sleep(0.005)

    def stop(self):
        self._shared[0] = 1
        for worker in self._threads:
            worker.join(5)
        for process in self._processes:
            try:
                process.wait(5)
            except subprocess.TimeoutExpired:
                end(process)


# [/work]


# [native]
def natively(shared, place, folder):
    """Native code through CDLL: a thousand chunks for each call, without the GIL."""
    count_up_and_down = ctypes.CDLL(os.path.join(folder, "libconvoy.so")).count_up_and_down
    while not shared[0]:
        count_up_and_down(ctypes.c_long(1000 * CHUNK))
        shared[place] += 1000


# [/native]


# [interpreter]
def in_another_interpreter(path, place):
    """The same work in an interpreter with a GIL of its own (PEP 684, PEP 734)."""
    from concurrent import interpreters

    interpreter = interpreters.create()
    interpreter.exec(f"import sys; sys.path.insert(0, {HERE!r}); import cpu_work; cpu_work.compute({path!r}, {place})")


# [/interpreter]


# [server]
def handle_client(sock, note=None):
    """The author's handler: one thread for each client."""
    with contextlib.suppress(OSError), sock:
        while data := sock.recv(4096):
            if note:
                note(now())
            sock.sendall(data)
            if note:
                note(now())


# [/server]


# [asyncio]
async def echo_back(reader, writer, cores):
    """The same as a coroutine; at its end it notes the core of its loop's thread."""
    while data := await reader.read(4096):
        writer.write(data)
        await writer.drain()
    writer.close()
    cores.append(core_of("self", threading.get_native_id()))


# [/asyncio]


# [serve]
@contextlib.contextmanager
def serve(kind, note=None, nodelay=False):
    """An echo server on an ephemeral port of loopback: yields the port and a list that gets the cores of its threads.

    nodelay: switch Nagle's algorithm off. The author does not, and asyncio always does."""
    listener = socket.create_server((HOST, 0))
    listener.settimeout(20)
    cores = []

    def accept():
        with contextlib.suppress(OSError):
            sock, _ = listener.accept()
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, nodelay)
            sock.settimeout(None)
            handle_client(sock, note)
            cores.append(core_of("self", threading.get_native_id()))

    async def serve_forever():
        server = await asyncio.start_server(lambda *streams: echo_back(*streams, cores), sock=listener)
        async with server:
            await server.serve_forever()

    body = accept if kind == "threads" else lambda: asyncio.run(serve_forever())
    threading.Thread(target=body, daemon=True).start()
    try:
        yield listener.getsockname()[1], cores
    finally:
        listener.close()


# [/serve]


# [client]
WARM_UP_S = 0.05


def client(core, pause=0, nodelay=False):
    """Send one byte, wait for it, again. Runs in a process of its own, which stays on a core if one is given.

    Standard input gives the port, and then orders, a line each: how many requests, for how many seconds at least and at most, and
    how many requests even if that takes longer. Each order is answered with a line: begin and end (ns) of every request; their
    end with the core that it ran on last. pause: seconds between two requests.
    """
    stay_on(core)
    print("started", flush=True)
    port = int(sys.stdin.readline())
    with socket.create_connection((HOST, port), timeout=20) as sock:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, nodelay)

        def request():
            if pause:
                time.sleep(pause)
            began = now()
            sock.sendall(b"x")
            sock.recv(1)
            return began, now()

        def requests(wanted, least_s, most_s, fewest=1):
            spans, began = [], now()
            while len(spans) < fewest or spans[-1][1] < began + (most_s if len(spans) < wanted else least_s) * 1e9:
                spans.append(request())
            return spans

        requests(1, WARM_UP_S, WARM_UP_S)
        print("warm", flush=True)
        for order in sys.stdin:
            print(json.dumps(requests(*json.loads(order))), flush=True)
    print(json.dumps(core_of("self", os.getpid())), flush=True)


class Client:
    """The client, as the server's process sees it. It has started, with all its imports, before any CPU work begins."""

    def __init__(self, core=None, pause=0, nodelay=False):
        self._process = beside("experiments.py", "client", core=core, pause=pause, nodelay=nodelay)
        self._process.stdout.readline()

    def order(self, *lines):
        for line in lines:
            print(json.dumps(line), file=self._process.stdin, flush=True)

    def answer(self):
        return self._process.stdout.readline()

    def requests(self, wanted, least_s, most_s, fewest=1):
        self.order([wanted, least_s, most_s, fewest])
        return json.loads(self.answer())

    def leave(self):
        """No more orders: the core that it ran on last. Nobody waits for its end, which may take long beside CPU work."""
        self.no_more()
        return json.loads(self.answer())

    def no_more(self):
        self._process.stdin.close()

    def end(self):
        end(self._process)


# [/client]


# [echo]
ALONE_S = 0.05
LEAVING_S = 0.05  # for the server to see that the client has gone
# Requests that a quantile needs at least.
ENOUGH = {0.5: 5, 0.99: 100, 0.999: 1000}


def quantiles(spans):
    """Of the latencies of requests, in µs; None where there are too few of them."""
    took = sorted(end - start for start, end in spans)
    return {
        f"p{100 * q:g}": took[int(q * len(took))] / 1e3 if len(took) >= least else None for q, least in ENOUGH.items()
    }


def rate(spans):
    """Requests per second."""
    return len(spans) / (spans[-1][1] - spans[0][0]) * 1e9


def core_of(process, thread):
    """The core that a thread ran on last; None where the system does not say."""
    try:
        file = os.open(f"/proc/{process}/task/{thread}/stat", os.O_RDONLY)
        try:
            return int(os.read(file, 4096).decode().rsplit(")", 1)[1].split()[36])
        finally:
            os.close(file)
    except (OSError, ValueError, IndexError):
        return None


def stay_on(core):
    """Keep the calling thread on a core, if one is given. Threads that it starts later inherit that."""
    if core is not None:
        os.sched_setaffinity(0, {core})


def places(pinning):
    """The cores of the server's thread, of the CPU threads, and of the client; None: any."""
    if pinning == "none":
        return None, None, None
    first, *between, last = sorted(os.sched_getaffinity(0))
    return {
        "one core": (first, first, first),
        "client apart": (first, first, last),
        "server on one core": (first, first, None),
        # Of two cores the client shares the one whose thread sleeps while it works.
        "threads apart": (first, last, between[0] if between else first),
    }[pinning]


def echo(folder, kind, count, interval, order, pinning, server, others, awake, nodelay):
    """C3, C4, C6: requests and their latencies, with CPU work beside the server.

    kind, count: CPU work, see CpuWork; pinning: see places; server: `threads` or `asyncio`; others: busy processes that nobody
    asked for; awake: they only keep the cores awake. order: requests, seconds at least, seconds at most.
    """
    server_core, work_core, client_core = places(pinning)
    client = Client(client_core, nodelay=nodelay)
    noise = CpuWork("spinners" if awake else "processes", others, folder)
    stay_on(server_core)
    sys.setswitchinterval(interval)
    work = CpuWork(kind, count, folder, work_core)
    try:
        work.wait_until_all_work()
        noise.wait_until_all_work()
        alone = work.speed_from(work.reading(), ALONE_S)
        with serve(server, nodelay=nodelay) as (port, server_cores):
            client.order(port)
            client.answer()
            before = work.reading()
            spans = client.requests(*order)
            during = work.speed_from(before)
            client_core = client.leave()
            soon = time.monotonic() + LEAVING_S
            while not server_cores and time.monotonic() < soon:
                time.sleep(0.005)
            cores = {
                "client": client_core,
                "server": server_cores[0] if server_cores else None,
                "CPU work": [core_of("self", thread) for thread in work.thread_ids],
            }
    finally:
        client.end()
        work.stop()
        noise.stop()
    return {
        "rate": rate(spans),
        "requests": len(spans),
        **quantiles(spans),
        "work": during / alone if alone else None,
        "cores": cores,
    }


# [/echo]


# [intervals]
BETWEEN_S = 0.001  # the switch interval before the first order and behind the last one


def intervals(folder, count, pinning, slack_ns, orders, pause, seed):
    """C4: requests by switch interval, all in one process, in random order, beside `count` CPU threads.

    orders: switch interval (s), and an order of the client. slack_ns: timer slack of the server's process; None leaves it as it is.
    """
    server_core, work_core, client_core = places(pinning)
    client = Client(client_core, pause)
    stay_on(server_core)
    if slack_ns is not None:
        set_timer_slack(slack_ns)
    sys.setswitchinterval(BETWEEN_S)
    work = CpuWork("threads", count, folder, work_core)
    found = []
    try:
        work.wait_until_all_work()
        with serve("threads") as (port, _):
            client.order(port)
            client.answer()
            for interval, *order in random.Random(seed).sample(orders, len(orders)):
                sys.setswitchinterval(interval)
                spans = client.requests(*order)
                found.append(
                    {"interval": interval, "requests": len(spans), "rate": rate(spans), "p50": quantiles(spans)["p50"]}
                )
            sys.setswitchinterval(BETWEEN_S)
            client.leave()
    finally:
        client.end()
        work.stop()
    return sorted(found, key=lambda row: -row["interval"])


# [/intervals]


# [timer slack]
PR_SET_TIMERSLACK, PR_GET_TIMERSLACK = 29, 30  # <linux/prctl.h>


def set_timer_slack(ns):
    """By how much Linux may let a timed wait of this thread run over, and of threads that it starts from now on."""
    libc = ctypes.CDLL(None)
    libc.prctl(PR_SET_TIMERSLACK, ctypes.c_ulong(ns), 0, 0, 0)
    if libc.prctl(PR_GET_TIMERSLACK, 0, 0, 0, 0) != ns:
        raise OSError("the timer slack cannot be set")


# [/timer slack]


# [timeline]
def timeline(interval, seconds, pinning, pause):
    """C10: who held the GIL when. One CPU thread, one client, which pauses (s) before each request; all times in ns of one clock.

    The CPU thread looks at the clock all the time: where it did not, it had no GIL (or no core).
    """
    server_core, work_core, client_core = places(pinning)
    client = Client(client_core, pause)
    stay_on(server_core)
    sys.setswitchinterval(interval)
    gaps, notes, running = [], [], True

    def compute_and_note():
        stay_on(work_core)
        last = now()
        while running:
            time_ = now()
            if time_ - last > 20_000:
                gaps.append((last, time_))
            last = time_

    thread = threading.Thread(target=compute_and_note, daemon=True)
    with serve("threads", notes.append) as (port, _):
        thread.start()
        try:
            client.order(port)
            client.answer()
            spans = client.requests(1, seconds, seconds)
        finally:
            client.end()
            running = False
    thread.join(5)
    # The warm-up's requests come first: two notes for each.
    return {"spans": spans, "server": notes[-2 * len(spans) :], "gaps": [gap for gap in gaps if gap[1] > spans[0][0]]}


# [/timeline]


# [gil waits]
PAUSE_S = 0.002


def extension(folder):
    """The module gil_wait, built for this interpreter."""
    sys.path.insert(0, os.path.join(folder, sysconfig.get_config_var("SOABI")))
    import gil_wait

    return gil_wait


def gil_waits(interval, seconds, folder):
    """C8: ns from asking for the GIL to having it, for every request of a client, while one CPU thread computes.

    The server is a C extension that reads the clock just before it asks and just after it has it, so a wait is known by
    what happened, and not by its length. The client pauses, so that the CPU thread has the GIL again before it asks.
    """
    gil_wait = extension(folder)
    client = Client(pause=PAUSE_S)
    sys.setswitchinterval(interval)
    work = CpuWork("threads", 1, folder)
    try:
        work.wait_until_all_work()
        with socket.create_server((HOST, 0)) as listener:
            # All at once: from here on this thread serves.
            client.order(listener.getsockname()[1], [1, seconds, seconds])
            client.no_more()
            listener.settimeout(20)
            sock, _ = listener.accept()
            with sock:
                sock.settimeout(None)
                waits = gil_wait.echo(sock.fileno())
    finally:
        client.end()
        work.stop()
    return {"waits": waits}


# [/gil waits]


# [forced]
def forced(interval, times, folder):
    """C8: after so many of `times` releases of the GIL, while another thread waits for it, that thread had it first: after releases on
    its demand, and after releases before it demanded anything. For builds with a GIL: without one nobody demands."""
    gil_wait = extension(folder)
    sys.setswitchinterval(interval)
    threading.Thread(target=gil_wait.ask, daemon=True).start()
    return {name: gil_wait.let_go(times, on_demand) / times for name, on_demand in (("demanded", 1), ("free", 0))}


# [/forced]
