// Recorded runs, played back: who has the GIL, who waits for it, and when the switch interval is over.
// A figure with `data-player` holds its scenes as JSON (ffilab/page/player.py) beside a picture; without this script the picture stays.
document.addEventListener("DOMContentLoaded", () => {
  "use strict";
  const NS = "http://www.w3.org/2000/svg";
  const [WIDTH, LEFT, TICKS] = matchMedia("(max-width: 600px)").matches ? [390, 128, 4] : [680, 150, 8];
  const RIGHT = WIDTH - 12, LANE = 38, TOP = 26, BAR = 18;
  // The whole of a scene takes so long to play; a stretch between two events at least so long; and each short event is held.
  const WHOLE_MS = 12000, STRETCH_MS = 60, HOLD_MS = 450, ALL_HOLDS_MS = 20000, STEP_MS = 900;
  const calm = matchMedia("(prefers-reduced-motion: reduce)");
  const slug = (text) => text.toLowerCase().replace(/[^a-z0-9.µ]+/g, "-").replace(/^-|-$/g, "");

  function made(name, attributes = {}, ...children) {
    const svg = ["svg", "g", "rect", "line", "circle", "text", "path"].includes(name);
    const element = svg ? document.createElementNS(NS, name) : document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    element.append(...children);
    return element;
  }

  function round(value) { // to a step of 1, 2 or 5
    const power = 10 ** Math.floor(Math.log10(value));
    return [1, 2, 5, 10].find((step) => step * power >= value) * power;
  }

  document.querySelectorAll("figure[data-player]").forEach((figure) => {
    const data = JSON.parse(figure.querySelector("script").textContent);
    const { words, lanes, states, settings } = data;
    const name = figure.dataset.player;
    let chosen = [], rows = [], used = [], events = [], holds = new Map(), end = 1, at = 0;
    let playing = false, hold = 0, last = 0;

    // ---- what is shown ----
    const svg = made("svg", { class: "ffi-player-scene", role: "img" });
    const said = made("p", { class: "ffi-player-said" });
    const legend = made("ul", { class: "ffi-player-legend" });
    const play = made("button", { type: "button", class: "ffi-player-play" });
    const back = made("button", { type: "button", "aria-label": words.back, title: words.back }, "◀");
    const on = made("button", { type: "button", "aria-label": words.on, title: words.on }, "▶");
    const slider = made("input", { type: "range", min: 0, max: 400, value: 0, "aria-label": words.time });
    const boxes = settings.map(([title, values]) => {
      const box = made("select");
      values.forEach((value) => box.add(new Option(value)));
      return [made("label", {}, title + " ", box), box];
    });
    const tools = made("div", { class: "ffi-player-tools", role: "group", "aria-label": words.player },
      ...boxes.map(([label]) => label), made("span", { class: "ffi-player-keys" }, play, back, on, slider));
    let veil, cursor, token, clock;

    const x = (time) => LEFT + (time / end) * (RIGHT - LEFT);
    const y = (lane) => TOP + used.indexOf(lane) * LANE;
    const kind = (row) => states[row[1]][1];
    const ms = (time) => (time / 1000).toFixed(end < 20000 ? 3 : 2) + " ms";
    const isOn = ([, , begin, until], time) => (begin <= time && time < until) || (begin === time && until === time);
    const now = (lane) => rows.filter((row) => row[0] === lane && isOn(row, at));

    function bar(row) {
      const [lane, , begin, until] = row, top = y(lane);
      if (kind(row) === "mark") {
        return made("path", { class: "ffi-mark", d: `M ${x(begin)} ${top + BAR / 2} v ${-BAR} l 5 -5 h -10 l 5 5` });
      }
      const thin = kind(row) === "still";
      return made("rect", {
        class: `ffi-${kind(row)}`, x: x(begin), width: Math.max(2, x(until) - x(begin)),
        y: top - (thin ? 2 : BAR / 2), height: thin ? 4 : BAR,
      });
    }

    function draw() {
      const height = TOP + used.length * LANE + 18, bottom = height - 34;
      svg.setAttribute("viewBox", `0 0 ${WIDTH} ${height}`);
      const parts = used.map((lane) => made("text", { class: "ffi-lane", x: 4, y: y(lane) + 4 }, lanes[lane]));
      parts.push(...used.map((lane) => made("line", { class: "ffi-rail", x1: LEFT, x2: RIGHT, y1: y(lane), y2: y(lane) })));
      for (let tick = 0, step = round(end / TICKS); tick <= end; tick += step) {
        parts.push(made("line", { class: "ffi-rail", x1: x(tick), x2: x(tick), y1: bottom, y2: bottom + 5 }));
        parts.push(made("text", { class: "ffi-tick", x: x(tick), y: bottom + 18 }, `${+(tick / 1000).toPrecision(4)}`));
      }
      parts.push(made("text", { class: "ffi-tick", x: LEFT - 24, y: bottom + 18 }, "ms"));
      // What is short stands above what is long, and marks above all.
      const order = [...rows].sort((a, b) => (kind(a) === "mark") - (kind(b) === "mark") || b[3] - b[2] - (a[3] - a[2]));
      parts.push(...order.map(bar));
      veil = made("rect", { class: "ffi-veil", y: TOP - LANE / 2, height: bottom - TOP + LANE / 2 });
      cursor = made("line", { class: "ffi-cursor", y1: TOP - LANE / 2, y2: bottom + 4 });
      clock = made("text", { class: "ffi-clock", y: 10 });
      token = made("g", { class: "ffi-token" }, made("circle", { r: 13 }), made("text", { y: 4 }, words.token));
      svg.replaceChildren(...parts, veil, cursor, clock, token);
      const there = [...new Set(rows.map((row) => row[1]))].sort((a, b) => a - b);
      legend.replaceChildren(...there.map((state) =>
        made("li", {}, made("span", { class: `ffi-swatch ffi-${states[state][1]}` }), states[state][0])));
    }

    // ---- where it stands ----
    function inWords() {
      const parts = used.map((lane) => {
        const found = now(lane).map((row) => states[row[1]][0]);
        return `${lanes[lane]}: ${[...new Set(found)].join(", ") || words.nothing}`;
      });
      return `${ms(at)}. ${parts.join("; ")}.`;
    }

    function place(isMoving) {
      const place_ = x(at);
      veil.setAttribute("x", place_);
      veil.setAttribute("width", Math.max(0, RIGHT + 4 - place_));
      for (const end_ of ["x1", "x2"]) cursor.setAttribute(end_, place_);
      clock.setAttribute("x", Math.min(place_, RIGHT - 20));
      clock.textContent = ms(at);
      const holders = rows.filter((row) => kind(row) === "has" && isOn(row, at)).sort((a, b) => b[2] - a[2]);
      const before = rows.filter((row) => kind(row) === "has" && row[2] <= at).sort((a, b) => b[2] - a[2]);
      const holder = holders[0] ?? before[0];
      token.style.display = holder ? "" : "none";
      token.classList.toggle("ffi-free", !holders.length);
      // A property of CSS, so that it glides (player.css); where motion is not wanted, it jumps.
      if (holder) token.style.transform = `translate(${place_}px, ${y(holder[0])}px)`;
      slider.value = Math.round((at / end) * 400);
      const text = inWords();
      slider.setAttribute("aria-valuetext", text);
      // While it plays, a screen reader is left alone.
      said.setAttribute("aria-live", isMoving ? "off" : "polite");
      said.textContent = text;
      svg.setAttribute("aria-label", `${chosen.join(", ")}. ${text}`);
    }

    function keep() {
      const address = `#${name}=${[...chosen.map(slug), Math.round(at)].join(",")}`;
      try { history.replaceState(null, "", address); } catch { /* a browser that forbids it for files */ }
    }

    function choose(wanted, time = 0) {
      const keys = Object.keys(data.scenes).map((key) => key.split("|"));
      const fits = (key) => key.filter((value, number) => value === wanted[number]).length;
      // What was not measured together is not shown: the nearest that was stands in its place.
      chosen = keys.reduce((best, key) => (fits(key) > fits(best) ? key : best));
      boxes.forEach(([, box], number) => { box.value = chosen[number]; });
      rows = data.scenes[chosen.join("|")];
      used = lanes.map((_, lane) => lane).filter((lane) => rows.some((row) => row[0] === lane));
      end = Math.max(1, ...rows.map((row) => row[3]));
      events = [...new Set([0, end, ...rows.flatMap((row) => [row[2], row[3]])])].sort((a, b) => a - b);
      const short = rows.filter((row) => row[2] === row[3]).map((row) => row[2]);
      holds = new Map(short.map((time_) => [time_, Math.min(HOLD_MS, ALL_HOLDS_MS / new Set(short).size)]));
      at = Math.min(time, end);
      draw();
      pause();
    }

    // ---- playing ----
    function label() { play.textContent = playing ? words.pause : words.play; }
    function pause() { playing = false; label(); place(false); }
    function stop() { if (playing) { pause(); keep(); } }

    function tick(time) {
      if (!playing) return;
      let left = Math.min(time - last, 100);
      last = time;
      while (left > 0 && at < end) {
        if (hold > 0) { const part = Math.min(hold, left); hold -= part; left -= part; continue; }
        const next = events.find((event) => event > at);
        const from = events.findLast((event) => event <= at);
        const speed = (next - from) / Math.max(STRETCH_MS, ((next - from) / end) * WHOLE_MS);
        const needed = calm.matches ? STEP_MS : (next - at) / speed;
        if (calm.matches) { at = next; hold = STEP_MS; } // from event to event
        else if (needed <= left) { at = next; left -= needed; hold = holds.get(at) ?? 0; }
        else { at += speed * left; left = 0; }
      }
      place(true);
      if (at >= end) stop();
      else requestAnimationFrame(tick);
    }

    play.addEventListener("click", () => {
      if (playing) return stop();
      if (at >= end) at = 0;
      playing = true;
      hold = calm.matches ? STEP_MS : 0;
      last = performance.now();
      label();
      requestAnimationFrame(tick);
    });
    function step(time) { at = time ?? at; pause(); keep(); }
    back.addEventListener("click", () => step(events.findLast((event) => event < at)));
    on.addEventListener("click", () => step(events.find((event) => event > at)));
    slider.addEventListener("input", () => { at = (slider.value / 400) * end; pause(); });
    slider.addEventListener("change", keep);
    boxes.forEach(([, box], number) => box.addEventListener("change", () => {
      // The box that was changed decides, if not everything goes together.
      const wanted = boxes.map(([, other]) => other.value);
      const keys = Object.keys(data.scenes).map((key) => key.split("|"));
      const whole = keys.some((key) => key.every((value, place_) => value === wanted[place_]));
      choose(whole ? wanted : keys.find((key) => key[number] === box.value));
      keep();
    }));

    function addressed() {
      if (!location.hash.startsWith(`#${name}=`)) return false;
      const parts = decodeURIComponent(location.hash.slice(name.length + 2)).split(",");
      const wanted = settings.map(([, values], number) => values.find((value) => slug(value) === parts[number]) ?? chosen[number]);
      choose(wanted, Number(parts[settings.length]) || 0);
      figure.scrollIntoView({ block: "center" });
      return true;
    }

    figure.querySelectorAll("img").forEach((image) => image.remove());
    figure.classList.replace("ffi-figure", "ffi-player");
    figure.append(tools, svg, legend, said);
    choose(data.first);
    addEventListener("hashchange", addressed);
    // Behind the theme, which goes to where the reader was.
    addEventListener("load", () => setTimeout(addressed, 100));
  });
});
