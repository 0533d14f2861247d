"""The chapters. What their cells define can be imported: `notebooks.<chapter>.experiment` (ffilab/page/cells.py).

In exercise.py, for the tests: SOLVED, by the label of an exercise the pattern of what its check prints once it is solved; and CHANGE,
a change of a cell: what stands there, what takes its place, and what then has to be seen.
"""

import sys

from ffilab.page.cells import Cells

sys.meta_path.append(Cells())
