"""A picture of a rendered page, for the README and for looking at pages: `python tests/screenshot.py book/preface picture.png`."""

import argparse
import shutil
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from ffilab.run.paths import HTML

FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--disable-background-networking", "--no-first-run"]


def shoot(
    page: Path, target: Path, size: tuple[int, int], mode: str = "light", whole: bool = False, at: str = ""
) -> None:
    """One page as a PNG of few colours. whole: all of its length. at: the id of what to begin with."""
    from PIL import Image
    from playwright.sync_api import sync_playwright

    path = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))))
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=FLAGS)
        tab = browser.new_page(viewport={"width": size[0], "height": size[1]})
        tab.goto(page.as_uri() + (f"#{at}" if at else ""))
        tab.evaluate("mode => { document.documentElement.dataset.theme = mode }", mode)
        tab.wait_for_timeout(500)
        tab.screenshot(path=str(target), full_page=whole)
        browser.close()
    Image.open(target).convert("RGB").quantize(128).save(target, optimize=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("page", help="as _toc.yml names it")
    parser.add_argument("target", type=Path)
    parser.add_argument("--size", type=int, nargs=2, default=(1280, 900), metavar=("WIDTH", "HEIGHT"))
    parser.add_argument("--mode", choices=("light", "dark"), default="light")
    parser.add_argument("--whole", action="store_true")
    parser.add_argument("--at", default="", help="the id of what to begin with")
    asked = parser.parse_args()
    shoot(HTML / f"{asked.page}.html", asked.target, tuple(asked.size), asked.mode, asked.whole, asked.at)
