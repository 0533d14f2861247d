// What the theme leaves unsaid: names for its buttons, and a stop of the Tab key where something scrolls.
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

  function stops() {
    for (const box of document.querySelectorAll(WIDE)) {
      const scrolls = box.scrollWidth > box.clientWidth + 1 && getComputedStyle(box).overflowX !== "visible";
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

  // An address may lead into what is folded, such as the proof.
  function unfold() {
    const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    const folded = [];
    for (let part = target; part; part = part.parentElement) if (part.matches("details:not([open])")) folded.push(part);
    folded.forEach(part => { part.open = true; });
    if (folded.length) target.scrollIntoView();
  }

  addEventListener("DOMContentLoaded", () => { names(); stops(); unfold(); });
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
