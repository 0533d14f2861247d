"""The chapters. What their cells define can be imported: `notebooks.<chapter>.experiment` (ffilab/page/cells.py).

In exercise.py, for the tests: SOLVED, by the label of an exercise the pattern of what its check prints once it is
solved; and CHANGE, a change of a cell: what stands there, what takes its place, and what then has to be seen.
"""

import sys

from ffilab.page.cells import Cells

# Before the finder of files, which would take the one that was made of earlier cells.
sys.meta_path.insert(0, Cells())
