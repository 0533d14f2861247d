"""One job, as JSON: run a statement in several threads or processes, or watch it; write one answer to a file. What it
does to objects (immortal, deferred) cannot be undone: one process, one job."""

import itertools
import json
import os
import sys
import warnings

from .objects import Refused, check_layout, in_thread, in_words
from .running import made, measured, namespace
from .watching import parked, watched

KNOWN = ((3, 13), (3, 14), (3, 15))


def hurry():
    """Come before other work of this machine, where that is allowed: it is to root, for a moment."""
    try:
        with open("/proc/self/autogroup", "w") as group:
            group.write("-10")
    except OSError:
        pass


def answered(job):
    """Do a job. Raises Refused, in a sentence."""
    if sys.version_info[:2] not in KNOWN or "free-threading" not in sys.version:
        raise Refused("its objects are not known: use a free-threaded build that is")
    if job["hurry"]:
        hurry()
    check_layout()
    sys.path += job["path"]
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        try:
            names = namespace(job)
            loop = made(job["statement"], names)
            in_thread(loop, itertools.repeat(None, 1), 0)
        except BaseException as error:
            raise Refused(f"it cannot be run ({in_words(error)}): correct it") from None
    gil = [str(one.message) for one in warned if "global interpreter lock" in str(one.message)]
    did = {"measure": measured, "watch": watched, "park": parked}[job["do"]](job, names)
    return {**did, "gil": vars(sys)["_is_gil_enabled"](), "because": gil}


def main():
    job = json.loads(sys.argv[1])
    try:
        answer = answered(job)
    except Refused as refused:
        answer = {"refused": str(refused)}
    with open(job["answer"], "w") as file:
        json.dump(answer, file)
    os._exit(0)
