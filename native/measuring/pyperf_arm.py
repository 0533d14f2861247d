"""One arm, measured by pyperf: `python pyperf_arm.py --inherit-environ ARM -o OUT.json`.

The arm is the same that our own worker runs; ARM holds its statement and setup as JSON.
"""

import json
import os
import time
import timeit

import pyperf


# [main]
def main():
    arm = json.loads(os.environ["ARM"])
    timer = timeit.Timer(arm["statement"], arm["setup"], time.perf_counter_ns)
    runner = pyperf.Runner()
    runner.bench_time_func("call", lambda loops: timer.timeit(loops) / 1e9)


# [/main]


if __name__ == "__main__":
    main()
