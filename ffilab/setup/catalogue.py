"""Which interpreters the book knows, and where their sources come from."""

import re
import shlex
from dataclasses import dataclass

from ffilab.run.errors import UserError


@dataclass(frozen=True)
class Source:
    """One upstream release: `3.15.0rc2`.

    documented_tax: what its documentation says that one thread loses in the free-threaded build.
    """

    release: str
    sha256: str
    documented_tax: str = "none of its own"

    @property
    def version(self) -> str:
        return self.release.rpartition(".")[0]

    @property
    def python_org(self) -> str:
        directory = re.split("rc|b", self.release)[0]
        return f"https://www.python.org/ftp/python/{directory}/Python-{self.release}.tar.xz"

    @property
    def debian_path(self) -> str:
        """Where Debian's sites hold the same bytes."""
        name, release = f"python{self.version}", re.sub("(?=rc|b)", "~", self.release)
        return f"pool/main/p/{name}/{name}_{release}.orig.tar.xz"


SOURCES = {
    "3.13": Source("3.13.5", "93e583f243454e6e9e4588ca2c2662206ad961659863277afcdb96801647d640", "about 40 %"),
    "3.14": Source("3.14.7", "3b48dac8fb59f62eaa67ac83c1eb12bda1b7a08406dd286e252c11a66be27f81", "5 to 10 %"),
    "3.15": Source("3.15.0rc2", "8d93af5eaaaea5adfd41bd786a7ba3f03f2ad1ab57c6a65e0b963deab91d5ad7"),
}


@dataclass(frozen=True, order=True)
class Interpreter:
    """An interpreter of the book, such as 3.14t (`free_threaded`)."""

    version: str
    free_threaded: bool

    @property
    def label(self) -> str:
        return self.version + ("t" if self.free_threaded else "")

    @property
    def name(self) -> str:
        """Name of its Jupyter kernel, and of its folder in `kernels/kernels/`."""
        return f"cpython-{self.label}"

    @property
    def source(self) -> Source:
        return SOURCES[self.version]


ALL = tuple(Interpreter(v, t) for v in SOURCES for t in (False, True))
BY_LABEL = {i.label: i for i in ALL}
# The pair that chapters run on, the only two that a chapter may name. (Each notebook's kernelspec names one of them,
# too.)
GIL, FREE_THREADED = "3.14", "3.14t"
CHAPTER_PAIR = (BY_LABEL[GIL], BY_LABEL[FREE_THREADED])


# How the chapter pair is to be had. Compiled here, so that layouts can be drawn; as somebody else compiled it; or
# whatever takes least time.
COMPILED, PREBUILT, SOONEST = "compiled", "prebuilt", "soonest"


@dataclass(frozen=True)
class Request:
    """What the reader asked for with KERNELS.

    named: interpreter to path of an executable, for those that the reader supplies.
    required: these must be there, by compiling if need be.
    optional: taken along only if nothing has to be compiled for them.
    pair: how the chapter pair is to be had, COMPILED, PREBUILT or SOONEST.
    """

    named: dict[Interpreter, str]
    required: tuple[Interpreter, ...]
    optional: tuple[Interpreter, ...]
    pair: str = COMPILED


def _short(word: str) -> str:
    """A word of the reader's in quotes, without its end if it is long."""
    return repr(word if len(word) <= 60 else f"{word[:57]}...")


def parse(kernels: str | None, budget: str = "") -> Request:
    """Read KERNELS: empty (default), `prebuilt`, `pair`, `all`, or labels such as "3.14 3.14t=/usr/bin/python3.14t".
    A path with a space or a comma stands in quotes.

    A workshop begins soon: at its budget, prebuilt interpreters serve where none was compiled yet.

    Raises UserError for an unknown label.
    """
    separated = shlex.shlex(kernels or "", posix=True, punctuation_chars="")
    separated.whitespace, separated.whitespace_split, separated.commenters = " \t\n\r,", True, ""
    try:
        words = list(separated)
    except ValueError as error:
        raise UserError(f"KERNELS is {_short(kernels)}, which cannot be read ({error}): close its quotes.") from None
    others = tuple(i for i in ALL if i not in CHAPTER_PAIR)
    pair = SOONEST if budget == "room" else COMPILED
    if not words:
        return Request({}, CHAPTER_PAIR, others, pair)
    if words == [PREBUILT]:
        return Request({}, CHAPTER_PAIR, others, PREBUILT)
    if words == ["pair"]:
        return Request({}, CHAPTER_PAIR, (), pair)
    if words == ["all"]:
        return Request({}, ALL, (), pair)
    named, required = {}, []
    for word in words:
        label, given, path = word.partition("=")
        label = label.removeprefix("cpython-")
        if label not in BY_LABEL:
            raise UserError(
                f"KERNELS names {_short(label)}, which this book does not know: choose from "
                f"{' '.join(BY_LABEL)}, or say KERNELS=all."
            )
        interpreter = BY_LABEL[label]
        if interpreter not in required:
            required.append(interpreter)
        if given and not path:
            raise UserError(
                f"KERNELS says {_short(word)} without a path: say {label}=/path/to/python, or {label} alone."
            )
        if path and named.setdefault(interpreter, path) != path:
            raise UserError(f"KERNELS names two interpreters for {label}, {named[interpreter]} and {path}: choose one.")
    return Request(named, tuple(required), (), pair)
