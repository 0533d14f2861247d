"""Run one arm a given number of loops and end: what callgrind and perf look at. Standard library only.

`python single.py FILE FUNCTION ARGUMENTS_AS_JSON WARM_UP LOOPS`
"""

import importlib.util
import json
import sys


def main():
    file, function, arguments, warm_up, loops = sys.argv[1:]
    spec = importlib.util.spec_from_file_location("arm", file)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    arm = getattr(module, function)(**json.loads(arguments))
    arm.timeit(int(warm_up))
    arm.timeit(int(loops))


if __name__ == "__main__":
    main()
