"""One arm, as `python -m timeit` measures it: `python timeit_arm.py ARM` prints five times of a loop (ns) as JSON.

ARM holds the file, function and arguments of an arm as JSON. Standard library only.
"""

import importlib.util
import json
import sys


# [main]
def main():
    arm = json.loads(sys.argv[1])
    spec = importlib.util.spec_from_file_location("arm", arm["file"])
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    timer = getattr(module, arm["function"])(**arm["arguments"])
    # As Timer.autorange does it, whose clock counts in seconds.
    number, least_ns = 1, float(sys.argv[2])
    while timer.timeit(number) < least_ns:
        number *= 2
    print(json.dumps([ns / number for ns in timer.repeat(5, number)]))


# [/main]


if __name__ == "__main__":
    main()
