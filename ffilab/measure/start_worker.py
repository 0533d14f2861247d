"""Start worker.py, which lies beside this file: imported, it is compiled once and not in each process."""

import os
import sys
from importlib.machinery import SourceFileLoader
from types import ModuleType

if __name__ == "__main__":
    folder = os.path.dirname(__file__)
    # What lies beside this file is no module of a reader's. -P and -I see to it, but -P came with Python 3.11.
    sys.path[:] = [path for path in sys.path if path != folder]
    worker = sys.modules["worker"] = ModuleType("worker")
    SourceFileLoader("worker", os.path.join(folder, "worker.py")).exec_module(worker)
    worker.main(*sys.argv[1:])
