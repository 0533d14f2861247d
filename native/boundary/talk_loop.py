"""A10 as the talk ran it: a loop at the level of the module, for a profiler.

Standard library only. As a script: FOLDER BINDING SECONDS.
"""

import os
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import arms


# [methods]
class Implementation:
    """The talk's public code calls each binding in a method in Python, and cffi's in two."""

    def __init__(self, call):
        self._call = call

    def return_int(self):
        return self._call()


def implementation(folder, binding):
    made = Implementation(arms.load(folder, binding).answer)
    return Implementation(made.return_int) if binding.startswith("cffi") else made


def return_int(folder, binding):
    return implementation(folder, binding).return_int


# [/methods]

if __name__ == "__main__":
    # [loop]
    impl = implementation(sys.argv[1], sys.argv[2])
    count = 0
    end = time.time() + float(sys.argv[3])
    while time.time() < end:
        impl.return_int()
        count += 1
    # [/loop]
