"""Where the script of CPython's developers comes from: the pinned source of this version, unchanged."""

import hashlib
import tarfile

from ffilab.run.paths import NATIVE_OUT, cache
from ffilab.setup.catalogue import FREE_THREADED, SOURCES

NAME = "Tools/ftscalingbench/ftscalingbench.py"


def script() -> dict:
    """Put the script where a worker finds it; its release and SHA-256, or why there is none."""
    release = SOURCES[FREE_THREADED.removesuffix("t")].release
    archive = cache() / "downloads" / f"Python-{release}.tar.xz"
    if not archive.is_file():
        return {"release": "", "reason": f"the source of CPython {release} is not here"}
    with tarfile.open(archive) as tar:
        script_in_it = tar.extractfile(f"Python-{release}/{NAME}")
        if script_in_it is None:
            return {"release": "", "reason": f"the source of CPython {release} has no such script"}
        text = script_in_it.read()
    target = NATIVE_OUT.parent / "seeds" / "ftscalingbench.py"
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(text)
    return {"release": release, "reason": "", "sha256": hashlib.sha256(text).hexdigest()}
