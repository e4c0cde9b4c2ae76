// The filters of the case browser: their menus, and the active ones as sentences.

const level = (name, about, right, wrong) => ({ name, options: [["right", "all right"], ["wrong", "some wrong"]],
  says: (want) => (want === "wrong" ? "A question about " + about + " is answered wrongly" : "All questions about " + about + " are answered correctly"),
  keep: (flags, want) => (want === "wrong" ? (flags & wrong) !== 0 : (flags & right) !== 0 && !(flags & wrong)) });
const names = (name, listed, field, says) => ({ name, options: listed.map((n, i) => [String(i), n || "none"]).sort((a, b) => a[1].localeCompare(b[1])),
  says: (want) => says(listed[Number(want)]),
  keepCase: (c, want) => (Array.isArray(c[field]) ? c[field].includes(Number(want)) : c[field] === Number(want)) });

/** Every filter: its name, its options, the sentence of its chip, and which cases it keeps. */
function allFilters() {
  const states = { failed: "A request failed or is pending", unread: "A reply is a refusal or unreadable", spoke: "A reply is spoken" };
  return {
    run: { name: "Run", options: index.runs.map((n, i) => [String(i), n]), says: (want) => "The run is " + index.runs[Number(want)] },
    dimension: names("Dimension", index.dimensions, "dimension", (n) => "The cue is about " + (n || "nothing")),
    category: names("Sub-task", index.categories, "categories", (n) => "It has the sub-task " + n),
    cue: names("Cue", index.cues, "cue", (n) => (n ? "The cue is " + n : "There is no cue")),
    style: names("Style", index.styles, "style", (n) => (n ? "The style is " + n : "There is no style")),
    words: { ...level("Transcript", "", FLAG.heard, FLAG.misheard), options: [["right", "no errors"], ["wrong", "with errors"]],
      says: (want) => (want === "wrong" ? "The transcript has errors" : "The transcript has no errors") },
    voice: level("Voice questions", "the voice", FLAG.voiceRight, FLAG.voiceWrong),
    reasoning: level("Reasoning", "the situation", FLAG.reasonRight, FLAG.reasonWrong),
    state: { name: "Trouble", options: [["failed", "failed or pending"], ["unread", "refused or unreadable"], ["spoke", "spoken reply"]],
      says: (want) => states[want], keep: (flags, want) => (flags & FLAG[want]) !== 0 },
  };
}

let filters = {};
const selects = {};

function makeMenus() {
  filters = allFilters();
  for (const [key, one] of Object.entries(filters)) {
    if (one.options.length < 2) continue;
    const select = attrs(el("select", "", new Option("any", "")), { name: key, id: "f-" + key });
    for (const [value, name] of one.options) select.append(new Option(name, value));
    selects[key] = select;
    byId("selects").append(el("label", "", one.name, select));
  }
}

/** One sentence for each active filter, with a button that removes it. */
function drawChips() {
  const chips = Object.entries(selects).filter(([, select]) => select.value !== "").map(([key, select]) => [filters[key].says(select.value), select]);
  const search = byId("q");
  if (search.value.trim()) chips.push(["The text contains “" + search.value.trim() + "”", search]);
  byId("chips").replaceChildren(...chips.map(([sentence, field]) => {
    const remove = attrs(el("button", "", "×"), { type: "button", "aria-label": "Remove the filter: " + visible(sentence) });
    remove.addEventListener("click", () => {
      field.value = "";
      filter();
      listBox.focus();
    });
    return el("li", "chip", visible(sentence) + " ", remove);
  }));
  byId("chips").hidden = !chips.length;
}
