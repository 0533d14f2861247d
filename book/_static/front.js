// The chooser of the front page: two bindings, a kind of call, an interpreter. The page's generated data holds all numbers and all words.
(() => {
  const form = document.querySelector(".ffi-chooser");
  const answer = document.querySelector(".ffi-chooser-answer");
  if (!form) return;
  const load = document.createElement("script");
  load.src = form.dataset.src;
  load.onload = () => build(window.ffiChooser);
  document.head.append(load);

  function build(data) {
    const fields = [["one", "binding"], ["other", "binding"], ["signature", "signature"], ["CPython", "CPython"]];
    for (const [place, [name, key]] of fields.entries()) {
      const label = document.createElement("label");
      const select = document.createElement("select");
      select.name = name;
      data.names[key].forEach((text, number) => select.add(new Option(text, number)));
      select.value = data.names[key].indexOf(data.first[name]);
      label.append(data.fields[place] + " ", select);
      form.append(label);
    }
    form.addEventListener("change", () => show(data));
    form.addEventListener("submit", event => event.preventDefault());
    form.hidden = false;
    document.querySelector(".ffi-examples").open = false;
    show(data);
  }

  function show(data) {
    const chosen = name => form.elements[name].value;
    const key = `${chosen("CPython")},${chosen("signature")}`;
    let asked = [...new Set([chosen("one"), chosen("other")])];
    let how = asked.length === 1 ? "alone" : "neither", times = "";
    for (const two of [asked, [...asked].reverse()]) {
      const found = asked.length === 2 && data.pairs[`${key},${two}`];
      if (found) [asked, [how, times]] = [two, found];
    }
    const words = { times, mark: data.mark };
    ["a", "b"].slice(0, asked.length).forEach((letter, place) => {
      words[letter] = data.names.binding[asked[place]];
      const [short, text, address] = data.cells[`${key},${asked[place]}`] || [data.none, "", ""];
      const link = document.createElement("a");
      if (address) link.href = address;
      link.title = text;
      link.textContent = short;
      words[`time_${letter}`] = link;
    });
    const [bold, rest] = data.words[data.mark && asked.length > 1 ? "marked" : how];
    const said = document.createElement("p"), strong = document.createElement("strong");
    strong.textContent = bold.replace(/\{(\w+)\}/g, (_, name) => words[name]);
    said.append(...(bold ? [strong] : []), ...rest.split(/\{(\w+)\}/).map((part, place) => place % 2 ? words[part] : part));
    answer.replaceChildren(said);
  }
})();
