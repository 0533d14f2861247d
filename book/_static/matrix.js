// The page of the matrix: DataTables sorts, searches and pages; the select boxes choose; the choice stands in the address.
// DataTables is fetched when somebody chooses, or when the address does, and on a phone, where all rows at once are a
// hundred screens: the page is complete without it.
(() => {
  const element = document.getElementById("ffi-matrix");
  const form = document.querySelector(".ffi-choose");
  if (!element || !form) return;
  const keys = ["cpython", "binding", "signature"];
  const here = document.currentScript.src.replace(/matrix\.js.*$/, "");
  const said = form.querySelector("output");
  let table, asked = false;

  function fetched() {
    if (asked) return;
    asked = true;
    document.head.append(Object.assign(document.createElement("link"), { rel: "stylesheet", href: here + "datatables.css" }));
    document.head.append(Object.assign(document.createElement("script"), { src: here + "datatables.js", onload: begin }));
  }

  function begin() {
    table = new DataTable(element, {
      autoWidth: false, order: [], pageLength: 25, lengthMenu: [25, 100, { label: "all", value: -1 }],
      layout: { topStart: null, topEnd: null, bottomStart: "pageLength", bottomEnd: "paging" },
    });
    show();
    open();
  }

  function exactly(text) { return text ? "^" + DataTable.util.escapeRegex(text) + "$" : ""; }

  function show() {
    if (!table) return fetched();
    keys.forEach((key, column) => table.column(column).search(exactly(form.elements[key].value), { regex: true, smart: false }));
    table.search(form.elements.q.value);
    const by = form.elements.sort.value;
    table.order(by === "" ? [] : [[Number(by), "asc"]]).draw();
    const shown = table.rows({ search: "applied" }).count();
    said.textContent = shown + " of " + table.rows().count() + " cells shown";
  }

  function keep() {
    const wanted = new URLSearchParams();
    for (const name of [...keys, "q", "sort"]) if (form.elements[name].value) wanted.set(name, form.elements[name].value);
    const query = wanted.toString();
    try { history.replaceState(null, "", location.pathname + (query ? "?" + query : "")); } catch { /* a browser that forbids it for files */ }
  }

  function choose() {
    const given = new URLSearchParams(location.search);
    for (const name of [...keys, "q", "sort"]) form.elements[name].value = given.get(name) || "";
    for (const box of form.querySelectorAll("select")) if (box.selectedIndex < 0) box.selectedIndex = 0;
  }

  // A row that an address names is turned to, whatever is chosen, and marked.
  function open() {
    if (!table) return fetched();
    element.querySelectorAll("tr.ffi-opened").forEach((row) => row.classList.remove("ffi-opened"));
    const name = decodeURIComponent(location.hash.slice(1));
    const index = name ? table.rows((_, __, row) => row.id === name).indexes()[0] : undefined;
    if (index === undefined) return;
    let at = table.rows({ search: "applied", order: "applied" }).indexes().indexOf(index);
    if (at < 0) { for (const one of [...keys, "q"]) form.elements[one].value = ""; show(); at = table.rows({ search: "applied", order: "applied" }).indexes().indexOf(index); }
    if (table.page.len() > 0) table.page(Math.floor(at / table.page.len())).draw("page");
    const row = table.row(index).node();
    row.classList.add("ffi-opened");
    row.tabIndex = -1;
    row.focus({ preventScroll: true });
    row.scrollIntoView({ block: "center" });
  }

  form.addEventListener("input", () => { show(); keep(); });
  form.addEventListener("reset", () => setTimeout(() => { show(); keep(); }));
  form.addEventListener("submit", (event) => event.preventDefault());
  addEventListener("hashchange", open);
  choose();
  said.textContent = element.tBodies[0].rows.length + " of " + element.tBodies[0].rows.length + " cells shown";
  form.hidden = false;
  form.addEventListener("focusin", fetched);
  form.addEventListener("pointerover", fetched);
  if (location.search || location.hash || matchMedia("(max-width: 600px)").matches) fetched();
})();
