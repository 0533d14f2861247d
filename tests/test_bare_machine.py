"""A stranger's machine: the README's commands in a minimal Debian, as an ordinary user (tests/bare-machine)."""

import json
import os
import re
import shutil
import subprocess

import pytest

from ffilab import doctor
from ffilab.run.paths import ROOT

README, MANUAL = ((ROOT / path).read_text(encoding="utf-8") for path in ("README.md", "book/measure_yours.md"))
# What was built, and what pages say of the records of poor machines.
PART = [*(f"tests/test_{name}.py" for name in ("native", "poor", "snapshots")), "-k", "native or poor or small"]
# The one about layouts, and the one with most in Rust.
CHAPTERS = ("placement", "arenas")
HOUR_S = 3600


def ways_to_install(text: str) -> list[str]:
    """The commands that install `ffilab`, one a line in the block that begins with uv's."""
    return re.search(r"^```sh\n(uv tool install .*?)^```", text, re.M | re.S)[1].splitlines()


def test_readme_and_manual_install_in_the_same_ways():
    assert ways_to_install(README) == ways_to_install(MANUAL)


def lacking() -> str:
    """Why no machine can be made in a folder here; empty if one can."""
    if os.geteuid():
        return "only root can make a machine in a folder"
    if absent := [tool for tool in ("debootstrap", "unshare", "apt-get") if not shutil.which(tool)]:
        return f"there is no {absent[0]}, which makes a machine in a folder"
    if subprocess.run(["unshare", "--mount-proc", "--pid", "--fork", "true"], capture_output=True).returncode:
        return "this system refuses mounts, which a machine in a folder needs"
    return ""


def long(test):
    """Mark a test that needs a machine in a folder."""
    skip = pytest.mark.skipif(bool(lacking()), reason=lacking())
    return pytest.mark.full(pytest.mark.timeout(4 * HOUR_S)(skip(test)))


class Machine:
    """A minimal Debian in a folder."""

    def __init__(self, folder, suite):
        self.folder, self.suite = folder, suite
        self.clone = folder / "home" / "reader" / "book"

    def run(self, *words, **environment) -> str:
        """Run a command in the clone, which must end well; returns what it said. environment: of tests/bare-machine."""
        answer = subprocess.run(
            [ROOT / "tests" / "bare-machine", self.folder, self.suite, *words],
            env={**os.environ, **environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=2 * HOUR_S,
        )
        # pytest shows it if the test fails.
        print(answer.stdout)
        assert answer.returncode == 0, words
        assert "Traceback" not in answer.stdout
        return answer.stdout

    def layouts(self, chapter: str) -> list[int]:
        """How many layouts each interpreter had when the chapter was measured last."""
        record = max((self.clone / "_build" / "records" / chapter).glob("*/session.jsonl"))
        with record.open(encoding="utf-8") as lines:
            return [len(drawn) for drawn in json.loads(next(lines))["layouts"].values()]


@pytest.fixture(scope="module", params=["bookworm", "trixie"])
def machine(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp(request.param)
    yield Machine(folder / "root", request.param)
    shutil.rmtree(folder)


@long
@pytest.mark.parametrize("rust", ["", "1"], ids=["without Rust", "with Rust"])
def test_the_commands_of_the_readme(machine, rust):
    """From nothing without Rust; then with Rust, as a reader adds it later."""
    if rust and not doctor.present("Rust", []):
        pytest.skip("there is no Rust here that could be lent")
    told = machine.run("make", "doctor", RUST=rust, FRESH="" if rust else "1")
    assert ("Rust (" in told) is not bool(rust)
    machine.run("python3", "ffilab/bootstrap.py", "test", *PART, RUST=rust)
    for chapter in CHAPTERS:
        machine.run("make", "chapter", f"NAME={chapter}", "BUDGET=smoke", RUST=rust)
        assert (machine.clone / "_build" / "html" / "notebooks" / chapter / f"{chapter}.html").exists()
        assert min(machine.layouts(chapter)) > 1


@long
@pytest.mark.tool("ip")
def test_a_folder_made_ready_serves_others_without_a_network(machine):
    """A new clone, with empty caches, takes everything from the folder, and measures."""
    machine.run("make", "ready")
    there = "rm -rf ~/room ~/friend && cp -r _build/room ~/room && mv ~/.cache ~/.cache-before && cd ~"
    machine.run("bash", "-ec", f"{there} && git clone -q room/book.bundle friend")
    made = "make ready FROM=$HOME/room && make chapter NAME=loaders BUDGET=smoke"
    assert "loaders.html" in machine.run("bash", "-ec", f"cd ~/friend && {made}", CUT="1")


@long
def test_each_way_of_installing_gives_the_command(machine):
    machine.run("bash", "-c", "python3 -m venv ~/with-uv && ~/with-uv/bin/pip install --quiet uv", PACKAGES="pipx")
    for way in ways_to_install(README):
        script = f"""
            PATH=~/with-uv/bin:$PATH
            export HOME=$(mktemp -d)
            {way}
            PATH=$HOME/.local/bin:$HOME/ffilab/bin:$PATH
            ffilab time --time 0 pass 'sum(range(999))'"""
        assert "times as fast" in machine.run("bash", "-ec", script, PACKAGES="pipx")
