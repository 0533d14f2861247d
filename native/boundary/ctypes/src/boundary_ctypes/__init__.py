"""The boundary library through ctypes, by either loader.

`cdll` detaches the thread state around each call, `pydll` does not.
"""

import ctypes

from boundary_ctypes.binding import bind

cdll = bind(ctypes.CDLL)
pydll = bind(ctypes.PyDLL)
