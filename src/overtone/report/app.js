"use strict";
// The case browser. Text of models and data is hostile: it only ever becomes textContent, never markup.
(function () {
  const byId = (id) => document.getElementById(id);
  const json = (id) => JSON.parse(byId(id).textContent);
  const FLAG = { voiceRight: 1, voiceWrong: 2, reasonRight: 4, reasonWrong: 8, heard: 16, misheard: 32, failed: 64, unread: 128, spoke: 256 };
  const ROW = 64; // height of a list row, as in app.css

  /** An element with a class, attributes and children; strings become text. */
  function el(tag, cls, ...children) {
    const node = document.createElement(tag);
    if (cls) node.className = cls;
    for (const child of children.flat()) if (child !== null && child !== undefined && child !== "") node.append(child);
    return node;
  }

  function attrs(node, values) {
    for (const [name, value] of Object.entries(values)) node.setAttribute(name, value);
    return node;
  }

  function visible(text) { // control and direction-changing characters are shown, not obeyed
    return text.replace(/[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f\u200e\u200f\u2028-\u202e\u2066-\u2069]/g,
      (c) => "\\u" + c.charCodeAt(0).toString(16).padStart(4, "0"));
  }

  // ── theme ──────────────────────────────────────────────────────────────────────────────────────────────────────

  const root = document.documentElement;
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const store = { // storage can be forbidden for pages from disk
    get: () => { try { return localStorage.getItem("overtone-theme"); } catch { return null; } },
    set: (v) => { try { localStorage.setItem("overtone-theme", v); } catch { /* the choice lasts as long as the page */ } },
  };
  const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : dark.matches);
  const themeButton = byId("theme");
  function showTheme() {
    themeButton.textContent = isDark() ? "Light" : "Dark";
    themeButton.setAttribute("aria-label", "Switch to " + (isDark() ? "light" : "dark") + " colours");
  }
  if (["light", "dark"].includes(store.get())) root.dataset.theme = store.get();
  themeButton.hidden = false;
  themeButton.addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    store.set(root.dataset.theme);
    showTheme();
  });
  dark.addEventListener("change", showTheme);
  showTheme();

  // ── navigation and the cue maps ────────────────────────────────────────────────────────────────────────────────

  const links = [...document.querySelectorAll("nav a")];
  const seen = new IntersectionObserver((entries) => {
    for (const entry of entries) {
      if (!entry.isIntersecting) continue;
      for (const link of links) {
        if (link.hash === "#" + entry.target.id) link.setAttribute("aria-current", "true");
        else link.removeAttribute("aria-current");
      }
    }
  }, { rootMargin: "-20% 0px -70% 0px" });
  document.querySelectorAll("main > section").forEach((section) => seen.observe(section));

  const picker = byId("map");
  if (picker) {
    const show = () => document.querySelectorAll(".map").forEach((map) => { map.hidden = map.id !== picker.value; });
    picker.addEventListener("change", show);
    show();
  }

  // ── the index and its filters ──────────────────────────────────────────────────────────────────────────────────

  const index = json("index");
  if (!index.cases.length) return;
  byId("browser").hidden = false;
  const cases = index.cases.map((row, at) => ({
    at, id: row[0], words: row[1], style: row[2], dimension: row[3], cue: row[4], categories: row[5], flags: row[7],
    any: row[7].reduce((a, b) => a | b, 0),
    text: [row[0], row[1], index.cues[row[4]], index.styles[row[2]], index.topics[row[6]]].join("\n").toLowerCase(),
  }));
  const numberOf = new Map(cases.map((c) => [c.id, c.at]));
  const level = (name, right, wrong) => ({ name, options: [["right", "all right"], ["wrong", "some wrong"]],
    keep: (flags, want) => (want === "wrong" ? (flags & wrong) !== 0 : (flags & right) !== 0 && !(flags & wrong)) });
  const list = (name, names, field) => ({ name, options: names.map((n, i) => [String(i), n || "none"]).sort((a, b) => a[1].localeCompare(b[1])),
    keepCase: (c, want) => (Array.isArray(c[field]) ? c[field].includes(Number(want)) : c[field] === Number(want)) });
  const filters = {
    run: { name: "Run", options: index.runs.map((n, i) => [String(i), n]) },
    dimension: list("Dimension", index.dimensions, "dimension"),
    category: list("Sub-task", index.categories, "categories"),
    cue: list("Cue", index.cues, "cue"),
    style: list("Style", index.styles, "style"),
    words: level("Transcript", FLAG.heard, FLAG.misheard),
    voice: level("Voice questions", FLAG.voiceRight, FLAG.voiceWrong),
    reasoning: level("Reasoning", FLAG.reasonRight, FLAG.reasonWrong),
    state: { name: "Trouble", options: [["failed", "failed or pending"], ["unread", "refused or unreadable"], ["spoke", "spoken reply"]],
      keep: (flags, want) => (flags & FLAG[want]) !== 0 },
  };
  filters.words.options = [["right", "no errors"], ["wrong", "with errors"]];
  const selects = {};
  for (const [key, filter] of Object.entries(filters)) {
    if (filter.options.length < 2) continue;
    const select = attrs(el("select", "", new Option("any", "")), { name: key, id: "f-" + key });
    for (const [value, name] of filter.options) select.append(new Option(name, value));
    selects[key] = select;
    byId("selects").append(el("label", "", filter.name, select));
  }

  let matches = cases;
  let at = 0; // position in matches of the row the keyboard is on
  let opened = null; // the opened case's number
  let deepTexts = null; // texts of questions and replies by case, once asked for

  function filter() {
    const words = byId("q").value.toLowerCase().split(/\s+/).filter(Boolean);
    const run = selects.run && selects.run.value !== "" ? Number(selects.run.value) : null;
    const wanted = Object.entries(selects).filter(([key, s]) => key !== "run" && s.value !== "").map(([key, s]) => [filters[key], s.value]);
    const deep = byId("deep").checked && deepTexts;
    matches = cases.filter((c) => {
      if (run !== null && !c.flags[run]) return false;
      const flags = run === null ? c.any : c.flags[run];
      return wanted.every(([f, want]) => (f.keepCase ? f.keepCase(c, want) : f.keep(flags, want)))
        && words.every((w) => c.text.includes(w) || (deep && deepTexts[c.at].includes(w)));
    });
    at = Math.max(0, matches.findIndex((c) => c.at === opened));
    byId("count").textContent = matches.length.toLocaleString("en") + " of " + cases.length.toLocaleString("en") + " cases";
    listBox.scrollTop = Math.max(0, at * ROW - listBox.clientHeight / 2);
    draw();
  }

  let timer = 0;
  const soon = () => { clearTimeout(timer); timer = setTimeout(filter, 80); };
  byId("filters").addEventListener("input", (event) => (event.target.id === "q" ? soon() : event.target.id === "deep" ? readAll() : filter()));
  byId("filters").addEventListener("reset", () => setTimeout(filter));
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
  addEventListener("resize", draw);
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
  addEventListener("keydown", (event) => {
    if (event.key === "Escape" && byId("case").contains(document.activeElement)) listBox.focus();
  });

  // ── one case ───────────────────────────────────────────────────────────────────────────────────────────────────

  let chunkRead = [-1, null];
  let urls = []; // blob URLs of the opened case

  function contentOf(number) {
    const chunk = Math.floor(number / index.chunk);
    if (chunkRead[0] !== chunk) chunkRead = [chunk, json("chunk-" + chunk)];
    return chunkRead[1][number % index.chunk];
  }

  /** A player for a sound: a relative link, "#m7" for a block inside this file, or "!" and the reason there is none. */
  function player(source, name, stays) {
    if (!source) return null;
    if (source[0] === "!") return el("p", "quiet-note", "No sound: " + visible(source.slice(1)) + ".");
    const audio = attrs(el("audio"), { controls: "", preload: "none", "aria-label": name });
    if (source[0] === "#") {
      const block = byId(source.slice(1));
      const load = () => {
        if (audio.src) return;
        const bytes = Uint8Array.from(atob(block.textContent), (c) => c.charCodeAt(0));
        audio.src = URL.createObjectURL(new Blob([bytes], { type: block.dataset.type }));
        if (!stays) urls.push(audio.src); // those of a case go when another is opened
      };
      load();
    } else audio.src = source;
    audio.addEventListener("error", () => audio.replaceWith(el("p", "quiet-note", "This sound cannot be played: the file is not where it was, or the browser does not know its format.")));
    audio.addEventListener("play", () => document.querySelectorAll("audio").forEach((other) => other !== audio && other.pause()));
    return audio;
  }

  const who = (a) => [index.runs.length > 1 ? index.runs[a.r] : "", index.conditions[a.c], a.n ? "repeat " + (a.n + 1) : ""].filter(Boolean).join(" · ");
  const percent = (x) => (100 * x).toFixed(1);

  /** The words of both sides aligned: [kind, word] with kind "=", "-" (missed) or "+" (added). */
  function diff(reference, heard) {
    const a = reference.split(/\s+/).filter(Boolean), b = heard.split(/\s+/).filter(Boolean);
    if (a.length * b.length > 250000) return [["-", reference], ["+", heard]];
    const plain = (w) => w.toLowerCase().replace(/[^\p{L}\p{N}]+/gu, "") || w;
    const x = a.map(plain), y = b.map(plain), width = y.length + 1;
    const cost = new Uint16Array((x.length + 1) * width);
    for (let i = x.length; i >= 0; i--) for (let j = y.length; j >= 0; j--) {
      cost[i * width + j] = i === x.length ? y.length - j : j === y.length ? x.length - i
        : Math.min(cost[(i + 1) * width + j + 1] + (x[i] === y[j] ? 0 : 1), 1 + Math.min(cost[(i + 1) * width + j], cost[i * width + j + 1]));
    }
    const out = [];
    let missed = [], added = []; // neighbours stand together: all that was missed, then all that came instead
    const flush = () => {
      if (missed.length) out.push(["-", missed.join(" ")]);
      if (added.length) out.push(["+", added.join(" ")]);
      missed = [];
      added = [];
    };
    for (let i = 0, j = 0; i < x.length || j < y.length;) {
      const here = cost[i * width + j];
      if (i < x.length && j < y.length && here === cost[(i + 1) * width + j + 1] + (x[i] === y[j] ? 0 : 1)) {
        if (x[i] === y[j]) {
          flush();
          out.push(["=", b[j]]);
        } else {
          missed.push(a[i]);
          added.push(b[j]);
        }
        i++;
        j++;
      } else if (i < x.length && here === 1 + cost[(i + 1) * width + j]) missed.push(a[i++]);
      else added.push(b[j++]);
    }
    flush();
    return out;
  }

  function trouble(a) {
    const parts = [];
    if (a.s) parts.push(el("p", "no", a.s === "failed" ? "Failed: " + visible(a.f || "unknown") : "Not answered yet."));
    if (a.rf) parts.push(el("p", "no", "Marked as a refusal by the endpoint."));
    for (const note of a.no || []) parts.push(el("p", "quiet-note", "Note: " + visible(note)));
    return parts;
  }

  function saidBy(a, ...more) {
    return el("div", "said", el("div", "by", el("span", "", visible(who(a))), more.filter((m) => m)));
  }

  function transcript(item) {
    const reference = (item.r || [""])[0];
    const cards = item.a.map((a) => {
      const card = saidBy(a, a.w === undefined ? null : el("span", "chip " + (a.w === 0 ? "ok" : "no"), "WER " + percent(a.w)));
      if (a.t) {
        const line = el("p");
        for (const [kind, word] of diff(reference, a.t[a.t.length - 1])) line.append(kind === "=" ? visible(word) : el(kind === "-" ? "del" : "ins", "", visible(word)), " ");
        if (!a.t[a.t.length - 1].trim()) line.append(el("i", "", "(empty)"));
        card.append(line);
      }
      card.append(...trouble(a));
      return card;
    });
    return el("div", "side", el("div", "said ref", el("div", "by", "True words"), el("p", "", visible(reference))), cards);
  }

  function question(item) {
    const box = el("div", "question", el("h4", "", visible(index.categories[item.c]) + (item.p === "fixed" ? " (answer does not move)" : "") + ": " + visible(item.q || "")));
    const options = el("ul", "options");
    for (const [letter, text, provenance] of item.o || []) {
      const tags = item.a.filter((a) => a.ch === letter).map((a) => el("span", "tag " + (a.ok ? "ok" : "no"), (a.ok ? "✓ " : "✗ ") + visible(who(a))));
      const side = el("span", "quiet-note", [letter === item.g ? "right answer" : "", provenance ? "the " + visible(provenance) + " reading" : ""].filter(Boolean).join(" · "));
      options.append(el("li", letter === item.g ? "gold" : "", el("b", "", visible(letter)), el("span", "", visible(text)), side, tags.length ? el("span", "tags", tags) : null));
    }
    box.append(options);
    for (const a of item.a.filter((found) => !found.ch)) {
      const card = saidBy(a, a.st ? el("span", "chip no", visible(a.st)) : null);
      if (a.t) card.append(el("p", "", visible(a.t.join("\n\n"))));
      card.append(...trouble(a));
      box.append(card);
    }
    const told = item.a.filter((a) => a.ch && a.t);
    if (told.length) box.append(el("details", "", el("summary", "", "In the model’s words"), told.map((a) => { const card = saidBy(a); card.append(el("p", "", visible(a.t.join("\n\n"))), ...trouble(a)); return card; })));
    return box;
  }

  /** What the user said in a turn of a dialogue. */
  function said(item, turn) {
    return el("p", "quiet-note", "Turn " + (turn + 1) + ": “" + visible((item.t[turn] || ["", ""])[1]) + "”");
  }

  /** A score on its own scale, with how it was measured on hover. */
  function score(a, metric, value) {
    const [label, share, , signed] = index.about[metric];
    return attrs(el("span", "score", visible(label) + "\u00a0", el("b", "", share ? percent(value) + "\u00a0%" : String(Math.round(value * 100) / 100))), { title: signed[a.r] });
  }

  function measures(a, scores) {
    const line = (some) => el("p", "scores", some.map(([metric, value]) => score(a, metric, value)));
    if (scores.length < 5) return line(scores);
    const first = scores.filter(([metric]) => ["semsim", "bertscore", "expressiveness"].includes(index.metrics[metric]));
    const rest = scores.filter((one) => !first.includes(one));
    return el("div", "", line(first), el("details", "", el("summary", "", rest.length + " more measures"), line(rest)));
  }

  const rank = new Map(index.about.map(([label]) => label).map((label, at, all) => [label, all.indexOf(label)]));
  const order = (a, b) => rank.get(index.about[a][0]) - rank.get(index.about[b][0]) || index.about[a][2].localeCompare(index.about[b][2]);

  /** What judges said of a reply, dimension by dimension, with their reasons. */
  function verdicts(a) {
    const last = (a.m || []).at(-1) || [];
    const found = new Map();
    for (const [metric, value] of last) if (index.about[metric][2]) found.set(metric, [value, ""]);
    for (const [metric, why] of a.y || []) found.set(metric, [(found.get(metric) || [null])[0], why]);
    if (!found.size) return [];
    return [el("ul", "why", [...found].sort((one, other) => order(one[0], other[0])).map(([metric, [value, why]]) => {
      const [label, share, judge, signed] = index.about[metric];
      const told = value === null ? "no value" : share ? (value === 1 ? "yes" : value === 0 ? "no" : percent(value) + " %") : String(Math.round(value * 100) / 100);
      return attrs(el("li", "", el("b", "", visible(label) + " " + told), " ", el("span", "quiet-note", visible(judge)), why ? el("q", "", visible(why)) : null), { title: signed[a.r] });
    }))];
  }

  function signatures(a) {
    const used = new Set([...(a.m || []).flat().map(([metric]) => metric), ...(a.y || []).map(([metric]) => metric)]);
    return el("details", "", el("summary", "", "How it was measured"), el("ul", "mono", [...used].map((metric) => el("li", "", visible(index.about[metric][3][a.r])))));
  }

  function replies(item) {
    const side = el("div", "side");
    if (item.tr) {
      const card = el("div", "said ref", el("div", "by", "Reference replies"));
      item.tr.forEach(([reference, source], turn) => {
        card.append(said(item, turn), el("p", "", visible(reference)));
        const sound = player(source, "Reference reply to turn " + (turn + 1));
        if (sound) card.append(sound);
      });
      side.append(card);
    }
    for (const reference of item.r || []) side.append(el("div", "said ref", el("div", "by", "Reference reply"), el("p", "", visible(reference)), player(item.ra, "Reference reply")));
    for (const a of item.a) {
      const card = saidBy(a, a.la ? el("span", "quiet-note", a.la.toFixed(2) + " s") : null);
      (a.t || []).forEach((text, turn) => {
        if (item.t.length > 1) card.append(said(item, turn));
        card.append(el("p", "", text.trim() ? visible(text) : el("i", "", "(empty)")));
        const sound = a.au && player(a.au[turn], "Reply of " + who(a));
        if (sound) card.append(sound);
        const scores = (a.m || [])[turn] || [];
        const plain = scores.filter(([metric]) => !index.about[metric][2]);
        if (plain.length) card.append(measures(a, plain));
      });
      card.append(...verdicts(a));
      if (a.m || a.y) card.append(signatures(a));
      card.append(...trouble(a));
      side.append(card);
    }
    return side;
  }

  function open(number, focus) {
    const c = cases[number];
    const content = contentOf(number);
    opened = number;
    urls.forEach((url) => URL.revokeObjectURL(url));
    urls = [];
    const place = matches.findIndex((m) => m.at === number);
    if (place >= 0) at = place;
    const step = (by, name) => {
      const button = attrs(el("button", "quiet", name), { type: "button" });
      button.disabled = place < 0 || !matches[place + by];
      button.addEventListener("click", () => go(matches[place + by].at));
      return button;
    };
    const close = attrs(el("button", "quiet", "Back to list"), { type: "button" });
    close.addEventListener("click", () => listBox.focus());
    const chips = [index.cues[c.cue] || "no cue", index.styles[c.style] + (/^(changed|steady)$/.test(index.styles[c.style]) ? " dialogue" : " style"), index.dimensions[c.dimension], index.topics[index.cases[number][6]],
      content.items.some((item) => item.u) ? "cue not validated" : ""].filter(Boolean);
    const view = [
      el("div", "case-top", el("h3", "", visible(c.id)), el("div", "go", step(-1, "Previous"), step(1, "Next"), close)),
      el("ul", "chips", chips.map((chip) => el("li", "chip", visible(chip)))),
    ];
    const sounds = new Map();
    for (const item of content.items) for (const [source, words] of item.t) if (source && !sounds.has(source)) sounds.set(source, words);
    if (c.words) view.push(el("p", "words", "“" + visible(c.words) + "”"));
    for (const [source, words] of sounds) {
      if (sounds.size > 1 && words !== c.words) view.push(el("p", "words", "“" + visible(words) + "”"));
      view.push(player(source, "Clip: " + visible(words || c.id)));
    }
    const context = content.items.find((item) => item.x);
    if (context) view.push(el("p", "quiet-note", "Before it: " + visible(context.x)));
    const part = (title, items, build) => { if (items.length) view.push(el("h3", "", title), ...items.map(build)); };
    const choose = content.items.filter((i) => i.k === "choose");
    part("What was heard: the words", content.items.filter((i) => i.k === "transcribe"), transcript);
    part("What was heard: the voice", choose.filter((i) => i.l === 1), question);
    part("What was made of it", choose.filter((i) => i.l !== 1), question);
    part("What was replied", content.items.filter((i) => i.k !== "transcribe" && i.k !== "choose"), replies);
    const article = byId("case");
    article.setAttribute("aria-label", "Case " + visible(c.id));
    article.replaceChildren(...view.filter(Boolean));
    move(at);
    if (focus) {
      article.focus({ preventScroll: true });
      const box = article.getBoundingClientRect();
      if (box.top < 0 || box.top > innerHeight * 0.5) article.scrollIntoView();
    }
  }

  // ── players of the worst and best replies, made when they come into sight ──────────────────────────────────────

  const names = ["Clip", "Reply", "Reference reply"];
  const arrive = new IntersectionObserver((entries) => {
    for (const entry of entries) {
      if (!entry.isIntersecting) continue;
      arrive.unobserve(entry.target);
      const [card, which] = entry.target.dataset.sound.split("-").map(Number);
      const sound = player(index.ends[card][which], names[which], true);
      if (sound) entry.target.append(sound);
    }
  }, { rootMargin: "400px" });
  document.querySelectorAll("[data-sound]").forEach((place) => arrive.observe(place));

  // ── links: #case=ID opens a case, #cue=SLUG shows a cue's cases ────────────────────────────────────────────────

  function go(number) {
    const hash = "#case=" + encodeURIComponent(cases[number].id);
    if (location.hash === hash) open(number, true);
    else location.hash = hash;
  }

  function follow() {
    const [, key, raw] = /^#(case|cue)=(.*)$/.exec(location.hash) || [];
    if (!key) return;
    let value = raw;
    try { value = decodeURIComponent(raw); } catch { /* a broken link names nothing; say so below */ }
    if (key === "cue" && selects.cue) {
      byId("filters").reset();
      const found = index.cues.indexOf(value === "neutral" ? "" : value);
      selects.cue.value = found < 0 ? "" : String(found);
      setTimeout(() => { filter(); byId("cases").scrollIntoView(); listBox.focus({ preventScroll: true }); });
    } else if (numberOf.has(value)) open(numberOf.get(value), true);
    else byId("case").replaceChildren(el("p", "empty", "This report has no case “" + visible(value) + "”."));
  }

  addEventListener("hashchange", follow);
  filter();
  follow();
  root.dataset.ready = "yes";
})();
