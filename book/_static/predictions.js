// The reader's predictions: typed at the list, kept in this browser, shown beside what the run says. Nothing is sent.
document.addEventListener("DOMContentLoaded", () => {
  "use strict";
  const PREFIX = "ffi-prediction/";
  const chapter = location.pathname.split("/").slice(-2)[0];
  const keyOf = (number) => `${PREFIX}${chapter}/${number}`;

  // Where a browser keeps nothing for pages of files, the predictions live as long as the page.
  let store;
  try {
    store = window.localStorage;
    store.setItem(`${PREFIX}try`, "");
    store.removeItem(`${PREFIX}try`);
  } catch {
    store = null;
  }
  const kept = new Map();
  const read = (key) => JSON.parse((store ? store.getItem(key) : kept.get(key)) ?? "null");
  const write = (key, value) => {
    const text = JSON.stringify(value);
    try {
      if (store) store.setItem(key, text);
      else kept.set(key, text);
    } catch {
      store = null; // full, or forbidden meanwhile
      kept.set(key, text);
    }
  };
  const remove = (key) => (store ? store.removeItem(key) : kept.delete(key));
  const keys = () =>
    (store ? Object.keys(store) : [...kept.keys()])
      .filter((key) => key.startsWith(PREFIX))
      .sort((a, b) => a.localeCompare(b, "en", { numeric: true }));

  const element = (name, attributes = {}, ...children) => {
    const made = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    made.append(...children);
    return made;
  };
  const button = (text, act) => {
    const made = element("button", { type: "button" }, text);
    made.addEventListener("click", act);
    return made;
  };

  // Beside each answer of the run: what the reader typed, if anything.
  const answers = new Map();
  for (const strong of document.querySelectorAll("p > strong")) {
    const found = strong.textContent.match(/^You predicted \((\d+)\)\.$/);
    if (found) {
      const place = element("span", { class: "ffi-yours" });
      strong.after(place);
      answers.set(Number(found[1]), place);
    }
  }
  const show = (number) => {
    const place = answers.get(number);
    const answer = read(keyOf(number))?.answer;
    place?.replaceChildren(...(answer ? [" ", element("q", {}, answer), " ", element("b", {}, "This run:")] : []));
  };
  answers.forEach((_, number) => show(number));

  const fields = [];
  for (const list of document.querySelectorAll("section#your-prediction > ol")) {
    [...list.children].forEach((item, index) => {
      const number = list.start + index;
      const question = item.textContent.trim();
      const id = `ffi-prediction-${number}`;
      const field = element("textarea", { id, rows: "2", autocomplete: "off" });
      field.value = read(keyOf(number))?.answer ?? "";
      field.addEventListener("input", () => {
        if (field.value.trim()) write(keyOf(number), { question, answer: field.value.trim() });
        else remove(keyOf(number));
        show(number);
      });
      fields.push([number, field]);
      item.append(element("label", { class: "ffi-prediction", for: id }, `Your prediction (${number})`), field);
    });
    const status = element("span", { role: "status" });
    const save = (name, type, text) => {
      const link = element("a", { download: name, href: URL.createObjectURL(new Blob([text], { type })) });
      link.click();
      setTimeout(() => URL.revokeObjectURL(link.href), 1000);
    };
    const all = () =>
      keys().map((key) => {
        const [, chapter, number] = key.split("/");
        return { chapter, number: Number(number), ...read(key) };
      });
    const inWords = ({ chapter, number, question, answer }) => `${chapter} (${number}) ${question}\n  ${answer}\n`;
    list.after(
      element(
        "div",
        { class: "ffi-prediction-tools" },
        store ? "What you type stays in this browser. " : "This browser keeps what you type until you leave the page. ",
        button("Clear this chapter's", () => {
          keys().filter((key) => key.startsWith(`${PREFIX}${chapter}/`)).forEach(remove);
          fields.forEach(([, field]) => { field.value = ""; });
          answers.forEach((_, number) => show(number));
          status.textContent = "Cleared.";
        }),
        button("Save all as text", () => save("predictions.txt", "text/plain", all().map(inWords).join("\n"))),
        button("Save all as JSON", () => save("predictions.json", "application/json", JSON.stringify(all(), null, 1))),
        status,
      ),
    );
  }
});
