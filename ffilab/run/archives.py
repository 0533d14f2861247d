"""`tarfile` with its filters, which keep an archive inside of its folder: before Python 3.11.4 they come from a
backport. And what reading an archive raises where somebody damaged it, or made it to do harm."""

import gzip
import tarfile
import zlib

if not hasattr(tarfile, "data_filter"):
    import backports.tarfile as tarfile  # pyright: ignore[reportMissingImports]: there is none to find here

__all__ = ["DAMAGED", "tarfile"]

# `tarfile` reads a header that stands upon another one within itself.
DAMAGED = (EOFError, ValueError, OverflowError, RecursionError, zlib.error, tarfile.TarError, gzip.BadGzipFile)
