// Links into the side panel and to sections, and players outside of the panel.
// ── players of the worst and best replies, made when they come into sight ──────────────────────────────────────

const soundNames = ["Clip", "Reply", "Reference reply"];
let cardSounds = null; // read when the first card comes into sight
const arrive = new IntersectionObserver((entries) => {
  for (const entry of entries) {
    if (!entry.isIntersecting) continue;
    arrive.unobserve(entry.target);
    const [card, which] = entry.target.dataset.sound.split("-").map(Number);
    cardSounds = cardSounds || json("card-sounds");
    const sound = player(cardSounds[card][which], entry.target.dataset.name || soundNames[which], true);
    if (sound) entry.target.append(sound);
  }
}, { rootMargin: "400px" });
document.querySelectorAll("[data-sound]").forEach((place) => arrive.observe(place));

// ── links: #case=ID opens a case; #where=… and #behind=KEY show the cases under a number ───────────────────────

let packedSets = null; // read when the first number is asked for

/** The cases of a set, as a flag for each case: steps between numbers, or one bit for each. */
function unpacked(packed) {
  const bytes = Uint8Array.from(atob(packed.slice(1)), (c) => c.charCodeAt(0));
  const has = new Uint8Array(cases.length);
  if (packed[0] === "b") {
    for (let i = 0; i < has.length; i++) has[i] = (bytes[i >> 3] >> (i & 7)) & 1;
    return has;
  }
  for (let i = 0, at = -1; i < bytes.length;) {
    let step = 0, shift = 0;
    do step |= (bytes[i] & 127) << shift, shift += 7; while (bytes[i++] & 128);
    at += step + 1;
    has[at] = 1;
  }
  return has;
}

const tidy = (node) => (node ? node.textContent.replace(/\s+/g, " ").trim() : "");

/** What a link's number is called: by its picture, its sentence, or its row and column. */
function nameOf(link) {
  const cell = link.closest("td"), table = link.closest("table");
  const card = link.closest(".answer"); // on the first screen: a headline number, or a stage of the funnel
  if (card) return [tidy(link.closest("div, li").querySelector("dt, .st")), card.dataset.run].filter(Boolean).join(" · ");
  if (link.closest("svg")) return tidy(link.querySelector("title"));
  if (!cell || !table) return link.dataset.name || tidy(link.closest("p, li")).replace(tidy(link), "").slice(0, 160);
  const row = cell.parentElement;
  const head = table.tHead && table.tHead.rows[0].cells[cell.cellIndex];
  const parts = [];
  for (const part of head ? head.childNodes : []) if (!part.classList || !part.classList.contains("s") || part.querySelector("code")) parts.push(tidy(part));
  const names = [...row.cells].filter((one) => one.cellIndex < cell.cellIndex && (one.tagName === "TH" || !one.classList.contains("num")));
  for (const one of names) parts.push(...(one.children.length ? [...one.children].map(tidy) : [tidy(one)]));
  const caption = link.closest("[data-of]") || table.caption;
  if (caption && caption.dataset && caption.dataset.of) parts.push(caption.dataset.of);
  else if (table.classList.contains("heat")) parts.push(tidy(table.caption).replace(/:[^:]*$/, ""));
  else if (table.classList.contains("ledger")) parts.push(tidy(table.caption));
  return parts.filter(Boolean).join(" · ");
}

/** Show only these cases, and say which they are; null shows all again. */
function showUnder(found) {
  under = found;
  const line = byId("under");
  line.hidden = !found;
  if (!found) return line.replaceChildren();
  const clear = attrs(el("button", "quiet", "Show all cases"), { type: "button" });
  clear.addEventListener("click", () => {
    showUnder(null);
    filter();
    history.replaceState(null, "", "#cases");
    listBox.focus();
  });
  line.replaceChildren(el("span", "chip", "These cases are behind “", el("b", "", visible(found.name)), "”."), " ", clear);
}

/** The link of a number as it stands on the page, and its set. */
function numberLink(key, hash) {
  packedSets = packedSets || json("sets");
  const links = [...document.querySelectorAll(key === "where" ? "a[data-s]" : "a[href^='#behind=']")];
  const same = links.filter((one) => one.getAttribute("href") === hash); // the same number may stand in several places
  const link = same.find((one) => one === document.activeElement) || same.find((one) => one.closest("td")) || same[0];
  let value = hash.slice(hash.indexOf("=") + 1);
  try { value = decodeURIComponent(value); } catch { /* names nothing, then */ }
  const number = key === "behind" ? packedSets.behind[value] : link && Number(link.dataset.s);
  return number === undefined ? null : { name: (link && nameOf(link)) || value, has: unpacked(packedSets.sets[number]) };
}

function go(number) {
  const hash = "#case=" + encodeURIComponent(cases[number].id);
  if (location.hash === hash) openCase(number);
  else location.hash = hash;
}

/** Follow the address: a case, the cases behind a number or of a cue, or a place of the page. */
function follow() {
  if (!OURS.test(location.hash)) {
    hashBefore = location.hash;
    closePanel();
    goTo(location.hash);
    return;
  }
  if (!browse) return;
  readIndex();
  const [, key, raw] = /^#(case|cue|where|behind)=(.*)$/.exec(location.hash) || [];
  let value = raw;
  try { value = decodeURIComponent(raw); } catch { /* a broken link names nothing; say so below */ }
  if (key === "where" || key === "behind") {
    const found = numberLink(key, location.hash);
    if (!found) return nothingThere("This report has no number “" + visible(value) + "”.");
    clearFilters();
    showUnder(found);
    showList();
  } else if (key === "cue") {
    clearFilters();
    const found = index.cues.indexOf(value === "neutral" ? "" : value);
    if (selects.cue) selects.cue.value = found < 0 ? "" : String(found);
    showList();
  } else if (!key) showList();
  else if (numberOf.has(value)) openCase(numberOf.get(value));
  else nothingThere("This report has no case “" + visible(value) + "”.");
}

function clearFilters() {
  showUnder(null);
  for (const select of Object.values(selects)) select.value = "";
  byId("q").value = "";
}

addEventListener("hashchange", follow);
follow();
root.dataset.ready = "yes";
