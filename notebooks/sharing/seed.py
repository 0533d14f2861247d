"""Where the script of CPython's developers comes from: the pinned source of this version, unchanged."""

import hashlib
import subprocess

from ffilab.bootstrap import PYTHON
from ffilab.run.paths import NATIVE_OUT, cache
from ffilab.setup.catalogue import FREE_THREADED, SOURCES

NAME = "Tools/ftscalingbench/ftscalingbench.py"
READ = "import sys, tarfile; sys.stdout.buffer.write(tarfile.open(sys.argv[1]).extractfile(sys.argv[2]).read())"


def script() -> dict:
    """Put the script where a worker finds it; its release and SHA-256, or why there is none."""
    release = SOURCES[FREE_THREADED.removesuffix("t")].release
    archive = cache() / "downloads" / f"Python-{release}.tar.xz"
    if not archive.is_file():
        return {"release": "", "reason": f"the source of CPython {release} is not here"}
    # By the book's own Python, which unpacked it for the build: this one may have been compiled without lzma.
    read = subprocess.run([PYTHON, "-c", READ, archive, f"Python-{release}/{NAME}"], capture_output=True)
    if read.returncode:
        why = read.stderr.decode(errors="replace").strip().rpartition("\n")[2]
        return {"release": "", "reason": f"the source of CPython {release} was not read: {why}"}
    target = NATIVE_OUT.parent / "seeds" / "ftscalingbench.py"
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(read.stdout)
    return {"release": release, "reason": "", "sha256": hashlib.sha256(read.stdout).hexdigest()}
