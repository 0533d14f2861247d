"""What the tests with sanitizers run of the chapter on arrays: all that those of its projects offer which were built
into a folder.

`source_of` takes it to the worker, with what the chapter's cells define.
"""

from native.threads import together
from notebooks.arrays.experiment import CHECKED, TOOLS, WAYS_OUT, fates, load, ownership


def everything(folder):
    """In one thread, and in several."""
    here = {}
    for tool, module in TOOLS.items():
        try:
            here[tool] = load(folder, module)
        except ModuleNotFoundError:
            pass  # another project
    import numpy

    shared = numpy.ones(128)
    for tool, module in CHECKED.items():
        if tool.removesuffix(" noconvert") in here:
            fates(folder, tool, module)
    for way, (tool, make, _) in WAYS_OUT.items():
        if tool in here:
            together([lambda tool=tool: [here[tool].ends(shared) for _ in range(200)]] * 3)
            ownership(folder, way, TOOLS[tool], make)
    return sorted(here)
