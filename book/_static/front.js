// The chooser of the front page: two bindings, a kind of call, an interpreter. The page's generated data holds every answer.
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
      data.choices[key].forEach((text, number) => select.add(new Option(text, number)));
      select.value = data.choices[key].indexOf(data.first[name]);
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
    const chosen = name => Number(form.elements[name].value);
    const bindings = [chosen("one"), chosen("other")].sort((one, other) => one - other);
    const said = data.answers[[chosen("CPython"), chosen("signature"), ...bindings]];
    answer.innerHTML = `<p>${said.replace(/\{(\d+)\}/g, (_, cell) => data.cells[cell])}</p>`;
  }
})();
