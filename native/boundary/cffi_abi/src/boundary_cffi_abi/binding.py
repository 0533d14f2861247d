"""Wrappers around the library, made once for each way to read its declarations."""

import errno
import sys
import threading
import types
from pathlib import Path

LIBRARY = Path(__file__).with_name("libboundary.dylib" if sys.platform == "darwin" else "libboundary.so")


def bind(ffi):
    """All functions of the library, by an `ffi` that knows its declarations."""
    lib = ffi.dlopen(str(LIBRARY))

    # Parsed once: with a text, each call would look its type up again.
    SIZE = ffi.typeof("size_t *")
    BYTES = ffi.typeof("uint8_t[]")
    DOUBLES = ffi.typeof("double[]")
    ADDRESS, ALIGNED = ffi.typeof("uintptr_t"), ffi.alignof("double")
    POINT = ffi.typeof("point *")
    DOUBLE = ffi.typeof("double *")
    CALLBACK = ffi.typeof("int(*)(int, void *)")

    # [text]
    def code_points(text, /):
        data = text.encode()
        return lib.code_points(data, len(data))

    # [/text]

    def motto():
        size = ffi.new(SIZE)
        data = lib.motto(size)
        return ffi.unpack(data, size[0]).decode()

    def checksum(data, /):
        return lib.checksum(data, len(data))

    def make_bytes(size, value=0):
        data = ffi.new(BYTES, size)
        lib.fill(data, size, value)
        return bytes(ffi.buffer(data, size))

    # [buffer]
    def ends(values, /):
        data = ffi.from_buffer(DOUBLES, values)
        if int(ffi.cast(ADDRESS, data)) % ALIGNED and len(data):
            raise BufferError("the doubles are not aligned")
        return lib.ends(data, len(data))

    # [/buffer]

    def sum_list(values, /):
        return lib.sum_ints(values, len(values))

    # [point]
    def Point(x, y, /):
        return ffi.new(POINT, (x, y))

    def dot(p, /):
        return lib.dot(p[0])

    # [/point]

    # [callback]
    def callback(function, /):
        """Prepare a function for `apply`. Keep what this returns for as long as C may call it."""
        return ffi.callback(CALLBACK, lambda x, context: function(x))

    def apply(prepared, x, /):
        return lib.apply(prepared, ffi.NULL, x)

    # [/callback]

    # [root]
    def root(x, /):
        result = ffi.new(DOUBLE)
        if lib.root(x, result) == errno.EDOM:
            raise ValueError("no real root")
        return result[0]

    # [/root]

    # [handle]
    class Counter:
        """The C++ class through its C handle. cffi detaches the thread state, so that the GIL protects nothing here."""

        __slots__ = ("_handle", "_lock")

        def __init__(self, start, /):
            handle = lib.counter_new(start)
            if not handle:
                raise MemoryError
            self._handle, self._lock = ffi.gc(handle, lib.counter_delete), threading.Lock()

        def add(self, n, /):
            with self._lock:
                return lib.counter_add(self._handle, n)

        def add_unlocked(self, n, /):
            """Loses additions where two threads are in it, on every build."""
            return lib.counter_add(self._handle, n)

    # [/handle]

    return types.SimpleNamespace(
        noop=lib.noop,
        noop_detached=lib.noop,  # cffi detaches the thread state around every call
        answer=lib.answer,
        add_one=lib.add_one,
        add_five=lib.add_five,
        halve=lib.halve,
        code_points=code_points,
        motto=motto,
        checksum=checksum,
        make_bytes=make_bytes,
        ends=ends,
        sum_list=sum_list,
        sum_sequence=sum_list,  # whatever has a length and items
        Point=Point,
        dot=dot,
        scale=lib.scale,
        callback=callback,
        apply=apply,
        apply_detached=apply,  # cffi detaches the thread state, and attaches it in every callback
        root=root,
        work=lib.work,
        sleep_ms=lib.sleep_ms,
        Counter=Counter,
    )
