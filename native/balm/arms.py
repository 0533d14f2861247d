"""Benchmark bodies of the chapter on GIL Balm: make all strings of a text, and drop them. Standard library only."""

import functools
import os
import struct
import sys
import sysconfig
import time
import timeit

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import corpus

# Ways to make strings that CPython did not allocate: first arguments of Text.strings.
OURS = ("pooled", "compact", "block", "block and tuple", "pages", "pages and tuple")


# [strings]
def load(folder):
    """The module. Raises ImportError if it was not built."""
    sys.path.insert(0, os.path.join(folder, sysconfig.get_config_var("SOABI")))
    return __import__("balm")


@functools.cache
def text(module):
    """The text that all arms of a process share."""
    return module.Text(*corpus.ascii_text())


def timer(statement, **names):
    return timeit.Timer(statement, timer=time.perf_counter_ns, globals=names)


def strings(folder, method, released=False):
    """A tuple of all lines, made and dropped. Raises ValueError if this CPython has no such way."""
    make = text(load(folder)).strings
    make(method, released)
    return timer("make(method, released)", make=make, method=method, released=released)


# [/strings]


# [loop]
def loop(folder, what):
    """A part of the work, and no string: the bytes of a block's heads and of its tuple; see floors.c."""
    return timer("floor(what)", floor=text(load(folder)).floor, what=what)


def written(folder):
    """Bytes written for each string, its head and its place in the tuple: in pages, and in a block, where a pointer to it follows."""
    shortest = text(load(folder)).floor("bytes") / corpus.LINES
    return {"block": shortest + struct.calcsize("P"), "pages": shortest}


# [/loop]


# [rivals]
def one_decode():
    """Decode the whole text once, then let str cut it at its line breaks."""
    data, each = corpus.ascii_text()
    whole, at = [], 0
    for length in each:
        whole.append(data[at : at + length])
        at += length
    return timer("whole.decode().splitlines()", whole=b"\n".join(whole))


def views():
    """A memoryview of each line: bytes, not text."""
    data, each = corpus.ascii_text()
    spans, at = [], 0
    for length in each:
        spans.append(slice(at, at + length))
        at += length
    return timer("[whole[span] for span in spans]", whole=memoryview(data), spans=spans)


def made_once(folder):
    """Strings made once and handed out again: what interning or a cache could reach at best."""
    return timer("tuple(strings)", strings=list(text(load(folder)).strings("new")))


# [/rivals]


# [reading]
@functools.cache
def scattered(make):
    """A few of CPython's own strings in every arena, the same for all arms: as they live on, no arena can go back to the system."""
    return [string for one in [make("new") for _ in range(3)] for string in one[::50]]


def lazy(folder, every):
    """Make only the strings that are read: the length of every n-th one. Arenas are held."""
    lines = text(load(folder))
    names = {"lines": lines, "chosen": range(0, corpus.LINES, every), "alive": scattered(lines.strings)}
    return timer("for i in chosen: len(lines[i])", **names)


def read(folder, method, every):
    """Make all strings, take the length of every n-th one, drop them before the next are made. Arenas are held."""
    make = text(load(folder)).strings
    names = {"make": make, "method": method, "chosen": range(0, corpus.LINES, every), "alive": scattered(make)}
    return timer("lines = make(method)\nfor i in chosen: len(lines[i])\ndel lines", **names)


# [/reading]
