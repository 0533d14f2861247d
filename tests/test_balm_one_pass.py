"""Strings of GIL Balm in one pass: what nobody keeps is freed later, and what somebody keeps is left alone. And
batches."""

import pytest

from ffilab.setup.catalogue import GIL
from notebooks.balm.experiment import BEST, NEW, ONE_PASS
from tests.helpers.balm_program import printed

START = f"""
import gc, threading, time
one, other = (ascii_text(500, seed) for seed in (1, 2))
large = ascii_text(9000)
def made(data): return balm.Text(*data).strings({ONE_PASS!r})
def collected():
    gc.collect()
    return balm.buffers_alive()
"""


def test_one_pass_gives_a_text_back_later_and_says_when(label):
    code = """
kept = made(one)[3]
print(balm.buffers_alive())
del kept
print(balm.buffers_alive(), collected())  # nobody looked; the collector does
made(one)
made(other)
print(balm.buffers_alive(), collected())  # the next one looks
held, most = [made(one) for _ in range(6)], 0
while held:
    held.pop()
    most = max(most, balm.buffers_alive() - len(held))
print(most, collected())  # the bound
text = balm.Text(*large)
text.strings("one pass, freed later")
print(balm.buffers_alive())
del text  # a large text waits for nobody
print(balm.buffers_alive())
kept = made(large)
del kept
print(balm.buffers_alive())
thread = threading.Thread(target=made, args=(one,))
thread.start()
thread.join()
while collected():  # its thread is gone: the one that collects looks
    time.sleep(0.01)
"""
    assert printed(label, START + code) == ["1", "1 0", "1 0", "2 0", "1", "0", "0"]


def test_one_pass_leaves_a_string_that_somebody_kept_alone(label):
    """Whether it is the first, in the middle or the last of its page; and its text goes when it goes, once its page was
    looked at."""
    code = """
def real(data): return balm.Text(*data).strings("new")
lines = ascii_text(4000, 3)
for kept_at in ([0], [7], [8], [1000], [1021, 1022], [3999], range(0, 4000, 97)):
    first = made(lines)
    hashes = list(map(hash, first))
    kept = [first[i] for i in kept_at]
    del first
    second, expected = made((lines[0].swapcase(), lines[1])), real((lines[0].swapcase(), lines[1]))
    assert list(second) == list(expected) and list(map(hash, second)) == list(map(hash, expected))
    assert len(set(map(id, second))) == 4000 and not {*map(id, kept)} & {*map(id, second)}
    assert kept == [real(lines)[i] for i in kept_at] and list(map(hash, kept)) == [hashes[i] for i in kept_at]
    print(balm.buffers_alive(), end=" ")
    del kept
    print(balm.buffers_alive(), end=" ")
    del second
    print(collected(), end=" ")
for lines in (1, 3000, 500, 2, 5000, 1022, 1023, 1024, 4000):
    data = ascii_text(lines, lines)
    assert list(made(data)) == list(real(data)), lines
print(collected())
"""
    assert printed(label, START + code) == ["2 1 0 " * 7 + "0"]


def test_places_that_are_not_written_again_hold_the_right_strings(label):
    """Tuples of several texts and lengths, in this way and another, are made, kept and dropped in any order."""
    code = """
import random
random_, alive = random.Random(5), []
texts = [balm.Text(*ascii_text(lines, lines)) for lines in (1, 900, 1022, 1023, 2500, 2501, 3000)]
real = [text.strings("new") for text in texts]
for _ in range(3000):
    which, method = random_.randrange(7), random_.choice(["one pass, freed later"] * 5 + ["pages and tuple"])
    made = texts[which].strings(method)
    assert made == real[which], which
    alive.append((which, made, made[-1] if random_.random() < 0.1 else None))
    del made
    while len(alive) > random_.randrange(4):
        which, *kept = alive.pop(random_.randrange(len(alive)))
        assert kept[0] == real[which] and kept[1] in (None, real[which][-1])
alive.clear()
del kept
texts.clear()
print(collected())
"""
    assert printed(label, START + code) == ["0"]


@pytest.mark.parametrize("method", [NEW, BEST, ONE_PASS])
def test_batches_are_the_lines_in_their_order(label, method):
    """Whatever their size; two threads that share them get each line once."""
    code = """
import itertools, threading
method = sys.argv[2]
for data in (ascii_text(1000), mixed_text(1000), (b"", [])):
    text = balm.Text(*data)
    for size in (1, 3, 256, 1000, 5000):
        batches = list(text.batches(method, size))
        assert {len(batch) for batch in batches[:-1]} <= {size} and all(batches)
        assert list(itertools.chain(*batches)) == list(text.strings("new")), (size, len(data[1]))
    # None is kept: each stands where the last one stood.
    read = [str(line) for batch in text.batches(method, 64) for line in batch]
    assert read == list(text.strings("new"))
text, got = balm.Text(*ascii_text(20_000)), []
shared = text.batches(method, 7)
threads = [threading.Thread(target=lambda: got.extend(map(str, itertools.chain(*shared)))) for _ in range(2)]
for thread in threads: thread.start()
for thread in threads: thread.join()
print(sorted(got) == sorted(text.strings("new")), next(shared, None))
del text, shared, batches, threads, thread
import gc; gc.collect()
print(balm.buffers_alive())
"""
    assert printed(label, code, method) == ["True None", "0"]


def test_batches_that_cannot_be_are_errors():
    code = """
text = balm.Text(b"abc", [3])
for arguments in (("new", 0), ("new", -1), ("no such way", 1), (3, 1)):
    try:
        text.batches(*arguments)
    except Exception as error:
        print(type(error).__name__)
text.batches("new", sys.maxsize)
"""
    assert printed(GIL, code) == ["ValueError", "ValueError", "ValueError", "TypeError"]
