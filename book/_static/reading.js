// What the theme leaves unsaid: names for its buttons, a hint and a stop of the Tab key where something scrolls; and
// tables of a picture's numbers that a click sorts.
// Everything can be read without this script.
(() => {
  const WIDE = ".ffi-table, .ffi-figure, .pst-scrollable-table-container, .bd-article table, .bd-article pre, div.math";

  function caption(box) {
    const near = box.querySelector("caption, figcaption") || box.closest(".cell_output")?.querySelector("em");
    const kind = box.matches("pre") ? "Code" : box.matches(".ffi-figure") ? "Figure" : "Table";
    const heading = box.closest("section")?.querySelector("h1, h2, h3, h4");
    const words = near || heading;
    return words ? `${kind}: ${words.textContent.replace(/#$/, "").trim()}` : kind;
  }

  // Above what scrolls sideways: on a phone nothing else shows that there is more.
  function hint(box, scrolls) {
    const before = box.previousElementSibling?.matches(".ffi-scrolls") ? box.previousElementSibling : null;
    if (!scrolls) return before?.remove();
    if (before || box.matches("pre, div.math")) return;
    const said = document.documentElement.lang.startsWith("zh") ? "左右捲動" : "scrolls sideways";
    box.before(Object.assign(document.createElement("p"), { className: "ffi-scrolls", textContent: `⇆ ${said}` }));
  }

  function stops() {
    for (const box of document.querySelectorAll(WIDE)) {
      const scrolls = box.scrollWidth > box.clientWidth + 1 && getComputedStyle(box).overflowX !== "visible";
      hint(box, scrolls);
      if (scrolls && !box.hasAttribute("tabindex")) {
        box.tabIndex = 0;
        box.dataset.stop = "";
        if (box.matches("table")) continue; // a table keeps its own role
        box.setAttribute("role", "region");
        box.setAttribute("aria-label", caption(box));
      } else if (!scrolls && "stop" in box.dataset) {
        for (const name of ["tabindex", "role", "aria-label", "data-stop"]) box.removeAttribute(name);
      }
    }
  }

  function names() {
    for (const summary of document.querySelectorAll("nav summary")) {
      const chapter = summary.closest("li")?.querySelector("a")?.textContent.trim();
      summary.setAttribute("aria-label", `Pages of: ${chapter || "this part"}`);
    }
    // Its rows hold links back, which no list may: it is plain text then.
    document.querySelectorAll(".citation-list[role=list]").forEach(list => list.removeAttribute("role"));
  }

  function sorted() {
    const value = text => text.replaceAll(",", "").match(/-?\d[\d.]*/)?.[0];
    for (const head of document.querySelectorAll(".ffi-numbers th")) {
      const button = Object.assign(document.createElement("button"), { type: "button" });
      button.append(...head.childNodes);
      head.append(button);
      button.addEventListener("click", () => {
        const body = head.closest("table").tBodies[0], up = head.getAttribute("aria-sort") !== "ascending";
        const said = row => row.cells[head.cellIndex].textContent;
        const order = (a, b) => value(a) - value(b) || a.localeCompare(b);
        head.parentElement.querySelectorAll("th").forEach(other => other.removeAttribute("aria-sort"));
        head.setAttribute("aria-sort", up ? "ascending" : "descending");
        body.append(...[...body.rows].sort((a, b) => (up ? 1 : -1) * order(said(a), said(b))));
      });
    }
  }

  // An address may lead into what is folded, such as the proof.
  function unfold() {
    const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    const folded = [];
    for (let part = target; part; part = part.parentElement) if (part.matches("details:not([open])")) folded.push(part);
    folded.forEach(part => { part.open = true; });
    if (folded.length) target.scrollIntoView();
  }

  addEventListener("DOMContentLoaded", () => { names(); sorted(); stops(); unfold(); });
  addEventListener("hashchange", unfold);
  addEventListener("load", stops);
  addEventListener("resize", stops);
  // What is unfolded has a width only then.
  document.addEventListener("toggle", stops, true);
  document.addEventListener("click", () => setTimeout(stops, 50));
  // On paper nothing can be unfolded or fetched late, and all pages are light.
  const page = document.documentElement;
  let shown;
  addEventListener("beforeprint", () => {
    shown ??= page.dataset.theme;
    page.dataset.theme = "light";
    document.querySelectorAll("details").forEach(part => { part.open = true; });
    document.querySelectorAll("img[loading=lazy]").forEach(image => { image.loading = "eager"; });
  });
  addEventListener("afterprint", () => { page.dataset.theme = shown; shown = undefined; });
})();
