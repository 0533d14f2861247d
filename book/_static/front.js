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
    const fields = [
      ["one", "This binding", "binding"], ["other", "or this one", "binding"],
      ["signature", "for this kind of call", "signature"], ["CPython", "on CPython", "CPython"],
    ];
    for (const [name, title, key] of fields) {
      const label = document.createElement("label");
      const select = document.createElement("select");
      select.name = name;
      data.names[key].forEach((text, number) => select.add(new Option(text, number)));
      select.value = data.names[key].indexOf(data.first[name]);
      label.append(title + " ", select);
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
    const asked = [...new Set([chosen("one"), chosen("other")])];
    const numbers = document.createElement("p");
    asked.forEach((binding, place) => {
      const [text, address, why] = data.cells[`${key},${binding}`] || ["no number here", "", ""];
      const link = document.createElement("a");
      if (address) link.href = address;
      link.textContent = data.names.binding[binding];
      numbers.append(place ? "; " : "", link, ` ${text}${why ? ` (${why})` : ""}`);
    });
    numbers.append(".");
    const verdict = document.createElement("p");
    const pair = [asked, [...asked].reverse()].find(two => data.pairs[`${key},${two}`]);
    if (asked.length === 2 && pair) {
      const [ratio, which] = data.pairs[`${key},${pair}`];
      const names = {
        a: data.names.binding[pair[0]], b: data.names.binding[pair[1]],
        signature: data.names.signature[chosen("signature")], CPython: data.names.CPython[chosen("CPython")],
      };
      const fill = words => words.replace(/\{(\w+)\}/g, (_, name) => names[name]);
      const strong = document.createElement("strong");
      strong.textContent = fill(data.words[data.mark ? "marked" : which]);
      verdict.append(`${fill(data.words.ratio)} ${ratio}. `, strong);
    } else if (asked.length === 2) {
      verdict.textContent = data.words.missing;
    }
    answer.replaceChildren(numbers, verdict);
  }
})();
