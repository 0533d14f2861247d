"""Fetch an upstream source tarball, pinned by SHA-256, and verify it before use."""

import errno
import hashlib
import http.client
import os
import time
import urllib.request
from pathlib import Path

from ffilab.run import settings
from ffilab.run.errors import UserError
from ffilab.run.locks import hold
from ffilab.run.paths import cache
from ffilab.run.progress import Step, say
from ffilab.run.system import output
from ffilab.setup.catalogue import Source

CONNECT_TIMEOUT_S = 20
# A mirror that sends less than this in such a time has stalled.
STALLED_S, STALLED_BYTES = 60, 1 << 20
# What the disk refuses no other address mends.
OF_THE_DISK = (errno.ENOSPC, errno.EDQUOT, errno.EACCES, errno.EROFS)


def candidate_urls(source: Source) -> list[str]:
    """Addresses to try, in order. FFILAB_SOURCE_MIRROR (a folder URL) replaces them all."""
    mirror = os.environ.get(settings.SOURCE_MIRROR)
    if mirror:
        return [f"{mirror.rstrip('/')}/Python-{source.release}.tar.xz"]
    # Those that apt is configured with here, also where its lists were removed, as in an image of a container.
    # None without apt.
    sites = output("apt-get", "indextargets", "--no-release-info", "--format", "$(SITE)").split()
    return [source.python_org, *dict.fromkeys(f"{site.rstrip('/')}/{source.debian_path}" for site in sites)]


def sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def fetch(source: Source, step: Step) -> Path:
    """Path of the verified tarball in the cache; downloaded if it is not there.

    Raises UserError if no address answers or the bytes are not the pinned ones.
    """
    target = cache() / "downloads" / f"Python-{source.release}.tar.xz"
    target.parent.mkdir(parents=True, exist_ok=True)
    # The GIL build and the t-build of two runs want the same file.
    with open(f"{target}.lock", "w") as file:
        hold(file, lambda: say(f"  Another process is fetching {target.name}; waiting for it."))
        return _fetch(source, target, step)


def _fetch(source: Source, target: Path, step: Step) -> Path:
    if target.is_file():
        if sha256(target) == source.sha256:
            return target
        target.unlink()
    refusals = [f"{settings.NO_DOWNLOADS} forbids downloads"] if settings.no_downloads() else []
    for url in () if settings.no_downloads() else candidate_urls(source):
        partial = target.with_suffix(".part")
        try:
            _download(url, partial, step)
            actual = sha256(partial)
            if actual == source.sha256:
                return partial.rename(target)
            say(f"  {_site(url)} sent other bytes than the pinned ones; they were thrown away.")
            refusals.append(f"{_site(url)}: SHA-256 {actual[:12]}… instead of {source.sha256[:12]}…")
        except (OSError, http.client.HTTPException, ValueError) as error:
            if getattr(error, "errno", None) in OF_THE_DISK:
                raise
            refusals.append(f"{_site(url)}: {getattr(error, 'reason', error)}")
        finally:
            # Also on a disk that is full, and after Ctrl-C.
            partial.unlink(missing_ok=True)
    raise UserError(
        f"The source of CPython {source.release} could not be had ({'; '.join(refusals) or 'no address known'}): "
        f"connect to the internet, put the upstream tarball at {target}, or name an interpreter that you have "
        f'with KERNELS="{source.version}=/path/to/python".'
    )


def _site(url: str) -> str:
    """The host of an address, or the address where it has none."""
    return "".join(url.split("/")[2:3]) or url


def _download(url: str, partial: Path, step: Step) -> None:
    with urllib.request.urlopen(url, timeout=CONNECT_TIMEOUT_S) as response, partial.open("wb") as sink:
        total = int(response.headers.get("Content-Length") or 0)
        since, before = time.monotonic(), 0
        while chunk := response.read1(1 << 18):
            sink.write(chunk)
            if time.monotonic() - since > STALLED_S:
                if sink.tell() - before < STALLED_BYTES:
                    raise TimeoutError(f"it sent {sink.tell() - before} bytes in {STALLED_S} s")
                since, before = time.monotonic(), sink.tell()
            if total:
                step.update(sink.tell() / total, "downloading")
