"""The environment variables of this project, all of them."""

import json
import os

from ffilab import bootstrap

# What a reader sets; the README explains them.
KERNELS = "KERNELS"
BUDGET = "BUDGET"
FROM = "FROM"
# As gettext has it: languages for the sentences that a run chooses, the first choice first, `zh_TW:en`.
LANGUAGE = "LANGUAGE"
# Another folder than `_build`, for tests.
BUILD = "FFILAB_BUILD"
# Marks the processes of a verb that works in `_build`, whose path it holds: the next one ends what a killed one left.
RUN = bootstrap.RUN
# A JSON object: what a verb tells the processes that it starts; see `told`.
TOLD = "FFILAB_TOLD"
# Nothing but packages is downloaded: no interpreter, no source of one, no linker.
NO_DOWNLOADS = "FFILAB_NO_DOWNLOADS"
# Addresses to be used instead of a download, for tests.
SOURCE_MIRROR = "FFILAB_SOURCE_MIRROR"
# Where link_recorder.py, which runs alone, keeps what it records.
LINKS = "FFILAB_LINKS"


def of_python() -> list[str]:
    """Names of the variables of Python that a reader has set, and not bootstrap.py for this clone."""
    names = sorted(name for name in os.environ if name.startswith("PYTHON"))
    return [name for name in names if (name, os.environ[name]) != ("PYTHONPATH", str(bootstrap.ROOT))]


def everything_told() -> dict:
    """What the verb that started this process told it; empty in a shell."""
    return json.loads(os.environ.get(TOLD) or "{}")


def told(name: str, default=None):
    """Return one setting of the verb: `source`, `earlier`, `layouts`, `linker`, `interpreters`, `progress`, `alone`,
    `lab`."""
    return everything_told().get(name, default)


def in_lab() -> bool:
    """Does a reader run the cells of this notebook, and no verb of the book?"""
    return bool(told("lab", not everything_told()))


def no_downloads() -> bool:
    """Did the reader forbid downloads of interpreters and of the linker?"""
    return bool(os.environ.get(NO_DOWNLOADS))


def languages() -> list[str]:
    """The languages that the reader prefers, the first choice first; empty for English."""
    chosen = [language for language in os.environ.get(LANGUAGE, "").split(":") if language]
    return chosen[: next((place for place, language in enumerate(chosen) if language.startswith("en")), len(chosen))]


def language() -> str:
    """The language that the reader prefers; empty for English."""
    return next(iter(languages()), "")


def telling(**settings) -> dict[str, str]:
    """The environment variable that tells a child these settings besides those that we were told; None takes one
    away."""
    merged = {**everything_told(), **settings}
    return {TOLD: json.dumps({name: value for name, value in merged.items() if value is not None})}


def tell(**settings) -> None:
    """Tell them to every process that is started from here on."""
    os.environ.update(telling(**settings))
