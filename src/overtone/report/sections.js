// Sections that open on demand, explanations of terms, and hints where a table is wider than the window.
// ── sections ───────────────────────────────────────────────────────────────────────────────────────────────────

/** Open a section, and everything that an element is folded into. */
function reveal(node) {
  const own = node.querySelector(":scope > details.fold");
  if (own) own.open = true;
  for (let at = node.closest("details"); at; at = at.parentElement.closest("details")) at.open = true;
}

/** Open the section that a link names, and go to it; false if the page has no such place. */
function goTo(hash) {
  let id = hash.slice(1);
  try { id = decodeURIComponent(id); } catch { /* names nothing, then */ }
  const node = id && byId(id);
  if (!node || !node.closest("main")) return false;
  reveal(node);
  node.scrollIntoView();
  return true;
}

document.addEventListener("click", (event) => { // a second click on the link of the open place changes no hash
  const link = event.target.closest("a[href^='#']");
  if (link && link.getAttribute("href") === location.hash) follow();
});

let foldedForPrint = [];
addEventListener("beforeprint", () => {
  foldedForPrint = [...document.querySelectorAll("main details:not([open])")];
  foldedForPrint.forEach((details) => { details.open = true; });
});
addEventListener("afterprint", () => {
  foldedForPrint.forEach((details) => { details.open = false; });
  foldedForPrint = [];
});

// ── explanations: the mouse has the title, keyboard and touch have this ────────────────────────────────────────

const tip = byId("tip");
document.querySelectorAll("#overview .gloss, .told .gloss").forEach((term) => term.setAttribute("tabindex", "0"));

function explain(term) {
  tip.hidden = !term;
  document.querySelectorAll("[aria-describedby='tip']").forEach((other) => other.removeAttribute("aria-describedby"));
  if (!term) return;
  tip.textContent = term.getAttribute("title");
  term.setAttribute("aria-describedby", "tip");
  const box = term.getBoundingClientRect();
  tip.style.left = Math.max(8, Math.min(box.left, innerWidth - tip.offsetWidth - 8)) + "px";
  const below = box.bottom + 6;
  tip.style.top = (below + tip.offsetHeight < innerHeight ? below : box.top - tip.offsetHeight - 6) + "px";
}

const glossAt = (event) => (event.target.closest ? event.target.closest(".gloss") : null);
document.addEventListener("click", (event) => explain(event.target.closest("a") ? null : glossAt(event)));
document.addEventListener("focusin", (event) => explain(glossAt(event)));
addEventListener("scroll", () => explain(null), { passive: true });
addEventListener("keydown", (event) => { if (event.key === "Escape") explain(null); });

// ── wide tables ────────────────────────────────────────────────────────────────────────────────────────────────

const widths = new ResizeObserver((entries) => {
  for (const { target } of entries) {
    const more = target.scrollWidth > target.clientWidth + 1;
    target.classList.toggle("wider", more);
    if (!target.nextElementSibling || !target.nextElementSibling.classList.contains("sideways")) {
      if (more) target.after(attrs(el("p", "sideways", "Scroll sideways for more columns →"), { "aria-hidden": "true" }));
    } else target.nextElementSibling.hidden = !more;
  }
});
document.querySelectorAll(".scroll, .picture").forEach((box) => widths.observe(box));
