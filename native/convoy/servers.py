"""Servers, clients and CPU work, all on loopback, all with an end. Standard library only.

A server runs in a process of `ffilab/measure/worker.py`; what started it, `sys.argv[0]`, starts the processes beside
it. What few of them need is imported where they do: asyncio takes a fifth of the time of a process of this chapter.
"""

import contextlib
import json
import mmap
import os
import socket
import subprocess
import sys
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
HOST = "127.0.0.1"
# A flag of a code object (`inspect.CO_COROUTINE`).
COROUTINE = 0x80
now = time.perf_counter_ns


def beside(file, function, **arguments):
    """Start a function of a file in a process of its own, on the same interpreter."""
    command = [sys.executable, "-I", sys.argv[0], "case", os.path.join(HERE, file), function, json.dumps(arguments)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def end(process):
    """Kill a process and see it out: the CPU time of a child that nobody waits for would count as a stranger's."""
    process.kill()
    process.wait()


def stay_on(core):
    """Keep the calling thread on a core, if one is given. Threads that it starts later inherit that."""
    if core is not None:
        os.sched_setaffinity(0, {core})


def places(pinning):
    """The cores of the server's thread, of the CPU threads, and of the client; None: any."""
    if pinning == "none":
        return None, None, None
    cores = sorted(os.sched_getaffinity(0))
    first, last = cores[0], cores[-1]
    return {
        "one core": (first, first, first),
        "client apart": (first, first, last),
        "server on one core": (first, first, None),
        # Of two cores the client shares the one whose thread sleeps while it works.
        "threads apart": (first, last, cores[1] if len(cores) > 2 else first),
    }[pinning]


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


class CpuWork:
    """CPU work beside the server, `count` times, until it is stopped.

    work: `work(path, place, folder)` runs in a thread of this process, and stays on a core if one is given; a name is
    that of a function in cpu_work.py, which gets a process of its own.
    """

    def __init__(self, work, count, folder, core=None):
        import tempfile

        self._core, self._count = core, count
        self._file = tempfile.NamedTemporaryFile()  # noqa: SIM115 (it lives as long as the work)
        self._file.write(bytes(8 * (2 * count + 1)))
        self._file.flush()
        self._memory = mmap.mmap(self._file.fileno(), 0)
        self._shared = memoryview(self._memory).cast("Q")
        self._processes, self._threads, self.thread_ids = [], [], []
        for place in range(1, count + 1):
            if isinstance(work, str):
                self._processes.append(beside("cpu_work.py", work, path=self._file.name, place=place))
            else:
                arguments = (work, self._file.name, place, folder)
                self._threads.append(threading.Thread(target=self._noted, args=arguments, daemon=True))
        for thread in self._threads:
            thread.start()

    def _noted(self, work, *arguments):
        stay_on(self._core)
        self.thread_ids.append(threading.get_native_id())
        work(*arguments)

    @property
    def _chunks(self):
        return self._shared[1 : self._count + 1]

    def reading(self):
        """By now: chunks, seconds for which the workers had a core, and seconds."""
        return sum(self._chunks), sum(self._shared[self._count + 1 :]) / 1e9, time.perf_counter()

    def since(self, before):
        """What a reading has grown by, in the same order."""
        return [later - earlier for later, earlier in zip(self.reading(), before)]

    def wait_until_all_work(self):
        deadline = time.monotonic() + 5
        while not all(self._chunks) and time.monotonic() < deadline:
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


@contextlib.contextmanager
def serve(handler, nodelay=False):
    """A server on an ephemeral port of loopback: yields the port and a list that gets the core of its thread.

    handler: what a thread does with its client's socket, or a coroutine of asyncio's streams. nodelay: switch Nagle's
    algorithm off. The author does not, and asyncio always does.
    """
    listener = socket.create_server((HOST, 0))
    listener.settimeout(20)
    cores = []

    def accept():
        with contextlib.suppress(OSError):
            sock, _ = listener.accept()
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, nodelay)
            sock.settimeout(None)
            with contextlib.suppress(OSError), sock:
                handler(sock)
            cores.append(core_of("self", threading.get_native_id()))

    async def answer(reader, writer):
        await handler(reader, writer)
        cores.append(core_of("self", threading.get_native_id()))

    async def serve_forever():
        server = await asyncio.start_server(answer, sock=listener)
        async with server:
            await server.serve_forever()

    is_coroutine = handler.__code__.co_flags & COROUTINE
    if is_coroutine:
        import asyncio
    body = (lambda: asyncio.run(serve_forever())) if is_coroutine else accept
    threading.Thread(target=body, daemon=True).start()
    try:
        yield listener.getsockname()[1], cores
    finally:
        listener.close()


WARM_UP_S = 0.05


def client(core, pause=0, nodelay=False):
    """Send one byte, wait for it, again. Runs in a process of its own, which stays on a core if one is given.

    Standard input gives the port, and then orders, a line each: how many requests, for how many seconds at least and at
    most, and how many requests even if that takes longer. It answers with lines: that it has started; how many requests
    warmed it up; for each order begin and end (ns) of every request; at the end of the orders the core that it ran on
    last. pause: seconds between two requests.
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

        print(len(requests(1, WARM_UP_S, WARM_UP_S)), flush=True)
        for order in sys.stdin:
            print(json.dumps(requests(*json.loads(order))), flush=True)
    print(json.dumps(core_of("self", os.getpid())), flush=True)


class Client:
    """The client, as the server's process sees it. It has started, with all its imports, before any CPU work begins."""

    def __init__(self, core=None, pause=0, nodelay=False):
        self._process = beside("servers.py", "client", core=core, pause=pause, nodelay=nodelay)
        self._process.stdout.readline()

    def order(self, *lines):
        for line in lines:
            print(json.dumps(line), file=self._process.stdin, flush=True)

    def answer(self):
        return json.loads(self._process.stdout.readline())

    def requests(self, wanted, least_s, most_s, fewest=1):
        self.order([wanted, least_s, most_s, fewest])
        return self.answer()

    def leave(self):
        """No more orders: the core that it ran on last. Nobody waits for its end, which may take long beside CPU
        work."""
        self.no_more()
        return self.answer()

    def no_more(self):
        self._process.stdin.close()

    def end(self):
        end(self._process)


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
