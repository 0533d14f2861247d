"""One arm, as `python -m timeit` measures it: `python timeit_arm.py ARM` prints five times of a loop (ns) as JSON.

ARM holds the statement and setup of an arm as JSON. Standard library only.
"""

import json
import sys
import time
import timeit


# [main]
def main():
    arm = json.loads(sys.argv[1])
    timer = timeit.Timer(arm["statement"], arm["setup"], time.perf_counter_ns)
    # As Timer.autorange does it, whose clock counts in seconds.
    number, least_ns = 1, float(sys.argv[2])
    while timer.timeit(number) < least_ns:
        number *= 2
    print(json.dumps([ns / number for ns in timer.repeat(5, number)]))


# [/main]


if __name__ == "__main__":
    main()
