"""The workload that profile-guided optimisation learns from.

`make profile-opt` runs this file with the instrumented interpreter. It exercises
what the book measures: calls, attribute access, strings, containers, ctypes and
threads. Standard library only, the same file for every build, so that no build
is trained for another task than its partner.
"""

import ctypes
import json
import re
import sys
import threading

ROUNDS = 20


class Point:
    __slots__ = ("x", "y")

    def __init__(self, x, y):
        self.x = x
        self.y = y

    def add(self, other):
        return Point(self.x + other.x, self.y + other.y)


class Account:
    def __init__(self):
        self.balance = 0
        self.log = []

    def deposit(self, amount, *, note=""):
        self.balance += amount
        self.log.append((amount, note))
        return self.balance


def fibonacci(n):
    return n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)


def calls():
    total = Point(0, 0)
    step = Point(1, 2)
    account = Account()
    for i in range(30_000):
        total = total.add(step)
        account.deposit(i, note="x")
        len(account.log)
        abs(-i)
        max(i, 3)
        (lambda *args, **kwargs: args)(i, key=i)
    fibonacci(21)
    try:
        for i in range(3_000):
            try:
                raise ValueError(i)
            except ValueError as error:
                error.args
    finally:
        pass
    return sum(x for x in generate(30_000))


def generate(n):
    for i in range(n):
        if i % 3:
            yield i


def strings():
    words = [f"word{i:05d}" for i in range(5_000)]
    text = " ".join(words)
    text.upper().lower().replace("word", "WÖRD").encode().decode()
    sorted(text.split(), key=str.casefold)
    re.findall(r"\bword(\d+)", text)
    for word in words:
        word.startswith("word0"), word[2:5], word + "x", "%s-%d" % (word, 3), hash(word)
        word.encode("utf-8"), b"\xc3\xa9t\xc3\xa9".decode(), repr(word), int(word[4:])
    json.loads(json.dumps({w: [1, 2.5, None, w] for w in words}))


def containers():
    for _ in range(20):
        table = {i: str(i) for i in range(2_000)}
        table.update({str(i): i for i in range(2_000)})
        for key in range(2_000):
            table[key], table.get(key), key in table
        values = [table[i] for i in range(2_000)]
        values.sort(reverse=True)
        values[10:200] = values[20:30]
        tuple(values), set(values), list(map(len, values)), dict(zip(values, values))
        while values:
            values.pop()
        first, *rest = range(50)
        [x * y + 1.5 for x in range(60) for y in range(30)]


def ctypes_calls():
    process = ctypes.CDLL(None)
    holding = ctypes.PyDLL(None)
    absolute, length, sort = process.abs, process.strlen, process.qsort
    length.argtypes, length.restype = [ctypes.c_char_p], ctypes.c_size_t
    held = holding.labs
    compare_type = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_int), ctypes.POINTER(ctypes.c_int))
    compare = compare_type(lambda a, b: a[0] - b[0])
    for i in range(20_000):
        absolute(-i), length(b"hidden corners"), held(i), process.abs(ctypes.c_int(i))
    numbers = (ctypes.c_int * 200)(*range(200, 0, -1))
    sort(numbers, 200, ctypes.sizeof(ctypes.c_int), compare)

    class Pair(ctypes.Structure):
        _fields_ = [("a", ctypes.c_int), ("b", ctypes.c_double)]

    for i in range(3_000):
        pair = Pair(i, 1.5)
        pair.a += 1
        ctypes.byref(pair), bytes(pair)


def threads():
    lock, shared = threading.Lock(), {}

    def work(name):
        for i in range(4_000):
            with lock:
                shared[i % 100] = name
            shared.get(i % 100)
            Point(i, i).add(Point(1, 1))

    crew = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in crew:
        thread.start()
    for thread in crew:
        thread.join()


def main():
    for _ in range(ROUNDS):
        for task in (calls, strings, containers, ctypes_calls, threads):
            task()
    print(f"trained {sys.version}")


if __name__ == "__main__":
    main()
