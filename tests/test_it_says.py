"""The page of symptoms: each has a command and a place of this book; what it quotes, Python says."""

import re

import pytest

from ffilab.run.paths import ROOT
from studies.scale import undeclared
from tests.helpers.environment import ran

PAGE = (ROOT / "book" / "it_says.md").read_text()
SYMPTOMS = dict(re.findall(r"^\(says-[\w-]+\)=\n## (.*?)\n(.*?)(?=^\(says-|\Z)", PAGE, re.M | re.S))


@pytest.mark.parametrize("symptom", SYMPTOMS)
def test_a_symptom_has_an_answer_a_command_and_a_place(symptom):
    text = SYMPTOMS[symptom]
    assert "**" in text
    assert "```console\n$ " in text
    assert re.search(r"\{(doc|ref)\}`", text)


def test_it_is_reached_from_the_front_page_the_guide_and_the_checklist():
    for page in ("preface.md", "decision_guide.md", "free_threading.md"):
        assert "{doc}`it_says`" in (ROOT / "book" / page).read_text()


def test_the_warning_is_quoted_as_python_says_it(tmp_path):
    """A module that declares nothing, imported without the GIL; as an error it names the module, too."""
    python = undeclared(tmp_path, "mine")
    quoted = re.search(r"^RuntimeWarning: .*$", PAGE, re.M)[0]
    for flags in ([], ["-W", "error::RuntimeWarning"]):
        run = ran(python, *flags, "-c", "import mine", cwd=tmp_path)
        assert quoted in run.stderr
        assert bool(run.returncode) == bool(flags)
