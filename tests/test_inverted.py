"""No text may outlive its evidence: pages from golden records whose effects were swapped, or taken away."""

import html
import os
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import nbformat
import pytest

from ffilab.errors import UserError
from ffilab.judge.claims import corners
from ffilab.press.chapters import Chapter
from ffilab.press.execute import execute
from tests.changed_records import EFFECTLESS, INVERTED, changed
from tests.prose import faults

pytestmark = pytest.mark.slow
GOLDEN = Path(__file__).with_name("golden")
CLAIMS_A_SIDE = re.compile(
    r"\b(faste[rs]t?|slowe[rs]t?|cheape[rs]t?|deare[rs]t?|large[rs]t?|smalle[rs]t?|longer|shorter|higher|lower|more|less|fewer"
    r"|above|below|grows?|shrinks?|gains?|loses?|scales|wins?|exceeds?|falls?|rises?|pays?|blocks?|helps?|hurts?)\b"
)
# Of whatever was measured: a name of an arm, an extreme without its owner, a count.
WHATEVER = re.compile(
    r"\bblocks?\b(?=( and| on| with|,))|the (largest|smallest|least)( [\w']+){0,2} (is )?(about )?#|# of # [a-z ]* (are|lean) \w+"
)

OPEN = re.compile(
    r"undecided|cannot (be told|tell|say)|not known|not ruled out|not measured|no difference|nothing is known|too few|withheld"
)
# The sentence is true of both, as measured and inverted. loaders: each pause is less than a tenth of the call. races: teams are
# rows of one process, and keep their places when the builds change theirs. placement: orders of call_method miss next to nothing, and few
# orders tell as little of noise as the same orders inverted. balm: both gains that are compared are inverted. convoy: of many
# loads in reverse order, some pairs keep their sides. pinning: no effect is none when it is inverted, and what could be found is of
# the noise. races, meeting: counts of processes, whatever they lost.
TRUE_OF_BOTH = {
    ("loaders", "pause-free-threaded"),
    *(("races", f"{what}-{build}") for what in ("by-size", "by-work") for build in ("gil", "free-threaded")),
    *(("balm", f"held-{way}") for way in ("pooled", "block")),
    *(("pinning", what) for what in ("native-gain", "python-gain", "could-find", "figure 0 of pinning-12")),
    ("races", "meeting"),
    *(("convoy", what) for what in ("baselines", "strangers", "relief")),
    *(
        ("placement", f"{what}-{build}")
        for what in ("misses-call_method", "luck")
        for build in ("gil", "free-threaded")
    ),
}
NUMBER = re.compile(r"[-+±]?\d[\d.,]*( ?(%|ns|µs|ms|s|KiB|MiB))?")
MARKS = re.compile(r" ?\((?:smoke test|withheld)(?:: [^)]*)?\)")


def texts(notebook):
    """What a page says: its glued texts by name, and the descriptions of its figures by cell."""
    found = {}
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            if "scrapbook" in output.get("metadata", {}):
                name = output["metadata"]["scrapbook"]["name"]
                found[name] = MARKS.sub("", eval(next(iter(output["data"].values()))))  # a repr of a text
            for alt in set(
                re.findall(r'<img class="ffi-light" alt="([^"]*)"', output.get("data", {}).get("text/html", ""))
            ):
                found[f"figure {sum(name.startswith(f'figure of {cell.id}') for name in found)} of {cell.id}"] = (
                    html.unescape(alt)
                )
    return found


@pytest.fixture(scope="module")
def said(tmp_path_factory):
    """{(corner, how): texts} of every page, from golden records as they are and changed."""
    folder = tmp_path_factory.mktemp("changed")
    sources = {"as measured": GOLDEN, **{how: folder / how for how in (INVERTED, EFFECTLESS)}}
    for how in (INVERTED, EFFECTLESS):
        changed(GOLDEN, folder / how, how)

    def made(order):
        corner, how = order
        chapter = Chapter(corner, executed_folder=folder / "executed" / how)
        try:
            return order, texts(nbformat.read(execute(chapter, "quick", sources[how]), as_version=4))
        except UserError as refused:
            return order, refused

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return dict(pool.map(made, [(corner, how) for corner in corners() for how in sources]))


def page(said, corner, how):
    found = said[corner, how]
    if isinstance(found, UserError):
        pytest.fail(str(found))
    return found


def bare(text):
    """A text without its numbers."""
    return NUMBER.sub("#", text)


@pytest.mark.parametrize("corner", corners())
def test_no_sentence_claims_the_old_result(said, corner):
    before, after = page(said, corner, "as measured"), page(said, corner, INVERTED)
    assert set(before) == set(after)
    stayed = {
        name: (text, after[name])
        for name, text in before.items()
        if text != after[name]
        and (corner, name) not in TRUE_OF_BOTH
        and CLAIMS_A_SIDE.search(WHATEVER.sub("", bare(text)))
        and not OPEN.search(text)
        and bare(text) == bare(after[name])
    }
    assert not stayed, "\n".join(f"{name}: {one}\n  inverted: {other}" for name, (one, other) in stayed.items())


@pytest.mark.parametrize("corner", corners())
@pytest.mark.parametrize("how", ["as measured", INVERTED, EFFECTLESS])
def test_every_text_reads_well(said, corner, how):
    wrong = {name: (found, text) for name, text in page(said, corner, how).items() if (found := faults(text))}
    assert not wrong, "\n".join(f"{name}: {found}: {text}" for name, (found, text) in wrong.items())
