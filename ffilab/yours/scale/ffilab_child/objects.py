"""Objects of a free-threaded build, by their bytes: what counts and locks them. Checked before anything is written."""

import ctypes
import gc
import threading
import types

IMMORTAL, DEFERRED = 0xFFFFFFFF, 1 << 6
# One reference of a thread that does not own the object, in `shared`.
ONE = 4


class Refused(Exception):
    """What this process cannot do, as a sentence for the reader."""


class Head(ctypes.Structure):
    """The first 32 bytes of an object of a free-threaded build (Include/object.h)."""

    _fields_ = (
        ("tid", ctypes.c_size_t),
        ("flags", ctypes.c_uint16),
        ("mutex", ctypes.c_uint8),
        ("gc", ctypes.c_uint8),
        ("local", ctypes.c_uint32),
        ("shared", ctypes.c_ssize_t),
        ("type", ctypes.c_size_t),
    )


def head(thing):
    return Head.from_address(id(thing))


def byte_of_lock(thing):
    """The byte of a `threading.Lock` or `RLock`."""
    return ctypes.c_uint8.from_address(id(thing) + ctypes.sizeof(Head))


def in_thread(function, *arguments):
    """What a function returns, called in a thread of its own. Raises what it raises."""
    said, failed = [], []

    def run():
        try:
            said.append(function(*arguments))
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    if failed:
        raise failed[0]
    return said[0]


def tells(lock):
    """Does its byte say whether it is held? Before 3.14 that of an RLock does not."""
    states = [byte_of_lock(lock).value & 1]
    with lock:
        states.append(byte_of_lock(lock).value & 1)
    return [*states, byte_of_lock(lock).value & 1] == [0, 1, 0]


def check_layout():
    """Compare what is known of objects with objects made for it. Raises Refused: nothing was written then."""
    counted, taken = object(), []
    known = head(None).local == IMMORTAL and head(None).type == id(type(None)) and head(taken).type == id(list)
    known = known and head(check_layout).gc & DEFERRED and not head(taken).gc & DEFERRED
    before = head(counted).shared
    in_thread(taken.append, counted)
    known = known and head(counted).shared - before == ONE
    if not known or not tells(threading.Lock()) or not holds_back(taken):
        raise Refused("its objects are not laid out as those of the versions that are known: use another build")


def holds_back(a_list):
    """Is the byte that is taken for the list's mutex what keeps another thread from appending?"""
    mutex = ctypes.c_void_p(id(a_list) + Head.mutex.offset)
    if head(a_list).mutex:
        return False
    began = threading.Event()

    def appends():
        began.set()
        a_list.append(None)

    thread = threading.Thread(target=appends, daemon=True)
    ctypes.pythonapi.PyMutex_Lock(mutex)
    thread.start()
    began.wait()
    thread.join(0.02)
    waited = thread.is_alive()
    ctypes.pythonapi.PyMutex_Unlock(mutex)
    thread.join()
    return waited


def immortalize(thing):
    """Nobody counts it any more, and it is never freed."""
    its = head(thing)
    if its.local != IMMORTAL:
        if hasattr(ctypes.pythonapi, "_Py_SetImmortal"):
            ctypes.pythonapi._Py_SetImmortal(ctypes.py_object(thing))
        else:
            its.tid, its.shared, its.local = 0, 0, IMMORTAL


def defer(thing):
    """The interpreter's stack does not count it any more. Does nothing where that cannot be asked for."""
    if hasattr(ctypes.pythonapi, "PyUnstable_Object_EnableDeferredRefcount"):
        ctypes.pythonapi.PyUnstable_Object_EnableDeferredRefcount(ctypes.py_object(thing))


def status(thing):
    its = head(thing)
    return "immortal" if its.local == IMMORTAL else "deferred" if its.gc & DEFERRED else "counted"


def reachable():
    """All that the collector reaches, by id, but for frames."""
    found = {}
    for thing in gc.get_objects():
        found[id(thing)] = thing
        for other in gc.get_referents(thing):
            found[id(other)] = other
    return {key: thing for key, thing in found.items() if not isinstance(thing, types.FrameType)}


def in_words(error):
    """An error on one line."""
    return " ".join(f"{type(error).__name__}: {error}".rstrip(": ").split())[:300]
