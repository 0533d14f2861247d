"""`tarfile` with its filters, which keep an archive inside of its folder: before Python 3.11.4 they come from a
backport."""

import tarfile

if not hasattr(tarfile, "data_filter"):
    import backports.tarfile as tarfile  # pyright: ignore[reportMissingImports]: there is none to find here

__all__ = ["tarfile"]
