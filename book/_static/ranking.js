// How the search field ranks pages: by how much of what was typed stands in a page's headings and among the words that
// readers type for it (book/search.toml), rare words weighing more; not each word has to be on the page. Sphinx puts this
// behind its own search (html_search_scorer), asks `performTermsSearch`, and shows phrases of the index before.
const HEADING = 3; // what a word in a heading weighs, over one that is only on the page
const BEST = 60; // of 100, which a whole phrase of the index has

// [file number, anchor, text] of all headings and of all that readers type.
const headings = () => {
  const { alltitles, indexentries } = Search._index;
  const those = (found) => Object.entries(found).flatMap(([text, places]) => places.map(([file, id]) => [file, id, text]));
  return [...those(alltitles), ...those(indexentries)];
};

Search.performTermsSearch = (searchTerms) => {
  const { terms, titleterms, docnames, titles, filenames } = Search._index;
  const stemmer = new Stemmer();
  const words = [...searchTerms].filter((word) => word.length > 1);
  const stemsOf = (text) => new Set(splitQuery(text.toLowerCase()).map((word) => stemmer.stemWord(word)));
  const pages = new Map();
  const weights = words.map((word) => {
    const bodies = [terms[word] ?? [], titleterms[word] ?? []].flat();
    bodies.forEach((file) => pages.set(file, (pages.get(file) ?? new Map()).set(word, 1)));
    return [word, Math.log(1 + docnames.length / (1 + new Set(bodies).size))];
  });
  const best = new Map();
  const most = new Map(); // of all words in one text
  for (const [file, id, text] of headings()) {
    const stems = stemsOf(text);
    const here = weights.filter(([word]) => stems.has(word));
    if (!here.length) continue;
    here.forEach(([word]) => pages.set(file, (pages.get(file) ?? new Map()).set(word, HEADING)));
    const weight = here.reduce((sum, [, each]) => sum + each, 0);
    most.set(file, Math.max(weight, most.get(file) ?? 0));
    if (id && text !== titles[file] && weight > (best.get(file)?.weight ?? 0)) best.set(file, { weight, id, text });
  }
  const all = weights.reduce((sum, [, weight]) => sum + weight, 0);
  // Pages in Chinese, to who types Chinese.
  const chinese = words.some((word) => /\p{Script=Han}/u.test(word));
  const results = [...pages].filter(([file]) => chinese || !docnames[file].includes("zh_TW")).map(([file, found]) => {
    const words = weights.reduce((sum, [word, weight]) => sum + weight * (found.get(word) ?? 0), 0) / HEADING;
    const score = (2 * words + (most.get(file) ?? 0)) / (3 * all);
    const { weight = 0, id, text } = best.get(file) ?? {};
    const [title, anchor] = weight > all / 2 ? [`${titles[file]} > ${text}`, `#${id}`] : [titles[file], ""];
    return [docnames[file], title, anchor, null, Math.round(BEST * score), filenames[file]];
  });
  return results.sort((one, other) => other[4] - one[4]).slice(0, 20);
};

// A page once, in its best place: the last, as the last comes first.
const performSearch = Search._performSearch;
Search._performSearch = (...query) => {
  const last = new Map();
  performSearch(...query).forEach((result) => (last.delete(result[0]), last.set(result[0], result)));
  return [...last.values()];
};

// What a result quotes: the prose of the section that it leads to, or of the page.
Search.htmlToText = (html, anchor) => {
  const page = new DOMParser().parseFromString(html, "text/html");
  const article = page.querySelector("article") ?? page.body;
  const place = anchor ? article.querySelector(`[id="${anchor.slice(1)}"]`) : null;
  const section = place?.closest("section") ?? article;
  section.querySelectorAll(".headerlink").forEach((left) => left.remove());
  const prose = [...section.querySelectorAll("p, li")].filter((one) => !one.closest(".admonition"));
  return prose.map((one) => one.textContent.trim()).join(" ") || section.textContent;
};
