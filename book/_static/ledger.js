// The page of the ledger: which cards are shown is chosen by select boxes; the choice stands in the address.
(() => {
  const form = document.querySelector(".ffi-choose");
  const cards = [...document.querySelectorAll(".ffi-claim")];
  if (!form || !cards.length) return;
  const names = ["verdict", "size", "document", "chapter"];
  const said = form.querySelector("output");
  form.hidden = false;

  function show() {
    const wanted = names.map((name) => form.elements[name].value && `ffi-${name}-${form.elements[name].value}`).filter(Boolean);
    for (const card of cards) card.hidden = !wanted.every((one) => card.classList.contains(one));
    // The heading of a document without a card that is shown says nothing.
    for (const section of document.querySelectorAll("section section")) {
      const inside = [...section.querySelectorAll(".ffi-claim")];
      if (inside.length) section.hidden = inside.every((card) => card.hidden);
    }
    const shown = cards.filter((card) => !card.hidden).length;
    said.textContent = `${shown} of ${cards.length} claims shown`;
  }

  function keep() {
    const wanted = new URLSearchParams();
    for (const name of names) if (form.elements[name].value) wanted.set(name, form.elements[name].value);
    const query = wanted.toString();
    try { history.replaceState(null, "", location.pathname + (query ? "?" + query : "")); } catch { /* a browser that forbids it for files */ }
  }

  // A claim that an address names is shown, whatever is chosen, and marked.
  function open() {
    cards.forEach((card) => card.classList.remove("ffi-opened"));
    const card = cards.find((one) => "#" + one.id === location.hash);
    if (!card) return;
    if (card.hidden) { for (const name of names) form.elements[name].value = ""; show(); }
    card.classList.add("ffi-opened");
    card.scrollIntoView({ block: "start" });
  }

  // Where a clipboard may be written to, the link is copied; elsewhere its address can be read and selected.
  for (const link of document.querySelectorAll(".ffi-link")) {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "ffi-copy";
    button.textContent = "copy link";
    button.setAttribute("aria-label", "copy the " + link.textContent);
    button.addEventListener("click", async () => {
      try {
        await navigator.clipboard.writeText(link.href);
        button.textContent = "copied";
      } catch {
        const field = document.createElement("input");
        field.readOnly = true;
        field.className = "ffi-copy";
        field.value = link.href;
        field.setAttribute("aria-label", "address of the claim, to be copied");
        button.replaceWith(field);
        field.select();
        field.focus();
      }
    });
    link.after(button);
  }

  form.addEventListener("input", () => { show(); keep(); });
  form.addEventListener("reset", () => setTimeout(() => { show(); keep(); }));
  form.addEventListener("submit", (event) => event.preventDefault());
  addEventListener("hashchange", open);
  const given = new URLSearchParams(location.search);
  for (const name of names) {
    form.elements[name].value = given.get(name) || "";
    if (form.elements[name].selectedIndex < 0) form.elements[name].selectedIndex = 0;
  }
  show();
  open();
})();
