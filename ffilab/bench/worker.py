"""The measured process: one per interpreter, group and restart.

Standard library only, no thread, no import of ours: it runs on every
interpreter as a plain file. Speaks JSON lines over two file descriptors of its
own, so that nothing an arm prints can be mistaken for an answer.

    {"op": "load", "cpu": core to stay on or null, "arms": {name: {"file", "function", "arguments"}}}
        -> {"facts": {...}, "missing": {name: reason}}
    {"op": "time", "arm": name, "loops": n}
        -> {"ns": elapsed, "involuntary": context switches}
    {"op": "quit"}
"""

import importlib.util
import json
import os
import resource
import sys
import sysconfig


def load(path, modules={}):
    """Import a file by its path, once."""
    if path not in modules:
        spec = importlib.util.spec_from_file_location(f"arms_{len(modules)}", path)
        modules[path] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(modules[path])
    return modules[path]


def facts():
    """What this process is, read after the arms are imported."""
    return {
        "version": sys.version,
        "free_threaded": bool(sysconfig.get_config_var("Py_GIL_DISABLED")),
        "gil_enabled": getattr(sys, "_is_gil_enabled", lambda: True)(),
        "pid": os.getpid(),
    }


def main():
    commands = os.fdopen(int(sys.argv[1]), "r", encoding="utf-8")
    answers = os.fdopen(int(sys.argv[2]), "w", encoding="utf-8", buffering=1)
    arms = {}

    def answer(message):
        answers.write(json.dumps(message) + "\n")

    for line in commands:
        order = json.loads(line)
        if order["op"] == "load":
            if order["cpu"] is not None:
                os.sched_setaffinity(0, {order["cpu"]})
            missing = {}
            for name, arm in order["arms"].items():
                try:
                    arms[name] = getattr(load(arm["file"]), arm["function"])(**arm["arguments"])
                except Exception as error:
                    missing[name] = f"{type(error).__name__}: {error}"
            answer({"facts": facts(), "missing": missing})
        elif order["op"] == "time":
            before = resource.getrusage(resource.RUSAGE_SELF).ru_nivcsw
            elapsed = arms[order["arm"]].timeit(order["loops"])
            after = resource.getrusage(resource.RUSAGE_SELF).ru_nivcsw
            answer({"ns": elapsed, "involuntary": after - before})
        else:
            return


if __name__ == "__main__":
    main()
