"""Pages made from golden records, as measured, changed, or of poor machines: each is executed once, and shared by all
tests of a run.

The worker processes of pytest-xdist share a folder; a lock for each page lets one of them execute it and the others
wait.
"""

import fcntl
import os
from contextlib import contextmanager
from pathlib import Path

from ffilab.judge.claims import chapter_names
from ffilab.page.contents import Chapter
from ffilab.page.execute import execute
from tests.helpers.changed_records import EFFECTLESS, INVERTED, changed

GOLDEN = Path(__file__).parents[1] / "golden"
MEASURED = "measured"
VARIANTS = (MEASURED, INVERTED, EFFECTLESS)
# Of machines that lack something: golden/make.py says what.
POOR, SMALL_PAGES = "poor", "small-pages"
FOLDERS = {MEASURED: GOLDEN, **{name: GOLDEN.with_name(f"golden-{name}") for name in (POOR, SMALL_PAGES)}}


def chapters_of(variant: str) -> list[str]:
    """The chapters of which a variant has records."""
    return [name for name in chapter_names() if (FOLDERS.get(variant, GOLDEN) / name).exists()]


# All (chapter, variant) of which there is a page.
PAGES = [(name, variant) for variant in (*VARIANTS, POOR, SMALL_PAGES) for name in chapters_of(variant)]


def folder() -> Path:
    """Where this run of the tests keeps its pages; conftest.py names it."""
    return Path(os.environ["FFILAB_BUILD"]).parent / "golden"


@contextmanager
def locked(name: str):
    """Hold the lock of this name in the shared folder."""
    folder().mkdir(exist_ok=True)
    with (folder() / f"{name}.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def records(variant: str) -> Path:
    """The folder of records of a variant."""
    if variant in FOLDERS:
        return FOLDERS[variant]
    target = folder() / "records" / variant
    with locked(f"records-{variant}"):
        if not target.exists():
            made = target.with_name(f"{variant}-unfinished")
            changed(GOLDEN, made, variant)
            made.rename(target)
    return target


def page(name: str, variant: str = MEASURED, language: str = "") -> Chapter:
    """The executed chapter, made from the records of a variant."""
    chapter = Chapter(name, executed_folder=folder() / f"{variant}{language}")
    source = records(variant)
    with locked(f"{variant}{language}-{name}"):
        if not chapter.is_executed:
            execute(chapter, "quick", source, language=language)
    return chapter
