"""What the tree must look like: outputs stripped, no hosts of registries, no path of a machine, no lint."""

import json
import re
import subprocess
import sys

import pytest

from ffilab.paths import KERNELS, NOTEBOOKS, ROOT


def tracked():
    listing = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    return [ROOT / name for name in listing.stdout.splitlines() if (ROOT / name).is_file()]


@pytest.mark.parametrize("path", sorted(NOTEBOOKS.glob("*.ipynb")), ids=lambda p: p.stem)
def test_notebook_is_stripped_and_names_a_kernel_of_the_book(path):
    notebook = json.loads(path.read_text())
    code = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert all(not cell["outputs"] and cell["execution_count"] is None for cell in code)
    assert (KERNELS / notebook["metadata"]["kernelspec"]["name"] / "kernel.json").exists()
    assert "papermill" not in notebook["metadata"]
    assert "chapter.begin" in "".join(code[0]["source"])
    assert "chapter.end" in "".join(code[-1]["source"])


def test_kernels_are_relative():
    for path in KERNELS.glob("*/kernel.json"):
        assert json.loads(path.read_text())["argv"][0] == "{resource_dir}/.venv/bin/python"


def test_no_registry_host_and_no_path_of_a_machine():
    hosts = re.compile(r"pypi\.org|pythonhosted|crates\.io|deb\.debian|registry\.npmjs|proxy\.golang", re.I)
    home = re.compile(r"/(home|Users)/\w+/|/ro[o]t/|" + re.escape(str(ROOT) + "/"))
    for path in tracked():
        if path.name == "test_tree.py":
            continue
        text = path.read_text(errors="replace")
        assert not hosts.search(text), path
        assert not home.search(text), path


def test_no_symbolic_links():
    """Not every copy of a tree keeps them: one that does not turns a source into the name of another."""
    listing = subprocess.run(["git", "ls-files", "-s"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert not [line for line in listing.splitlines() if line.startswith("120000")]
    for path in tracked():
        text = path.read_bytes()[:200].decode(errors="replace")
        assert not re.fullmatch(r"\.\.?/[\w./-]+", text), path


def test_locks_are_hashed_and_carry_no_address():
    locks = [*ROOT.glob("requirements/*.txt"), *KERNELS.glob("*/requirements.txt")]
    assert len(locks) >= 9
    for lock in locks:
        text = lock.read_text()
        pins = len(re.findall(r"^[a-z0-9][\w.\-\[\]]*==", text, re.M | re.I))
        assert pins > 0
        assert len(re.findall(r"\\\n\s+--hash=sha256:", text)) >= pins
        assert "://" not in text
        assert "index-url" not in text


def test_ruff():
    for command in (["check"], ["format", "--check"]):
        answer = subprocess.run([sys.executable, "-m", "ruff", *command, "."], cwd=ROOT, capture_output=True, text=True)
        assert answer.returncode == 0, answer.stdout


def test_worker_side_imports_only_the_standard_library():
    extensions = {"arena_poc", "detach_attach", "lock_pieces", "shared_state"}
    native = [*ROOT.glob("native/*.py"), *ROOT.glob("native/*/*.py")]
    allowed = set(sys.stdlib_module_names) | extensions | {path.stem for path in native}
    for path in [*native, *(ROOT / f"ffilab/bench/{name}.py" for name in ("worker", "empty", "single"))]:
        if path.name.startswith(("pyperf_", "nanoarrow_")):
            continue  # a library that is measured, in processes of its own
        names = re.findall(r"^\s*(?:import|from) (\w+)", path.read_text(), re.M)
        assert set(names) <= allowed, path


def test_toc_lists_every_notebook():
    toc = (ROOT / "_toc.yml").read_text()
    for path in NOTEBOOKS.glob("*.ipynb"):
        assert f"notebooks/{path.stem}" in toc
