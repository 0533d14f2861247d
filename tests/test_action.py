"""The action that compares a change with its base: its steps, run as a code host runs them."""

import re
import subprocess

import pytest
import yaml

from ffilab.run.paths import ROOT
from ffilab.setup.catalogue import GIL
from tests.helpers.environment import clean_environment, python_of, ran

ACTION = ROOT / ".github" / "actions" / "compare" / "action.yml"
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
PROJECT = """
[build-system]
requires = ["setuptools"]
build-backend = "setuptools.build_meta"
[project]
name = "toy"
version = "0"
[tool.setuptools]
py-modules = ["toy"]
"""


@pytest.fixture
def repository(tmp_path):
    """A package whose second commit makes its function take five times as long."""
    folder = tmp_path / "toy"
    folder.mkdir()
    (folder / "pyproject.toml").write_text(PROJECT)
    (folder / "bench.py").write_text("import toy\ndef bench_f(): toy.f()\n")
    name = ["-c", "user.name=a", "-c", "user.email=a@b"]
    for count in (1_000, 5_000):
        (folder / "toy.py").write_text(f"def f(): return sum(range({count}))\n")
        for words in (["init", "-q"], ["add", "."], [*name, "commit", "-qm", str(count)]):
            subprocess.run(["git", *words], cwd=folder, check=True)
    return folder


@pytest.mark.full
def test_a_slower_change_fails_with_a_table(repository, tmp_path):
    action = yaml.safe_load(ACTION.read_text())
    given = {"base": "HEAD~1", "benchmarks": "bench.py", "time": "5s", "python": str(python_of(GIL))}
    known = {f"inputs.{name}": given.get(name, told.get("default")) for name, told in action["inputs"].items()}
    known["github.action_path"] = str(ACTION.parent)
    (tmp_path / "runner").mkdir()
    summary = tmp_path / "summary.md"
    for step in action["runs"]["steps"]:
        filled = {
            name: re.sub(r"\$\{\{ (.*?) \}\}", lambda found: known[found[1]], text)
            for name, text in step["env"].items()
        }
        environment = clean_environment(
            RUNNER_TEMP=str(tmp_path / "runner"), GITHUB_STEP_SUMMARY=str(summary), **filled
        )
        run = ran("bash", "-eo", "pipefail", "-c", step["run"], cwd=repository, env=environment)
        said = run.stdout + run.stderr
        assert run.returncode == (1 if step["name"] == "Compare" else 0), said
    assert "Failed: change takes more than 2 % longer than base." in said
    assert re.search(r"^\| `change` \| .* \| \d", summary.read_text(), re.M), summary.read_text()


@pytest.mark.full
def test_the_steps_of_the_workflow_pack_a_run_and_make_the_atlas(tmp_path):
    """In a clean clone, on small stored records in place of a run: other tests set up, test and measure."""
    jobs = yaml.safe_load((ROOT / ".github" / "workflows" / "machines.yml").read_text())["jobs"]
    clone = tmp_path / "clone"
    subprocess.run(["git", "clone", "-q", ROOT, clone], check=True)
    (clone / ".venv").symlink_to(ROOT / ".venv")
    golden = {"FROM": str(ROOT / "tests" / "golden"), "CALLED": "a code host's runner"}
    for job, given in (("measure", golden), ("atlas", {})):
        for step in jobs[job]["steps"]:
            command = step.get("run", "")
            if command and not re.match("sudo|make (test|book)$", command):
                run = ran("bash", "-ec", command, cwd=clone, env=clean_environment(**given))
                assert run.returncode == 0, run.stdout + run.stderr
        if job == "measure":
            # As the runners hand it over.
            (clone / "_build" / "packs").rename(clone / "packs")
    assert "a code host" in (clone / "site" / "atlas" / "book" / "atlas.html").read_text()


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_a_workflow_pins_what_it_uses_and_asks_for_few_rights(path):
    """A tag may be moved, a hash may not; and only what publishes may write, and there nothing but pages."""
    text, verbs = path.read_text(), re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.M)
    used = re.findall(r"uses: (.*)", text)
    assert used
    assert all(re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", one) for one in used)
    workflow = yaml.safe_load(text)
    assert workflow["permissions"] == {"contents": "read"}
    rights = [job["permissions"] for job in workflow["jobs"].values() if "permissions" in job]
    assert rights in ([], [{"pages": "write", "id-token": "write"}])
    steps = [step["run"] for job in workflow["jobs"].values() for step in job["steps"] if "run" in step]
    for step in steps:
        # What others wrote reaches a shell as a variable only.
        assert "${{" not in step
        assert set(re.findall(r"(?:^|&& )make (\w[\w-]*)", step)) <= set(verbs)
