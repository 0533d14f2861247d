"""The exercise of the chapter "GIL Balm": its self-check, by a string that is forged for it."""

from ffilab.bench.session import Session
from notebooks.balm import experiment


# [check]
def check_forgery(session: Session, data: bytes, length: int, unknown_hash: int) -> list[str]:
    """Does the forged `12` do all that a `12` must do? Returns what to say, one line each."""
    found = experiment.forgery(session, data, length, unknown_hash)
    if found["answers"] is None:
        return [f"The process did not survive your string: {found['ended']}. {found['error'].strip()}"]
    lines = [f"{what}: {'right' if right else 'wrong'}" for what, right in found["answers"].items()]
    return [*lines, "It passes." if all(found["answers"].values()) else "It does not pass yet."]


# [/check]
