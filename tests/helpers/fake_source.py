"""A source of CPython that compiles in a second: the code that fetches, unpacks, builds and installs it is the book's
own."""

import hashlib
import io
import json
import os
import subprocess
import sys
import tarfile
from functools import cache
from pathlib import Path

from ffilab.run.paths import ROOT
from tests.helpers.environment import clean_environment, python_of, ran

CONFIGURE = """#!/bin/sh
for word in "$@"; do case $word in --prefix=*) echo "${word#--prefix=}" >prefix.txt ;; esac; done
"""
# Objects as `relink` keeps them; each takes a moment, and an interrupted make goes on with the next.
MAKEFILE = """.PHONY: all install
all: libpython3.14.a
OBJECTS = Programs/python.o Modules/_ctypes/a.o Modules/_ctypes/b.o core/c.o core/d.o
$(OBJECTS): %.o: one.c
	@mkdir -p $(@D)
	sleep 0.15
	$(CC) -O1 -ffunction-sections -c -o $@ one.c
libpython3.14.a: $(OBJECTS)
	ar rcs $@ $(OBJECTS)
install: libpython3.14.a
	mkdir -p $(DESTDIR)$$(cat prefix.txt)/bin
	cp python $(DESTDIR)$$(cat prefix.txt)/bin/python3.14
"""
# The build of one interpreter as the verbs do it.
DRIVER = """
import dataclasses, sys
from ffilab.setup import build, catalogue
build.NEEDED_BYTES = 0
known = catalogue.SOURCES["3.14"]
catalogue.SOURCES["3.14"] = dataclasses.replace(known, release="9.9.9", sha256=sys.argv[1])
from ffilab import cli
cli.environments.provision = lambda request: print(build.build(catalogue.BY_LABEL["3.14"]))
sys.argv = ["ffilab", "kernels"]
cli.main()
"""


@cache
def real(label: str = "3.14") -> str:
    """Our own interpreter; the fake one is 3.14 in the end."""
    ask = "import sys; print(sys.base_prefix)"
    found = python_of(label)
    home = ran(found, "-I", "-c", ask, check=True).stdout.strip()
    return f"{home}/bin/python{label}"


def tarball(folder: Path, padding: int = 0, functions: int = 1) -> str:
    """Write the tarball into a mirror's folder; its SHA-256. padding: bytes that nothing compresses. functions: in its
    one source; a thousand of them are work for a compiler."""
    files = {
        "configure": CONFIGURE,
        "Makefile": MAKEFILE,
        "one.c": "int one(int x) { return x + 1; }\n"
        + "".join(
            f"int f{n}(int x) {{ for (int i = {n}; i < x; i++) x ^= i * {n}; return x; }}\n"
            for n in range(1, functions)
        ),
        "python": f'#!/bin/sh\nexec {real()} "$@"\n',
        "padding": os.urandom(padding),
    }
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "Python-9.9.9.tar.xz"
    with tarfile.open(path, "w:xz", preset=0) as archive:
        for name, text in files.items():
            content = text if isinstance(text, bytes) else text.encode()
            member = tarfile.TarInfo(f"Python-9.9.9/{name}")
            member.size, member.mode = len(content), 0o755
            archive.addfile(member, io.BytesIO(content))
    return hashlib.sha256(path.read_bytes()).hexdigest()


def environment(cache_home: Path, mirror: Path, **more: str) -> dict[str, str]:
    return clean_environment(
        XDG_CACHE_HOME=str(cache_home),
        FFILAB_SOURCE_MIRROR=mirror.as_uri(),
        FFILAB_BUILD=str(cache_home.parent / "_build"),
        PYTHONPATH=str(ROOT),
        PYTHONDONTWRITEBYTECODE="1",
        **more,
    )


def start(sha256: str, surroundings: dict[str, str]) -> subprocess.Popen:
    command = [sys.executable, "-c", DRIVER, sha256]
    return subprocess.Popen(command, env=surroundings, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def build(sha256: str, surroundings: dict[str, str]) -> subprocess.CompletedProcess:
    return ran(sys.executable, "-c", DRIVER, sha256, env=surroundings, timeout=120)


def works(answer: subprocess.CompletedProcess) -> bool:
    """Did the build end with an interpreter that runs?"""
    assert answer.returncode == 0, answer.stderr
    path = answer.stdout.strip().splitlines()[-1]
    return json.loads(ran(path, "-I", "-c", "import json; print(json.dumps(1))", check=True).stdout) == 1


def sentence(answer: subprocess.CompletedProcess) -> str:
    """The one sentence in which it ended."""
    assert answer.returncode != 0
    assert "Traceback" not in answer.stderr + answer.stdout, answer.stderr
    (found,) = [line for line in answer.stderr.splitlines() if line.startswith("ffilab:")]
    return found
