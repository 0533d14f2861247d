"""Run many arms one after the other, with a mark around each batch: what callgrind counts. Standard library only.

`python marked.py ARMS` with ARMS a JSON list of [file, function, arguments, warm-up loops, few loops, many loops].
After all warm-ups, each arm leaves two marks: after few loops and after many. An arm that cannot be made leaves
none. Prints the positions of those that were made.
"""

import json
import os
import sys

import worker


def mark():
    """A C function that is called nowhere else, and that callgrind can be told to look for."""
    os.getsid(0)


def main():
    made = {}
    orders = json.loads(sys.argv[1])
    for number, (file, function, arguments, warm_up, _, _) in enumerate(orders):
        try:
            made[number] = getattr(worker.load(file), function)(**arguments)
        except Exception:
            continue
        made[number].timeit(warm_up)
    mark()
    for number, arm in made.items():
        few, many = orders[number][4:]
        arm.timeit(few)
        mark()
        arm.timeit(many)
        mark()
    print(json.dumps(list(made)))


if __name__ == "__main__":
    main()
