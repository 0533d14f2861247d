"""The whole book as one PDF, printed by Chromium.

Figures and tables of the chapters are HTML, which Jupyter Book's way through TeX leaves out; a browser prints what the reader sees.
"""

import re
import shutil
from pathlib import Path
from urllib.parse import urljoin, urlsplit

import yaml
from bs4 import BeautifulSoup

from ffilab.errors import UserError
from ffilab.paths import BUILD, HTML, ROOT
from ffilab.progress import say, step

CHROMIUM = ("chromium", "chromium-browser", "google-chrome")
# An address that no link of the book has, for finding out where a relative one leads.
HERE = "http://book/"


def pdf() -> Path:
    """Print `_build/hidden-corners.pdf` from the rendered pages. Raises UserError if there are none, or no Chromium."""
    chromium = next(filter(None, map(shutil.which, CHROMIUM)), None)
    if chromium is None:
        raise UserError("The book is printed by Chromium, which is not here: `make doctor` names the package.")
    if not (HTML / "index.html").exists():
        raise UserError("There is no book to print yet: run `make book`, or `make html`.")
    from playwright.sync_api import sync_playwright

    target, whole = BUILD / "hidden-corners.pdf", HTML / "whole-book.html"
    with step("print the book"):
        try:
            whole.write_text(one_page(HTML, in_order(yaml.safe_load((ROOT / "_toc.yml").read_text()))))
            with sync_playwright() as playwright:
                browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
                tab = browser.new_page(color_scheme="light")
                tab.set_default_timeout(600_000)
                tab.goto(whole.as_uri())
                tab.pdf(path=target, format="A4", margin=dict.fromkeys(("top", "bottom", "left", "right"), "16mm"))
                browser.close()
        finally:
            whole.unlink(missing_ok=True)
    say(f"  {target.relative_to(BUILD.parent)}")
    return target


def in_order(contents) -> list[str]:
    """The pages of a table of contents, as they are read."""
    if isinstance(contents, list):
        return [page for each in contents for page in in_order(each)]
    own = [contents[key] for key in ("root", "file") if key in contents]
    return own + [page for key in ("parts", "chapters", "sections") for page in in_order(contents.get(key, []))]


def one_page(html: Path, pages: list[str]) -> str:
    """All these pages on one, with the links between them leading to places in it."""
    whole = BeautifulSoup((html / f"{pages[0]}.html").read_text(), "html.parser")
    for script in whole.find_all("script"):
        script.decompose()
    for element in whole.head.select("[href]"):
        element["href"] = within(element["href"], pages[0], [])
    whole.body.clear()
    for page in pages:
        article = BeautifulSoup((html / f"{page}.html").read_text(), "html.parser").select_one("article.bd-article")
        article["id"] = place(page)
        article["style"] = "break-before: page"
        for element in article.select("script, .headerlink"):
            element.decompose()
        for element in article.select("[id]"):
            element["id"] = place(page, element["id"])
        for name in ("href", "src"):
            for element in article.select(f"[{name}]"):
                element[name] = within(element[name], page, pages)
        for image in article.select("img[loading]"):
            del image["loading"]
        for part in article.select("details"):
            part["open"] = ""
        whole.body.append(article)
    return str(whole)


def within(address: str, page: str, pages: list[str]) -> str:
    """Where an address on a page leads, seen from the one page that holds them all."""
    if urlsplit(address).scheme:
        return address
    path, _, anchor = urljoin(f"{HERE}{page}.html", address).partition("#")

    parts = path.removeprefix(HERE)
    found = parts.partition("?")[0].removesuffix(".html")
    return f"#{place(found, anchor)}" if found in pages else parts


def place(page: str, anchor: str = "") -> str:
    """The name of a page, or of a place on it, where all pages are one."""
    return re.sub(r"\W", "-", page) + (f"--{anchor}" if anchor else "")
