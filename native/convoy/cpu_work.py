"""CPU work that counts itself in a shared file: the same in a thread, a process or another interpreter."""

import mmap

CHUNK = 1000


# [compute]
def compute(path, place):
    """The author's CPU work, in chunks. Number 0 of the file says stop; each worker counts its chunks in its own place."""
    with open(path, "r+b") as file, mmap.mmap(file.fileno(), 0) as memory, memoryview(memory).cast("Q") as shared:
        n = 0
        while not shared[0]:
            for _ in range(CHUNK):
                n += 1
                n -= 1
            shared[place] += 1


# [/compute]
