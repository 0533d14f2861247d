"""One arm, measured by pyperf: `python pyperf_arm.py --inherit-environ ARM -o OUT.json`.

The arm is the same that our own worker runs; ARM holds its file, function and arguments as JSON.
"""

import importlib.util
import json
import os

import pyperf


# [main]
def main():
    arm = json.loads(os.environ["ARM"])
    spec = importlib.util.spec_from_file_location("arm", arm["file"])
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    timer = getattr(module, arm["function"])(**arm["arguments"])
    runner = pyperf.Runner()
    runner.bench_time_func("call", lambda loops: timer.timeit(loops) / 1e9)


# [/main]


if __name__ == "__main__":
    main()
