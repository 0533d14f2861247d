"""What is built under native/, and what a build leaves alone."""

import re
import shutil
from pathlib import Path

import pytest

from ffilab import native
from ffilab.judge.claims import corners
from ffilab.paths import BY_PRODUCTS, NATIVE, NOTEBOOKS
from ffilab.press.chapters import with_uses

MAKEFILE = """OUT ?= .
all: $(OUT)/libtiny.so
$(OUT)/libtiny.so: tiny.c
\tmkdir -p $(OUT)
\t$(CC) -fPIC -shared -o $@ tiny.c
"""


def sources(folder: Path) -> dict[Path, bytes]:
    files = [path for path in folder.rglob("*") if path.is_file()]
    return {path: path.read_bytes() for path in files if not BY_PRODUCTS & set(path.relative_to(folder).parts)}


def test_a_build_leaves_the_sources_alone(tmp_path):
    """A page is stale if its native sources changed, so that a build must not write among them."""
    root = tmp_path / "native"
    for corner in ("placement", "loaders", "convoy"):
        ignore = shutil.ignore_patterns("machine", "__pycache__", *BY_PRODUCTS)
        shutil.copytree(NATIVE / corner, root / corner, ignore=ignore)
    before = sources(root)
    native.build_all([], root, tmp_path / "out")
    assert (tmp_path / "out" / "loaders" / "libloaders.so").exists()
    assert sources(root) == before


def test_only_the_corners_that_are_asked_for(tmp_path):
    for corner in ("wanted", "other"):
        (tmp_path / corner / "library").mkdir(parents=True)
        (tmp_path / corner / "library" / "Makefile").write_text(MAKEFILE)
        (tmp_path / corner / "library" / "tiny.c").write_text("int one(void) { return 1; }\n")
    native.build_all([], tmp_path, tmp_path / "out", corners=["wanted"])
    assert (tmp_path / "out" / "wanted" / "libtiny.so").exists()
    assert not (tmp_path / "out" / "other").exists()


@pytest.mark.parametrize("corner", corners())
def test_a_chapter_declares_whose_projects_it_loads(corner):
    """`make chapter` builds its own corner and those in `uses`: every other one is missing in a fresh clone."""
    texts = [path.read_text() for path in (NOTEBOOKS / corner).glob("*.py") if path.stem not in ("contest", "levels")]
    loaded = set(re.findall(r"(?:\{BUILT\}/|NATIVE_OUT / \")(\w+)", "".join(texts)))
    assert loaded <= set(with_uses(corner))
