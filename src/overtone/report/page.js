// What the page's scripts share, the theme and the navigation. Text of models and data is hostile: it only ever becomes
// textContent, never markup.
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

const navLinks = [...document.querySelectorAll("nav a")];
const seen = new IntersectionObserver((entries) => {
  for (const entry of entries) {
    if (!entry.isIntersecting) continue;
    for (const link of navLinks) {
      if (link.hash === "#" + entry.target.id) link.setAttribute("aria-current", "true");
      else link.removeAttribute("aria-current");
    }
  }
}, { rootMargin: "-20% 0px -70% 0px" });
document.querySelectorAll("main > section").forEach((section) => seen.observe(section));

// Numbers are links, and there are thousands: Tab stops once at a table or picture, arrow keys move within.
const NUMBERS = "td a.v, td a.s, td a.b, svg a";
document.querySelectorAll(NUMBERS).forEach((link) => link.setAttribute("tabindex", "-1"));
addEventListener("keydown", (event) => {
  const box = event.target.closest && event.target.closest(".scroll, .picture");
  const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
  if (!box || !step || event.ctrlKey || event.altKey || event.metaKey) return;
  const numbers = [...box.querySelectorAll(NUMBERS)];
  let to = numbers.indexOf(event.target) + (event.target === box && step < 0 ? 0 : step);
  const cell = event.target.closest("td");
  if (cell && /Up|Down/.test(event.key)) { // the same column, in the row above or below
    while (numbers[to] && numbers[to].closest("td").cellIndex !== cell.cellIndex) to += step;
  }
  if (!numbers[to]) return;
  numbers[to].focus();
  event.preventDefault();
});

const picker = byId("map");
if (picker) {
  const show = () => document.querySelectorAll(".map").forEach((map) => { map.hidden = map.id !== picker.value; });
  picker.addEventListener("change", show);
  show();
}
