"""Declarations and wrappers, made once for each loader."""

import ctypes
import errno
import sys
import threading
import types
from ctypes import POINTER, addressof, byref, c_char, c_double, c_int, c_int64, c_size_t, c_ubyte, c_uint32, c_void_p
from pathlib import Path

ALIGNED = ctypes.alignment(c_double)
LIBRARY = Path(__file__).with_name("libboundary.dylib" if sys.platform == "darwin" else "libboundary.so")


# [point]
class Point(ctypes.Structure):
    _fields_ = [("x", c_double), ("y", c_double)]


# [/point]


def bind(loader):
    """All functions of the library through `loader` (ctypes.CDLL or ctypes.PyDLL)."""
    library = loader(str(LIBRARY))

    def declare(name, result, *arguments):
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
        return function

    # [declare]
    noop = declare("noop", None)
    answer = declare("answer", c_int)
    add_one = declare("add_one", c_int, c_int)
    add_five = declare("add_five", c_int64, c_int, c_int, c_int, c_int, c_int)
    halve = declare("halve", c_double, c_double)
    # [/declare]
    _code_points = declare("code_points", c_size_t, ctypes.c_char_p, c_size_t)
    _motto = declare("motto", c_void_p, POINTER(c_size_t))
    _checksum = declare("checksum", c_uint32, ctypes.c_char_p, c_size_t)
    _fill = declare("fill", None, POINTER(c_char), c_size_t, c_ubyte)
    _ends = declare("ends", c_double, POINTER(c_double), c_size_t)
    _sum_ints = declare("sum_ints", c_int64, POINTER(c_int), c_size_t)
    dot = declare("dot", c_double, Point)
    _scale = declare("scale", None, POINTER(Point), c_double)
    _root = declare("root", c_int, c_double, POINTER(c_double))
    work = declare("work", c_int, c_int)
    sleep_ms = declare("sleep_ms", None, c_int)

    # [text]
    def code_points(text, /):
        data = text.encode()
        return _code_points(data, len(data))

    # [/text]

    def motto():
        size = c_size_t()
        address = _motto(byref(size))
        return ctypes.string_at(address, size.value).decode()

    def checksum(data, /):
        return _checksum(data, len(data))

    def make_bytes(size, value=0):
        buffer = (c_char * size)()
        _fill(buffer, size, value)
        return buffer.raw

    # [buffer]
    def ends(values, /):
        size = memoryview(values).nbytes // 8
        doubles = (c_double * size).from_buffer(values)
        if addressof(doubles) % ALIGNED and size:
            raise BufferError("the doubles are not aligned")
        return _ends(doubles, size)

    # [/buffer]

    def sum_list(values, /):
        items = (c_int * len(values))(*values)
        return _sum_ints(items, len(items))

    def scale(point, by, /):
        _scale(byref(point), by)

    # [callback]
    CALLBACK = ctypes.CFUNCTYPE(c_int, c_int, c_void_p)
    _apply = declare("apply", c_int, CALLBACK, c_void_p, c_int)

    def callback(function, /):
        """Prepare a function for `apply`. Keep what this returns for as long as C may call it."""
        return CALLBACK(lambda x, context: function(x))

    def apply(prepared, x, /):
        return _apply(prepared, None, x)

    # [/callback]

    # [root]
    def root(x, /):
        result = c_double()
        if _root(x, byref(result)) == errno.EDOM:
            raise ValueError("no real root")
        return result.value

    # [/root]

    # [handle]
    counter_new = declare("counter_new", c_void_p, c_int64)
    counter_add = declare("counter_add", c_int64, c_void_p, c_int64)
    counter_delete = declare("counter_delete", None, c_void_p)

    class Counter:
        """The C++ class through its C handle. CDLL detaches the thread state, so that the GIL protects nothing here."""

        __slots__ = ("_handle", "_lock")

        def __init__(self, start, /):
            self._handle, self._lock = None, threading.Lock()
            self._handle = counter_new(start)
            if not self._handle:
                raise MemoryError

        def add(self, n, /):
            with self._lock:
                return counter_add(self._handle, n)

        def add_unlocked(self, n, /):
            """Loses additions where two threads are in it: without the GIL, and through CDLL with it."""
            return counter_add(self._handle, n)

        def __del__(self):
            counter_delete(self._handle)

    # [/handle]

    functions = types.SimpleNamespace(
        noop=noop,
        answer=answer,
        add_one=add_one,
        add_five=add_five,
        halve=halve,
        code_points=code_points,
        motto=motto,
        checksum=checksum,
        make_bytes=make_bytes,
        ends=ends,
        sum_list=sum_list,
        sum_sequence=sum_list,  # whatever has a length and can be unpacked
        Point=Point,
        dot=dot,
        scale=scale,
        callback=callback,
        apply=apply,
        root=root,
        work=work,
        sleep_ms=sleep_ms,
        Counter=Counter,
    )
    if loader is ctypes.CDLL:
        # As every call through CDLL; what ctypes calls back attaches the thread state in any case.
        functions.noop_detached, functions.apply_detached = noop, apply
    return functions
