"""The chapters. What their cells define can be imported: `notebooks.<chapter>.experiment` (ffilab/page/cells.py)."""

import sys

from ffilab.page.cells import Cells

sys.meta_path.append(Cells())
