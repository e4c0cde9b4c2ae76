// One case: what was heard, answered and said.
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
  audio.addEventListener("error", () => audio.replaceWith(el("p", "quiet-note", "This sound cannot be played: the file was moved or deleted, or the browser does not support its format.")));
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
    const card = saidBy(a, a.w === undefined ? null : el("span", "chip " + (a.w === 0 ? "ok" : "no"), (a.wn || "WER") + " " + percent(a.w)));
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
  for (const [letter, text, provenance, sound] of item.o || []) {
    const tags = item.a.filter((a) => a.ch === letter).map((a) => el("span", "tag " + (a.ok ? "ok" : "no"), (a.ok ? "✓ " : "✗ ") + visible(who(a))));
    const side = el("span", "quiet-note", [letter === item.g ? "right answer" : "", provenance ? "the " + visible(provenance) + " reading" : ""].filter(Boolean).join(" · "));
    options.append(el("li", letter === item.g ? "gold" : "", el("b", "", visible(letter)), el("span", "", visible(text), player(sound, "Option " + visible(letter))), side, tags.length ? el("span", "tags", tags) : null));
  }
  box.append(...[given(item), options].filter(Boolean));
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
  const words = (item.t[turn] || ["", ""])[1];
  return el("p", "quiet-note", "Turn " + (turn + 1) + ": " + (words ? "“" + visible(words) + "”" : "(words unknown)"));
}

/** The dialogue as the benchmark gives it: each turn as it was recognised, and the replies that are not the model's. */
function given(item) {
  if (!item.gi) return null;
  const card = el("div", "said ref", el("div", "by", item.t.length > 1 ? "The dialogue as given" : "As recognised"));
  item.gi.forEach(([reply, heard], turn) => {
    if (item.t.length > 1) card.append(said(item, turn));
    if (heard) card.append(el("p", "quiet-note", "Recognised as: “" + visible(heard) + "”"));
    if (reply) card.append(el("p", "", el("span", "quiet-note", "Given reply: "), visible(reply)));
  });
  return card;
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

const rank = (metric) => index.about.findIndex(([label]) => label === index.about[metric][0]);
const order = (a, b) => rank(a) - rank(b) || index.about[a][2].localeCompare(index.about[b][2]);

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

/** What people said of a reply in studies: how many gave each answer, never who. */
function people(a) {
  if (!a.pe) return [];
  return [el("ul", "why people", a.pe.map(([label, counts, mean, title, against, unusable]) => {
    const raters = counts.reduce((sum, [, n]) => sum + n, 0);
    const told = counts.map(([value, n]) => visible(value) + " × " + n).join(", ");
    const head = visible(label) + (mean === null ? "" : " " + Math.round(mean * 100) / 100) + (against ? " (against " + visible(against) + ")" : "");
    const rest = [raters + (raters === 1 ? " person" : " people"), told, unusable ? unusable + " more in unusable sessions" : ""].filter(Boolean).join(" · ");
    return attrs(el("li", "", el("b", "", head), " ", el("span", "quiet-note", rest)), { title: visible(title) });
  }))];
}

function signatures(a) {
  const used = new Set([...(a.m || []).flat().map(([metric]) => metric), ...(a.y || []).map(([metric]) => metric)]);
  return el("details", "", el("summary", "", "How it was measured"), el("ul", "mono", [...used].map((metric) => el("li", "", visible(index.about[metric][3][a.r])))));
}

function replies(item) {
  const side = el("div", "side", given(item));
  // A reply stands for a turn that was asked: those with a given reply were not.
  const asked = item.t.map((_, turn) => turn).filter((turn) => !item.gi || !item.gi[turn][0]);
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
    const card = saidBy(a, a.la ? el("span", "quiet-note", a.la.toFixed(2) + " s" + (a.ti ? " (" + a.ti + ")" : "")) : null);
    (a.t || []).forEach((text, at) => {
      const turn = asked[at] ?? at;
      if (item.t.length > 1) card.append(said(item, turn));
      card.append(el("p", "", text.trim() ? visible(text) : el("i", "", "(empty)")));
      const sound = a.au && player(a.au[at], "Reply of " + who(a));
      if (sound) card.append(sound);
      const both = a.bo && player(a.bo[at], "Both voices of " + who(a));
      if (both) card.append(el("div", "quiet-note", "Both voices on one clock, the user left and the model right:"), both);
      const scores = (a.m || [])[turn] || [];
      const plain = scores.filter(([metric]) => !index.about[metric][2]);
      if (plain.length) card.append(measures(a, plain));
    });
    card.append(...people(a), ...verdicts(a));
    if (a.m || a.y) card.append(signatures(a));
    card.append(...trouble(a));
    side.append(card);
  }
  return side;
}

/** Show a case in the panel. */
function openCase(number) {
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
  close.addEventListener("click", backToList);
  const chips = [index.cues[c.cue] || "no cue", index.styles[c.style] && index.styles[c.style] + (/^(changed|steady)$/.test(index.styles[c.style]) ? " dialogue" : " style"), index.dimensions[c.dimension], index.topics[index.cases[number][6]],
    content.items.some((item) => item.u) ? "cue not validated" : ""].filter(Boolean);
  const view = [
    el("div", "case-top", el("h3", "", visible(c.id)), el("div", "go", step(-1, "Previous"), step(1, "Next"), close)),
    el("ul", "chips", chips.map((chip) => el("li", "chip", visible(chip)))),
  ];
  const sounds = new Map();
  for (const item of content.items) for (const [source, words] of item.t) if (source && !sounds.has(source)) sounds.set(source, words);
  if (c.words) view.push(el("p", "words", "“" + visible(c.words) + "”"));
  for (const [source, words] of sounds) {
    if (sounds.size > 1 && words !== c.words) view.push(el("p", "words", words ? "“" + visible(words) + "”" : "(words unknown)"));
    view.push(player(source, "Clip: " + visible(words || c.id)));
  }
  const context = content.items.find((item) => item.x);
  if (context) view.push(el("p", "quiet-note", "Context: " + visible(context.x)));
  const part = (title, items, build) => { if (items.length) view.push(el("h3", "", title), ...items.map(build)); };
  const choose = content.items.filter((i) => i.k === "choose");
  part("Hearing: the words", content.items.filter((i) => i.k === "transcribe"), transcript);
  part("Hearing: the voice", choose.filter((i) => i.l === 1), question);
  part("Reasoning", choose.filter((i) => i.l !== 1), question);
  part("Replies", content.items.filter((i) => i.k !== "transcribe" && i.k !== "choose"), replies);
  const article = byId("case");
  article.setAttribute("aria-label", "Case " + visible(c.id));
  article.replaceChildren(...view.filter(Boolean));
  showPanel("case");
  article.focus({ preventScroll: true });
  byId("panel").scrollTop = 0;
}
