"""A rival that makes no strings until somebody reads one: an Arrow array, by nanoarrow, in a worker of its own."""

import itertools
import os
import struct
import sys
import time
import timeit

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import corpus
import nanoarrow


# [array]
def array(read):
    """Wrap the text as an Arrow array of strings, and drop it; with `read`, make a list of all strings as well."""
    data, each = corpus.ascii_text()
    offsets = list(itertools.accumulate(each, initial=0))
    names = {
        "make": nanoarrow.c_array_from_buffers,
        "schema": nanoarrow.string(),
        "count": len(each),
        "buffers": [None, struct.pack(f"{len(offsets)}i", *offsets), data],
        "Array": nanoarrow.Array,
    }
    statement = (
        "lines = Array(make(schema, count, buffers))" + ("\nlist(lines.iter_py())" if read else "") + "\ndel lines"
    )
    return timeit.Timer(statement, timer=time.perf_counter_ns, globals=names)


# [/array]
