"""The C and C++ compiler of the native projects: the real one, which notes how a shared object was linked.

Native projects are built by many tools; what they share is the compiler that each of them calls, so this stands in its
place (`native_links.py` puts it there, and reads the records). Two things differ from the real compiler:

- Code for shared objects is compiled with `-ffunction-sections`, so that a linker can order its functions. It is a flag
of
  the house's own, the same for all projects; nanobind and Rust set it anyway.
- After a shared object was linked, copies of its inputs and of itself lie in `$FFILAB_LINKS/<name>/`, and `link.json`
there
  has the compiler and the arguments with the new places of the inputs. What gcc's link-time optimisation read is
  replaced by the objects that it made: of these a linker can order the functions.

Nothing is noted of programs, of what is built for a sanitizer, and of Rust's macros. What cannot be noted is no error:
the tool has its object all the same.

It runs as a script, with the standard library alone: `python link_recorder.py COMPILER... -- ARGUMENT...`
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

# Environment: the folder for the records of this project.
LINKS = "FFILAB_LINKS"
DESCRIPTION, BUILT = "link.json", "built"
SOURCES = {".c", ".cc", ".cpp", ".cxx"}
# Options whose value is the next argument and is no input; those that name what is written are left out.
TWO_WORDS = {"-Xlinker", "-I", "-isystem", "-D", "-u", "-z", "-l", "-include", "-T", "-e"}
WRITTEN = {"-o", "-MF", "-MT", "-MQ"}
# Options that name a file which the linker reads.
READ = re.compile(r"(?:--version-script|--dynamic-list|--retain-symbols-file)[=,]([^,]+)")
# By-products, and which linker (rustc brings one): the next link has its own.
LEFT_OUT = re.compile(r"-Wl,(--dependency-file|-Map|--Map)[=,]|-M?MD$|-fuse-ld=|-B.*gcc-ld$")
# What gcc's link-time optimisation reads has such sections instead of code.
INTERMEDIATE = b".gnu.lto_"
# rustc's macros: only the compiler loads them.
MACRO = re.compile(r"-[0-9a-f]{16}\.so$")


def main() -> int:
    divider = sys.argv.index("--")
    compiler, arguments = sys.argv[1:divider], sys.argv[divider + 1 :]
    plain = not any(one.startswith("-fsanitize") for one in arguments)
    if plain and {"-fPIC", "-fpic"} & set(arguments):
        arguments = ["-ffunction-sections", *arguments]
    code = subprocess.call([*compiler, *arguments])
    folder = os.environ.get(LINKS)
    if code == 0 and plain and folder and "-shared" in arguments and "-o" in arguments:
        try:
            record(compiler, arguments, Path(folder))
        except (OSError, subprocess.CalledProcessError) as error:
            print(f"link_recorder: this link is not noted ({error})", file=sys.stderr)
    return code


def name_of(library: str) -> str:
    """What records call a shared object: `libspin.so.tmp` is spin, `boundary_pyo3.cpython-314.so` is boundary_pyo3."""
    return Path(library).name.partition(".")[0].removeprefix("lib")


def record(compiler: list[str], arguments: list[str], links: Path) -> None:
    """Keep the inputs of a link, and how to repeat it, in `links/<name>`; an older record of that name is replaced.

    Raises OSError or CalledProcessError if an input cannot be kept.
    """
    output = arguments[arguments.index("-o") + 1]
    if MACRO.search(output):
        return
    target = links / name_of(output)
    shutil.rmtree(target, ignore_errors=True)
    links.mkdir(parents=True, exist_ok=True)
    scratch = Path(tempfile.mkdtemp(dir=links))
    try:
        with tempfile.TemporaryDirectory() as made:
            if any(one.startswith("-flto") for one in arguments):
                arguments = after_optimisation(compiler, arguments, Path(made))
            repeated = Kept(compiler, arguments, scratch).repeated
        shutil.copyfile(output, scratch / BUILT)
        (scratch / DESCRIPTION).write_text(json.dumps({"compiler": compiler, "arguments": repeated}))
        scratch.rename(target)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def after_optimisation(compiler: list[str], arguments: list[str], folder: Path) -> list[str]:
    """The arguments of a link with the objects that gcc's link-time optimisation makes, in `folder`, instead of what it
    reads."""
    read = {one for one in arguments if Path(one).is_file() and INTERMEDIATE in Path(one).read_bytes()}
    if not read:
        return arguments
    again = list(arguments)
    again[again.index("-o") + 1] = str(folder / "again.so")
    subprocess.run([*compiler, "-save-temps", *again], check=True)
    made = [str(path) for path in sorted(folder.glob("*.ltrans.o"))]
    return [*(one for one in arguments if one not in read and not one.startswith("-flto")), *made]


class Kept:
    """The inputs of a link in a folder, and the arguments that name them there."""

    def __init__(self, compiler: list[str], arguments: list[str], folder: Path):
        self.compiler, self.arguments, self.folder = compiler, arguments, folder
        self.repeated: list[str] = []
        # rustc names folders after the libraries in them.
        pairs = zip(arguments, [*arguments[1:], ""], strict=True)
        self.searched = [Path(one[2:] or after).absolute() for one, after in pairs if one.startswith("-L")]
        words = iter(arguments)
        for word in words:
            if word in WRITTEN:
                next(words)
            elif word.startswith("-L"):
                self.repeated.append(f"-L{Path(word[2:] or next(words)).absolute()}")
            elif word in TWO_WORDS:
                self.repeated += [word, next(words)]
            elif not LEFT_OUT.match(word):
                self.repeated.append(self._kept(word))

    def _kept(self, word: str) -> str:
        if word.startswith("@"):
            raise OSError("its arguments are in a file")
        if found := READ.search(word):
            return word[: found.start(1)] + self._copy(Path(found.group(1))) + word[found.end(1) :]
        if word.startswith("-l"):
            return self._library(word)
        if word.startswith("-") or not Path(word).is_file():
            return word
        return self._compile(Path(word)) if Path(word).suffix in SOURCES else self._copy(Path(word))

    def _library(self, word: str) -> str:
        """An archive that the build made is kept. A shared library of that name, which a linker prefers, stays where it
        is."""
        files = [folder / f"lib{word[2:]}{suffix}" for folder in self.searched for suffix in (".so", ".a")]
        found = next((file for file in files if file.exists()), None)
        return self._copy(found) if found and found.suffix == ".a" else word

    def _name(self, file: Path) -> str:
        return f"{len(list(self.folder.iterdir()))}-{file.name}"

    def _copy(self, file: Path) -> str:
        name = self._name(file)
        shutil.copyfile(file, self.folder / name)
        return name

    def _compile(self, source: Path) -> str:
        """An object of a source that stands in the link's own command."""
        name = self._name(source.with_suffix(".o"))
        others = [one for one in self.arguments if Path(one).suffix not in SOURCES and one != "-shared"]
        others[others.index("-o") + 1] = str(self.folder / name)
        subprocess.run([*self.compiler, *others, "-c", source], check=True)
        return name


if __name__ == "__main__":
    sys.exit(main())
