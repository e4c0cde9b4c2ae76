// The side panel that holds the list of cases, and one case. The page behind it stays where it is.

const panel = byId("panel");
const OURS = /^#(case|cue|where|behind)=|^#cases$/;
let opener = null; // the link that opened the panel
let hashBefore = ""; // where the reader was

function showPanel(view) {
  if (panel.hidden) opener = document.activeElement;
  panel.hidden = false;
  panel.dataset.view = view;
  byId("h-panel").textContent = view === "case" ? "Case" : "Cases";
  if (view === "list") move(at);
}

/** Show the list, with the keyboard on it. */
function showList() {
  showPanel("list");
  filter();
  listBox.focus({ preventScroll: true });
}

function backToList() {
  showPanel("list");
  draw();
  listBox.focus({ preventScroll: true });
}

function closePanel() {
  if (panel.hidden) return;
  panel.hidden = true;
  panel.querySelectorAll("audio").forEach((sound) => sound.pause());
  if (OURS.test(location.hash)) history.replaceState(null, "", hashBefore || location.pathname + location.search);
  if (opener && opener.isConnected) opener.focus({ preventScroll: true });
}

/** Say in the panel that a link names nothing. */
function nothingThere(text) {
  byId("case").replaceChildren(el("p", "empty", text));
  showPanel("case");
  byId("case").focus({ preventScroll: true });
}

byId("close").addEventListener("click", closePanel);
addEventListener("keydown", (event) => {
  if (event.key !== "Escape" || panel.hidden || !panel.contains(document.activeElement)) return;
  if (panel.dataset.view === "case") backToList();
  else closePanel();
});
const browse = byId("browse");
if (browse) browse.addEventListener("click", () => { readIndex(); showList(); });
