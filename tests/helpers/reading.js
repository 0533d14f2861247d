// What tests/test_reading.py asks of a page: each function returns what is wrong with it.

// What a mouse can use or scroll, is seen, and is out of the order of the Tab key.
window.unreached = () => [...document.querySelectorAll('a[href], button, input, summary, select, .ffi-table, pre, .ffi-figure')]
    .filter(each => each.checkVisibility({visibilityProperty: true, opacityProperty: true}) && !each.disabled)
    .filter(each => !each.matches('.ffi-table, pre, .ffi-figure') || each.scrollWidth > each.clientWidth + 1)
    .filter(each => !each.matches('input[type=radio], .headerlink') && each.tabIndex < 0)
    .map(each => each.outerHTML.slice(0, 120));

// A page that scrolls sideways; of a figure none or both of its pictures, the wrong one, or one too small to be read; a
// table whose first column does not stay.
window.unreadable = mode => {
  const all = selector => [...document.querySelectorAll(selector)];
  const leaves = table => {
    table.scrollLeft = 150;
    const [cell, box] = [table.querySelector('td'), table].map(each => each.getBoundingClientRect().left);
    table.scrollLeft = 0;
    return Math.abs(cell - box) >= 2;
  };
  const pictures = figure => [...figure.querySelectorAll('img')].filter(each => each.offsetWidth);
  return [
    ...['sideways'].filter(() => document.documentElement.scrollWidth > innerWidth),
    ...all('.ffi-figure').filter(each => each.checkVisibility() && pictures(each).map(one => one.className).join() !== `ffi-${mode}`),
    ...all('.ffi-figure img').filter(each => each.offsetWidth && each.width < 600),
    ...all('.ffi-table').filter(each => each.scrollWidth > each.clientWidth && leaves(each)),
  ].map(each => (each.outerHTML ?? each).slice(0, 120));
};

// What a reader at 1,280 px meets, outside of what is folded: a table or quoted code that scrolls sideways, a word
// in a table that is broken in the middle, a picture without a caption.
window.crowded = () => {
  const all = selector => [...document.querySelectorAll(`.bd-article ${selector}`)].filter(each =>
    !each.closest('details') && each.checkVisibility({visibilityProperty: true, opacityProperty: true}));
  const wide = selector => all(selector).filter(each => each.scrollWidth > each.clientWidth + 1);
  const too = each => each.scrollWidth - each.clientWidth + ' px too wide: ';
  const words = text => text.replace(/\s+/g, ' ').trim().slice(0, 90);
  const longest = each => each.textContent.split('\n').reduce((one, other) => one.length < other.length ? other : one);
  const lines = (text, word) => {
    const range = document.createRange();
    range.setStart(text, word.index);
    range.setEnd(text, word.index + word[0].length);
    return new Set([...range.getClientRects()].map(each => Math.round(each.top)));
  };
  const texts = each => [...each.childNodes].flatMap(inner => inner.nodeType === Node.TEXT_NODE ? [inner] : texts(inner));
  const broken = text => [...text.data.matchAll(/[A-Za-z]{4,}/g)].filter(word => lines(text, word).size > 1);
  return [
    ...all(':is(td, th)').flatMap(texts).flatMap(broken).map(word => 'broken: ' + word[0] + ' in ' + words(word.input)),
    ...wide('.ffi-table, table').filter(each => !each.closest('.ffi-matrix')).map(each => 'table ' + too(each) + words(each.textContent)),
    ...wide('div.highlight pre').filter(each => !each.closest('.cell')).map(each => 'quoted code ' + too(each) + words(longest(each))),
    ...all('img').filter(each => !each.closest('figure')?.querySelector('figcaption')?.checkVisibility())
      .map(each => 'no visible caption: ' + words(each.alt)),
  ];
};

// The tag of the element that has the focus, and whether one sees that it has it.
window.focused = () => {
  const style = getComputedStyle(document.activeElement);
  return [document.activeElement.tagName, style.outlineStyle !== 'none' || style.boxShadow !== 'none'];
};
