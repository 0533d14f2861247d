"""The way in that cffi has: a callback that is declared extern "Python"."""

from outside_cffi._library import ffi, lib


# [enter]
@ffi.def_extern()
def enter(data):
    ffi.from_handle(data)()


# [/enter]


@ffi.def_extern()
def keep(run, what):
    run(what)  # cffi detaches around it


def call_from_thread(callback, threads, calls, kept):
    """ns of each call of `callback` from threads of C."""
    data, ns = ffi.new_handle(callback), ffi.new("int64_t[]", threads * calls)
    if error := lib.call_from_threads(lib.enter, data, threads, calls, ns, lib.keep if kept else ffi.NULL):
        raise OSError(error, "no thread")
    return list(ns)
