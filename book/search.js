// The order of what the search finds, and its excerpts. The press puts this behind Sphinx's own script; WORDS comes from book/search.toml.
const WORDS = {};
const ASKED = (new URLSearchParams(location.search).get("q") || "").toLowerCase().match(/[\w-]+/g) || [];

// How many of the words that were asked for stand in a text, be it as the beginning of a longer one.
const hits = text => {
  const there = text.toLowerCase().match(/[\w-]+/g) || [];
  return ASKED.filter(word => there.some(other => other === word || (word.length > 3 && other.startsWith(word)))).length;
};

var Scorer = {
  objNameMatch: 11, objPartialMatch: 6, objPrio: {0: 15, 1: 5, 2: -5}, objPrioDefault: 0,
  title: 15, partialTitle: 7, term: 5, partialTerm: 2,
  // A page that measures comes before one that lists; and the page before a heading in it.
  score: ([docname, title, anchor, , score]) => {
    const measures = docname.startsWith("notebooks/");
    const heading = anchor ? -1 : 0;
    return Math.min(score, 15) + (measures ? 10 : 0) + 8 * hits(WORDS[docname] || "") + 4 * hits(title) + heading;
  },
};

addEventListener("DOMContentLoaded", () => {
  const NO_PROSE = "script, style, nav, .headerlink, .cell_input, .highlight, .ffi-csv, figure, .toctree-wrapper";
  Search.htmlToText = (page, anchor) => {
    const parsed = new DOMParser().parseFromString(page, "text/html");
    const article = parsed.querySelector("article.bd-article") || parsed.querySelector("[role=main]");
    if (!article) return "";
    article.querySelectorAll(NO_PROSE).forEach(part => part.remove());
    const part = (anchor && article.querySelector(anchor)) || article;
    return [...part.querySelectorAll("p, li, dd, dt, h2, h3")]
      .map(each => each.textContent.replace(/\s+/g, " ").trim())
      .filter(text => text.length > 20 && !/^(Measured on|Teaching:|Made from|Click to)/.test(text))
      .join("\n");
  };
  // The paragraph in which most of the words stand.
  Search.makeSearchSummary = (page, words, anchor) => {
    const said = Search.htmlToText(page, anchor).split("\n");
    const best = said.reduce((one, other) => (hits(other) > hits(one) ? other : one), said[0] || "");
    const first = Math.min(...[...ASKED, ...words].map(word => best.toLowerCase().indexOf(word)).filter(at => at >= 0), best.length);
    const start = best.length > 240 && first < best.length ? Math.max(first - 100, 0) : 0;
    const summary = document.createElement("p");
    summary.classList.add("context");
    summary.textContent = (start ? "… " : "") + best.slice(start, start + 240) + (start + 240 < best.length ? " …" : "");
    return summary;
  };
});
