"""The chapters. What their cells define can be imported: `notebooks.<chapter>.experiment` (ffilab/page/cells.py).

What a chapter brings beside them, module by module: ffilab/judge/chapter.py.
"""

import sys

from ffilab.page.cells import Cells

# Before the finder of files, which would take the one that was made of earlier cells.
sys.meta_path.insert(0, Cells())
