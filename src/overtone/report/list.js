// The index of cases and the list. The index is read when the first case is asked for: a long run's takes a while.
// ── the index ──────────────────────────────────────────────────────────────────────────────────────────────────

let index = null;
let cases = [];
const numberOf = new Map();

function readIndex() {
  if (index) return;
  index = json("index");
  cases = index.cases.map((row, at) => ({
    at, id: row[0], words: row[1], style: row[2], dimension: row[3], cue: row[4], categories: row[5], flags: row[7],
    any: row[7].reduce((a, b) => a | b, 0),
    text: [row[0], row[1], index.cues[row[4]], index.styles[row[2]], index.topics[row[6]]].join("\n").toLowerCase(),
  }));
  for (const c of cases) numberOf.set(c.id, c.at);
  makeMenus();
  filter();
}

let matches = [];
let under = null; // the cases under a number: {name, has: by case}
let at = 0; // position in matches of the row the keyboard is on
let opened = null; // the opened case's number
let deepTexts = null; // texts of questions and replies by case, once asked for

function filter() {
  const words = byId("q").value.toLowerCase().split(/\s+/).filter(Boolean);
  const run = selects.run && selects.run.value !== "" ? Number(selects.run.value) : null;
  const wanted = Object.entries(selects).filter(([key, s]) => key !== "run" && s.value !== "").map(([key, s]) => [filters[key], s.value]);
  const deep = byId("deep").checked && deepTexts;
  const inside = under && under.has;
  matches = cases.filter((c) => {
    if (inside && !inside[c.at]) return false;
    if (run !== null && !c.flags[run]) return false;
    const flags = run === null ? c.any : c.flags[run];
    return wanted.every(([f, want]) => (f.keepCase ? f.keepCase(c, want) : f.keep(flags, want)))
      && words.every((w) => c.text.includes(w) || (deep && deepTexts[c.at].includes(w)));
  });
  drawChips();
  at = Math.max(0, matches.findIndex((c) => c.at === opened));
  byId("count").textContent = matches.length.toLocaleString("en") + " of " + cases.length.toLocaleString("en") + " cases";
  listBox.scrollTop = Math.max(0, at * ROW - listBox.clientHeight / 2);
  draw();
}

let timer = 0;
const soon = () => { clearTimeout(timer); timer = setTimeout(filter, 80); };
byId("filters").addEventListener("input", (event) => (event.target.id === "q" ? soon() : event.target.id === "deep" ? readAll() : filter()));
byId("filters").addEventListener("reset", () => { showUnder(null); setTimeout(filter); });
byId("filters").addEventListener("submit", (event) => event.preventDefault());

/** Read all chunks once, a few at a time so that the page stays alive, and keep their texts for the search. */
function readAll() {
  if (deepTexts || !byId("deep").checked) return filter();
  const texts = [];
  const count = Math.ceil(cases.length / index.chunk);
  let chunk = 0;
  const step = () => {
    const until = performance.now() + 12;
    for (; chunk < count && performance.now() < until; chunk++) {
      for (const found of json("chunk-" + chunk)) {
        texts.push(found.items.flatMap((item) => [item.q || "", ...(item.o || []).map((o) => o[1]), ...(item.r || []),
          ...item.a.flatMap((a) => [...(a.t || []), a.f || "", ...(a.y || []).map(([, why]) => why)])]).join("\n").toLowerCase());
      }
    }
    if (chunk < count) {
      byId("count").textContent = "reading " + Math.round((100 * chunk) / count) + " %";
      setTimeout(step);
    } else {
      deepTexts = texts;
      filter();
    }
  };
  step();
}

// ── the list: only the rows in sight exist ─────────────────────────────────────────────────────────────────────

const listBox = byId("list");
const rows = byId("rows");

function marks(c) {
  const run = selects.run && selects.run.value !== "" ? c.flags[Number(selects.run.value)] : c.any;
  const mark = (letter, name, right, wrong) => {
    if (!(run & (right | wrong))) return null;
    const bad = run & wrong;
    return attrs(el("b", bad ? "no" : "ok", letter + (bad ? "✗" : "✓")), { "aria-label": name + (bad ? ": some wrong" : ": right") });
  };
  return el("span", "marks", mark("W", "words", FLAG.heard, FLAG.misheard), mark("V", "voice", FLAG.voiceRight, FLAG.voiceWrong),
    mark("R", "reasoning", FLAG.reasonRight, FLAG.reasonWrong), run & FLAG.failed ? attrs(el("b", "no", "!"), { "aria-label": "a failure" }) : null);
}

function draw() {
  attrs(rows, { role: "presentation" }).style.height = matches.length * ROW + "px";
  const first = Math.max(0, Math.floor(listBox.scrollTop / ROW) - 4);
  const last = Math.min(matches.length, Math.ceil((listBox.scrollTop + listBox.clientHeight) / ROW) + 4);
  const shown = [];
  for (let i = first; i < last; i++) {
    const c = matches[i];
    const row = el("div", "row" + (i === at ? " at" : ""), el("div", "w", visible(c.words || c.id)),
      el("div", "s", el("span", "", visible([index.cues[c.cue] || "no cue", index.styles[c.style], c.id].filter(Boolean).join(" · "))), marks(c)));
    attrs(row, { role: "option", id: "row-" + c.at, "aria-selected": String(c.at === opened), "aria-setsize": matches.length, "aria-posinset": i + 1 });
    row.style.top = i * ROW + "px";
    row.addEventListener("click", () => { at = i; go(c.at); });
    shown.push(row);
  }
  rows.replaceChildren(...shown);
  if (matches.length) listBox.setAttribute("aria-activedescendant", "row-" + matches[at].at);
  else listBox.removeAttribute("aria-activedescendant");
}

function move(to) {
  if (!matches.length) return;
  at = Math.max(0, Math.min(matches.length - 1, to));
  if (at * ROW < listBox.scrollTop) listBox.scrollTop = at * ROW;
  else if ((at + 1) * ROW > listBox.scrollTop + listBox.clientHeight) listBox.scrollTop = (at + 1) * ROW - listBox.clientHeight;
  draw();
}

let drawing = false;
listBox.addEventListener("scroll", () => {
  if (drawing) return;
  drawing = true;
  requestAnimationFrame(() => { drawing = false; draw(); });
});
addEventListener("resize", () => { if (index) draw(); });
listBox.addEventListener("keydown", (event) => {
  const page = Math.max(1, Math.floor(listBox.clientHeight / ROW) - 1);
  const to = { ArrowDown: at + 1, ArrowUp: at - 1, PageDown: at + page, PageUp: at - page, Home: 0, End: matches.length - 1 }[event.key];
  if (to !== undefined) move(to);
  else if ((event.key === "Enter" || event.key === " ") && matches.length) go(matches[at].at);
  else return;
  event.preventDefault();
});
byId("q").addEventListener("keydown", (event) => {
  if (event.key === "ArrowDown") { listBox.focus(); event.preventDefault(); }
});
