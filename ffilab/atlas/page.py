"""One page made of packs, with the look of the book: `make atlas`."""

import math
import shlex
import shutil
import warnings
from functools import partial
from pathlib import Path

import pandas as pd

from ffilab.atlas import model, tables
from ffilab.atlas.pack import judged_here, opened
from ffilab.atlas.tables import Atlas, Ratio
from ffilab.judge.estimates import LEVEL, PREDICTION_LEVEL
from ffilab.page import draw, files, ledger_page, matrix, words
from ffilab.page.render import press
from ffilab.page.templates import filled
from ffilab.run.errors import UserError
from ffilab.run.paths import BUILD, ROOT, swap
from ffilab.run.progress import say, step
from ffilab.setup.environments import install_extra

# Packs of our own runs, with which a reader's can be compared.
OURS = ROOT / "book" / "machines"
ENDING = "*.tar.gz"
# Beyond this the ends of an interval are not seen on a linear axis.
LINEAR_UP_TO = 3.0


def make(source: str) -> Path:
    """Make the atlas of the packs that FROM names (folders and files; else our own and those that were packed here).
    Returns its page. Raises UserError if there is none."""
    install_extra("statsmodels")
    found, refused = [], []
    for path in paths(source):
        try:
            found.append(judged_here(opened(path)))
        except UserError as error:
            # One that is damaged costs itself alone.
            say(f"  {error}")
            refused.append(str(error).replace(f"{path.parent}/", ""))
    return render(Atlas.of(found, refused), BUILD / "atlas")


def paths(source: str) -> list[Path]:
    """The packs that a text names: files, and all below folders. Of this machine's own the newest counts. Raises
    UserError, if a folder has none."""
    try:
        named = [Path(one).expanduser() for one in shlex.split(source)]
        if not named:
            newest = sorted((BUILD / "packs").glob(ENDING), key=lambda path: path.stat().st_mtime)[-1:]
            named = [OURS, *newest]
        if absent := [str(one) for one in named if not one.exists()]:
            raise UserError(f"There is no {absent[0]}: name folders and files (no *), in quotes if a name has a space.")
        found = {one: sorted(one.rglob(ENDING)) if one.is_dir() else [one] for one in named}
        if empty := [str(one) for one, packs in found.items() if not packs]:
            raise UserError(
                f"There is no pack in {empty[0]}: `make pack` writes one, and its name ends in {ENDING[1:]}."
            )
        return list(dict.fromkeys(path.resolve() for packs in found.values() for path in packs))
    except (OSError, RuntimeError, ValueError) as error:
        raise UserError(
            f"FROM cannot be read ({error}): name folders and files, in quotes if a name has a space."
        ) from None


def render(atlas: Atlas, folder: Path) -> Path:
    """Press the page of an atlas into `folder/html`. Returns its index."""
    tree, out = folder / "source", folder / "press"
    for old in (tree, out):
        shutil.rmtree(old, ignore_errors=True)
    shutil.copytree(ROOT / "book" / "_static", tree / "book" / "_static")
    shutil.copy(ROOT / "_config.yml", tree)
    shutil.copy(ROOT / "book" / "references.bib", tree / "book")
    (tree / "_toc.yml").write_text("format: jb-book\nroot: book/atlas\n")
    with step("draw the atlas"), words.speaking(""), warnings.catch_warnings():
        # A name in a script that the font lacks has its number in front of it.
        warnings.filterwarnings("ignore", message="Glyph")
        draw.start_page(True)
        (tree / "book" / "_static" / files.STYLE).write_text(files.style())
        matrix.copy_datatables(tree / "book" / "_static")
        (tree / "book" / "atlas.md").write_text(page(atlas, tree))
    with step("render the atlas"):
        warned = press(tree, out)
    swap(out / "_build" / "html", folder / "html")
    if warned:
        raise warned
    return folder / "html" / "book" / "atlas.html"


def page(atlas: Atlas, tree: Path) -> str:
    """The page in MyST. tree: of the sources; figures and CSV files are put there."""
    made, claims = tables.ratios(atlas), tables.claims(atlas)
    frames = {
        "machines": tables.machines(atlas),
        "modelled": tables.modelled(made),
        "groups": tables.groups(atlas),
        "untested": tables.untested(atlas),
        "everything": tables.long(atlas),
    }
    return filled(
        "atlas.md",
        atlas=atlas,
        names=[name for name, _ in atlas.named()],
        frames=frames,
        csv={name: files.csv_link(frame.map(ledger_page.no_formula), name, tree) for name, frame in frames.items()},
        claims=claims,
        differ=[claim.id for claim, _, said in claims if said.startswith(tables.DIFFER)],
        forests=[(ratio, forest(ratio, tree)) for ratio in made],
        model=model,
        level=LEVEL,
        prediction=PREDICTION_LEVEL,
        order=order,
        shown=shown,
        rows=lambda frame: frame.astype(object).values.tolist(),
    )


def order(cell) -> str:
    """By what a cell is sorted, where that is not its text."""
    return f"{cell.estimate.interval.value:.9g}" if isinstance(cell, draw.Quantity) and cell.estimate else ""


def shown(cell) -> str:
    """What a cell shows, on one line, so that no line of it ends what it stands in; nothing without a value."""
    if isinstance(cell, float):
        return "" if math.isnan(cell) else f"{cell:.3g}"
    return "" if cell is None else " ".join(str(cell).split())


def forest(ratio: Ratio, tree: Path) -> str:
    """A ratio's forest plot as HTML."""
    points = ratio.points()
    caption = f"{ratio.claim.id}: {ratio.rule.part} ({tables.in_words(ratio.rule.number)})"
    drawn = partial(plot, points=points)
    shown = draw.framed(drawn, caption, draw.in_words(points), (7.2, 1.3 + 0.32 * len(points)))
    return files.apart(shown, tree / "book" / "_static", "../_static")


def plot(figure, points: pd.DataFrame) -> None:
    """Draw a point with its interval for each machine, for their mean, and for the next machine."""
    points = points.assign(machine=[readable(name) for name in points.machine])
    reach = points.high.max() / points.low.min()
    look = {"xscale": "log"} if reach > LINEAR_UP_TO else {}
    axes = draw.intervals(figure, points, "machine", line=1, xlabel="ratio", ylabel="", **look)
    # Between what was measured and what the model makes of it.
    axes.axhline(sum(points.what == "measured") - 0.5, color="gray", linewidth=1)


def readable(name: str) -> str:
    """A text that matplotlib does not read as a formula."""
    return name.replace("$", r"\$")
