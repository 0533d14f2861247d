"""A project with a library of one function, as chapters have them under native/."""

from pathlib import Path

MAKEFILE = """all: $(OUT)/libtiny.so
$(OUT)/libtiny.so: tiny.c
	@mkdir -p $(OUT)
	$(CC) -O2 -g -fPIC -shared -o $@.tmp $<
	mv $@.tmp $@
"""


def library(chapter: Path, source: str = "int tiny(int x) { return x + 1; }\n") -> Path:
    """Write the project into a chapter's folder."""
    project = chapter / "library"
    project.mkdir(parents=True)
    (project / "Makefile").write_text(MAKEFILE)
    (project / "tiny.c").write_text(source)
    return project
