import pytest

from ffilab.setup.catalogue import ALL, BY_LABEL, CHAPTER_PAIR, parse
from ffilab.setup.installed import folder


@pytest.mark.parametrize(
    ("given", "named", "required", "optional"),
    [
        ("", {}, CHAPTER_PAIR, set(ALL) - set(CHAPTER_PAIR)),
        ("all", {}, ALL, set()),
        ("3.14='/opt/a é/python', cpython-3.14t 3.14t", {BY_LABEL["3.14"]: "/opt/a é/python"}, CHAPTER_PAIR, set()),
    ],
)
def test_what_is_asked_for(given, named, required, optional):
    request = parse(given)
    assert (request.named, request.required, set(request.optional)) == (named, required, optional)


def test_every_interpreter_has_a_kernel_folder_and_a_lock():
    for interpreter in ALL:
        assert (folder(interpreter) / "kernel.json").exists()
        assert "--hash=sha256:" in (folder(interpreter) / "requirements.txt").read_text()
