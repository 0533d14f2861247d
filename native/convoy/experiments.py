"""Experiments of the chapter on the convoy: servers, clients and CPU work, all on loopback, all with an end.

Standard library only. `python experiments.py NAME ARGUMENT...` prints one JSON object.
"""

import asyncio
import contextlib
import ctypes
import hashlib
import json
import mmap
import os
import socket
import subprocess
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.dirname(HERE)]

from cpu_work import CHUNK, compute  # noqa: E402
from threads import together  # noqa: E402

HOST = "127.0.0.1"
ME = os.path.abspath(__file__)
WARM_UP_S = 0.05
ALONE_S = 0.05
MANY = 1000  # requests that a 99.9 % quantile needs at least
now = time.perf_counter_ns


def best_of_three(threads, bodies):
    """Seconds by number of threads. The numbers take turns: the speed of a core may change within a second."""
    seconds = {}
    for _ in range(3):
        for count in map(int, threads):
            seconds[count] = min(seconds.get(count, float("inf")), together(bodies(count)) / 1e9)
    return seconds


# [countdown]
def countdown(n):
    while n > 0:
        n -= 1


def countdowns(total, interval, *threads):
    """C1, C5: seconds to count down from `total`, divided among threads; the best of three, as the author took it."""
    sys.setswitchinterval(float(interval))
    return best_of_three(threads, lambda count: [lambda: countdown(int(total) // count)] * count)


# [/countdown]


# [hashes]
def hashes(bytes_each, *threads):
    """C2: seconds to hash eight messages, divided among threads; the best of three. hashlib releases the GIL."""
    messages = [bytes(int(bytes_each)) for _ in range(8)]

    def work(part):
        for message in part:
            hashlib.sha256(message)

    return best_of_three(threads, lambda count: [lambda i=i: work(messages[i::count]) for i in range(count)])


# [/hashes]


class CpuWork:
    """`count` workers beside the server; `kind` says where they run: threads, processes, interpreters or native."""

    def __init__(self, kind, count, folder):
        self._file = tempfile.NamedTemporaryFile()  # noqa: SIM115 (it lives as long as the work)
        self._file.write(bytes(8 * (count + 1)))
        self._file.flush()
        self._memory = mmap.mmap(self._file.fileno(), 0)
        self._shared = memoryview(self._memory).cast("Q")
        self._processes, self._threads, self.thread_ids = [], [], []
        path = self._file.name
        for place in range(1, count + 1):
            if kind == "processes":
                command = [sys.executable, "-I", ME, "compute_in_process", path, str(place)]
                self._processes.append(subprocess.Popen(command, stdout=subprocess.DEVNULL))
                continue
            body = {
                "threads": lambda place=place: compute(path, place),
                "interpreters": lambda place=place: in_another_interpreter(path, place),
                "native": lambda place=place: self._native(folder, place),
            }[kind]
            self._threads.append(threading.Thread(target=self._noted, args=(body,), daemon=True))
        for thread in self._threads:
            thread.start()

    def _noted(self, body):
        self.thread_ids.append(threading.get_native_id())
        body()

    # [native]
    def _native(self, folder, place):
        """Native code through CDLL: a thousand chunks for each call, without the GIL."""
        count_up_and_down = ctypes.CDLL(os.path.join(folder, "libconvoy.so")).count_up_and_down
        while not self._shared[0]:
            count_up_and_down(ctypes.c_long(1000 * CHUNK))
            self._shared[place] += 1000

    # [/native]

    def chunks(self):
        return sum(self._shared[1:])

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
                process.kill()


def compute_in_process(path, place):
    compute(path, int(place))


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


@contextlib.contextmanager
def serve(kind, note=None):
    """An echo server on an ephemeral port of loopback: yields the port and a list that gets the cores of its threads."""
    listener = socket.create_server((HOST, 0))
    listener.settimeout(20)
    cores = []

    def accept():
        with contextlib.suppress(OSError):
            sock, _ = listener.accept()
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            sock.settimeout(None)
            handle_client(sock, note)
            cores.append(core_of("self", threading.get_native_id()))

    # [asyncio]
    async def echo(reader, writer):
        writer.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        while data := await reader.read(4096):
            writer.write(data)
            await writer.drain()
        writer.close()
        cores.append(core_of("self", threading.get_native_id()))

    # [/asyncio]

    async def serve_forever():
        server = await asyncio.start_server(echo, sock=listener)
        async with server:
            await server.serve_forever()

    body = accept if kind == "threads" else lambda: asyncio.run(serve_forever())
    threading.Thread(target=body, daemon=True).start()
    try:
        yield listener.getsockname()[1], cores
    finally:
        listener.close()


# [client]
def client(port, seconds, core):
    """Send one byte, wait for it, again: nanoseconds of each request. Runs in a process of its own."""
    if core != "any":
        os.sched_setaffinity(0, {int(core)})
    with socket.create_connection((HOST, int(port)), timeout=10) as sock:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

        def request():
            began = now()
            sock.sendall(b"x")
            sock.recv(1)
            return began, now()

        end = now() + WARM_UP_S * 1e9
        while request()[1] < end:
            pass
        print("warm", flush=True)
        spans = []
        end = now() + float(seconds) * 1e9
        while not spans or spans[-1][1] < end:
            spans.append(request())
    return {"spans": spans, "core": core_of("self", os.getpid())}


# [/client]


def start_client(port, seconds, core):
    return subprocess.Popen(
        [sys.executable, "-I", ME, "client", str(port), str(seconds), str(core)], stdout=subprocess.PIPE, text=True
    )


def core_of(process, thread):
    """The core that a thread ran on last; None where the system does not say."""
    try:
        with open(f"/proc/{process}/task/{thread}/stat") as file:
            return int(file.read().rsplit(")", 1)[1].split()[36])
    except (OSError, ValueError, IndexError):
        return None


# [echo]
def echo(folder, kind, count, interval, seconds, pinning, server, others):
    """C3, C4, C6: requests and their latencies, with CPU work beside the server.

    kind, count: CPU work, see CpuWork; pinning: `none`, `one core` for all, or `client apart`: the server's process on
    one core and the client on another; server: `threads` or `asyncio`; others: busy processes that nobody asked for.
    """
    sys.setswitchinterval(float(interval))
    client_core = "any"
    if pinning != "none":
        first, last = min(os.sched_getaffinity(0)), max(os.sched_getaffinity(0))
        os.sched_setaffinity(0, {first})
        client_core = first if pinning == "one core" else last
    noise = CpuWork("processes", int(others), folder)
    work = CpuWork(kind, int(count), folder)
    try:
        work.wait_until_all_work()
        noise.wait_until_all_work()
        before, began = work.chunks(), time.perf_counter()
        time.sleep(ALONE_S)
        alone = (work.chunks() - before) / (time.perf_counter() - began)
        with serve(server) as (port, server_cores):
            process = start_client(port, seconds, client_core)
            try:
                process.stdout.readline()
                before, began = work.chunks(), time.perf_counter()
                answer = json.loads(process.communicate(timeout=30)[0])
                during = (work.chunks() - before) / (time.perf_counter() - began)
            finally:
                process.kill()
            cores = {
                "client": answer["core"],
                "server": server_cores[0] if server_cores else None,
                "CPU work": [core_of("self", thread) for thread in work.thread_ids],
            }
    finally:
        work.stop()
        noise.stop()
    spans = answer["spans"]
    took = sorted(end - start for start, end in spans)
    quantile = lambda q: took[min(len(took) - 1, int(q * len(took)))] / 1e3  # noqa: E731
    return {
        "rate": len(spans) / (spans[-1][1] - spans[0][0]) * 1e9,
        "requests": len(spans),
        "p50": quantile(0.5),
        "p99": quantile(0.99),
        "p99.9": quantile(0.999) if len(spans) >= MANY else None,
        "work": during / alone if alone else None,
        "cores": cores,
    }


# [/echo]


# [timeline]
def timeline(interval, seconds):
    """C8: who held the GIL when. One CPU thread, one client; all times in ns of one clock.

    The CPU thread looks at the clock all the time: where it did not, it had no GIL (or no core).
    """
    sys.setswitchinterval(float(interval))
    gaps, notes, running = [], [], True

    def compute_and_note():
        last = now()
        while running:
            time_ = now()
            if time_ - last > 20_000:
                gaps.append((last, time_))
            last = time_

    thread = threading.Thread(target=compute_and_note, daemon=True)
    with serve("threads", notes.append) as (port, _):
        thread.start()
        process = start_client(port, seconds, "any")
        try:
            answer = json.loads(process.communicate(timeout=30)[0].splitlines()[-1])
        finally:
            process.kill()
            running = False
    thread.join(5)
    return {"spans": answer["spans"], "server": notes, "gaps": gaps}


# [/timeline]

if __name__ == "__main__":
    print(json.dumps(globals()[sys.argv[1]](*sys.argv[2:])))
