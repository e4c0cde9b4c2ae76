// The page of `overtone talk`: record an utterance, send it, and play and show the reply while it arrives.
import { openMicrophone, whyNoMicrophone, explain } from "./microphone.js";

const HOLD_MS = 400; // a shorter press starts a recording that the next press ends
const token = decodeURIComponent(location.hash.slice(1));
const byId = (id) => document.getElementById(id);
const speak = byId("speak");
const turns = byId("turns");

let conversation = "";
let microphone = null;
let recording = false;
let busy = false;
let pressedAt = 0;

function element(tag, className = "", text = "") {
  const made = document.createElement(tag);
  if (className) made.className = className;
  made.textContent = text;
  return made;
}

function tell(text, isError = false) {
  byId("status").textContent = text;
  byId("status").classList.toggle("error", isError);
}

async function call(path, options = {}) {
  let response;
  try {
    response = await fetch(path, { ...options, headers: { Authorization: `Bearer ${token}`, ...options.headers } });
  } catch {
    throw new Error("The program does not answer. Look at its terminal, and start it again if it has stopped.");
  }
  if (!response.ok) {
    const body = await response.json().catch(() => null);
    throw new Error(response.status === 401 ? "This link is not valid any more. Use the one in the terminal."
      : body?.error?.message ?? `The program answered with status ${response.status}.`);
  }
  return response;
}

// ── playing ─────────────────────────────────────────────────────────────────────────────────────────────────────────
class Voice {
  /** Plays pieces of 16-bit PCM one after the other, without gaps between them. */
  constructor() {
    this.context = null;
    this.end = 0;
    this.playing = new Set();
  }

  unlock() {
    this.context ??= new AudioContext();
    if (this.context.state === "suspended") this.context.resume();
  }

  play(base64, rate) {
    this.unlock();
    const bytes = Uint8Array.from(atob(base64), (c) => c.charCodeAt(0));
    const samples = new Int16Array(bytes.buffer, 0, bytes.length >> 1);
    if (!samples.length) return;
    const buffer = this.context.createBuffer(1, samples.length, rate);
    buffer.getChannelData(0).set(Float32Array.from(samples, (x) => x / 32768));
    const source = this.context.createBufferSource();
    source.buffer = buffer;
    source.connect(this.context.destination);
    this.end = Math.max(this.end, this.context.currentTime + 0.03);
    source.start(this.end);
    this.end += buffer.duration;
    this.playing.add(source);
    byId("stop").toggleAttribute("data-idle", false);
    source.onended = () => {
      this.playing.delete(source);
      if (!this.playing.size) byId("stop").toggleAttribute("data-idle", true);
    };
  }

  stop() {
    for (const source of this.playing) source.stop();
    this.playing.clear();
    this.end = 0;
    byId("stop").toggleAttribute("data-idle", true);
  }
}

const voice = new Voice();

function player(wav) {
  const audio = document.createElement("audio");
  audio.controls = true;
  audio.src = URL.createObjectURL(wav);
  return audio;
}

function wavOf(base64) {
  return new Blob([Uint8Array.from(atob(base64), (c) => c.charCodeAt(0))], { type: "audio/wav" });
}

// ── one turn ────────────────────────────────────────────────────────────────────────────────────────────────────────
class Turn {
  constructor(take) {
    byId("empty").hidden = true;
    this.user = element("li", "said user");
    this.user.append(element("h2", "", "You"));
    this.words = element("p", "quiet", "");
    this.user.append(this.words, player(take.wav));
    this.model = element("li", "said model");
    this.model.append(element("h2", "", "Model"));
    this.text = element("p", "", "…");
    this.model.append(this.text);
    this.said = "";
    this.thought = "";
    this.streamed = false;
    turns.append(this.user, this.model);
    this.model.scrollIntoView({ block: "end" });
  }

  take(event) {
    if (event.turn) this.id = event.turn;
    if (event.heard !== undefined) this.words.textContent = event.heard ? `Recognised: “${event.heard}”` : "No words were recognised.";
    if (event.restart) {
      this.said = this.thought = "";
      this.streamed = false;
      voice.stop();
    }
    if (event.done) this.finish(event);
    else if (event.error) this.fail(event.error);
    else {
      this.thought += event.thought ?? "";
      if (event.text) this.text.textContent = this.said += event.text;
      if (event.pcm) {
        this.streamed = true;
        voice.play(event.pcm, event.rate);
      }
    }
  }

  finish(event) {
    this.over = true;
    this.text.textContent = event.text || "(no words)";
    if (event.wav) {
      const audio = player(wavOf(event.wav));
      this.model.append(audio);
      if (!this.streamed) audio.play().catch(() => tell("Press play to hear the reply."));
    }
    const thought = event.thought || this.thought;
    if (thought) {
      const more = element("details");
      more.append(element("summary", "", "What the model thought before it answered"), element("p", "", thought));
      this.model.append(more);
    }
    const { first_text: text, first_audio: sound, done } = event.timings;
    const facts = [
      text === undefined ? "" : `first words after ${text.toFixed(2)} s`,
      sound === undefined ? "" : `first sound after ${sound.toFixed(2)} s`,
      `whole reply after ${done.toFixed(2)} s`,
      event.emotion ? `voice: ${event.emotion}` : "",
      event.refused ? "refused" : "",
      event.cut ? "cut off at the model's length limit" : "",
      ...event.notes,
    ];
    this.model.append(element("p", "facts", facts.filter(Boolean).join(" · ")));
    this.model.append(this.ratings());
  }

  ratings() {
    const set = element("fieldset", "rate");
    set.append(element("legend", "", "How well did the reply fit? 1 not at all, 5 very well"));
    for (let value = 1; value <= 5; value += 1) {
      const button = element("button", "", String(value));
      button.type = "button";
      button.setAttribute("aria-pressed", "false");
      button.onclick = async () => {
        try {
          await call("/api/rate", {
            method: "POST",
            headers: { "Content-Type": "application/json" },
            body: JSON.stringify({ turn: this.id, value }),
          });
          for (const other of set.querySelectorAll("button")) other.setAttribute("aria-pressed", String(other === button));
          tell(`Saved: ${value} of 5.`);
        } catch (error) {
          tell(error.message, true);
        }
      };
      set.append(button);
    }
    return set;
  }

  fail(message) {
    this.over = true;
    this.text.textContent = message;
    this.text.className = "error";
  }
}

async function send(take) {
  busy = true;
  refresh();
  const turn = new Turn(take);
  tell("The model listens …");
  try {
    const response = await call(`/api/conversation/${conversation}`, {
      method: "POST",
      headers: { "Content-Type": "audio/wav" },
      body: take.wav,
    });
    await lines(response.body, (event) => turn.take(event));
    if (!turn.over) turn.fail("The connection ended before the reply was complete. Say it again.");
    tell("");
  } catch (error) {
    turn.fail(error.message);
    tell("");
  }
  busy = false;
  refresh();
  turn.model.scrollIntoView({ block: "end" });
}

async function lines(stream, handle) {
  const reader = stream.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) break;
    const all = (rest + value).split("\n");
    rest = all.pop();
    for (const line of all) if (line) handle(JSON.parse(line));
  }
}

// ── the button ──────────────────────────────────────────────────────────────────────────────────────────────────────
function refresh() {
  speak.disabled = busy;
  speak.setAttribute("aria-pressed", String(recording));
  speak.firstElementChild.textContent = recording ? "Release or press to send" : busy ? "Wait for the reply" : "Hold to speak";
  if (!recording) byId("meter").firstElementChild.style.transform = "scaleX(0)";
}

async function ready() {
  microphone ??= await openMicrophone({
    onLevel: ({ rms }) => {
      const level = recording ? Math.min(1, Math.max(0, (20 * Math.log10(rms || 1e-6) + 60) / 60)) : 0;
      byId("meter").firstElementChild.style.transform = `scaleX(${level})`;
    },
    onLost: (error) => {
      microphone = null;
      recording = false;
      refresh();
      tell(error.message, true);
    },
  });
}

async function start() {
  if (recording || busy) return;
  voice.stop();
  voice.unlock();
  try {
    await ready();
    microphone.start();
    recording = true;
    tell("Recording …");
  } catch (error) {
    tell(error.message, true);
  }
  refresh();
}

async function finish() {
  if (!recording) return;
  recording = false;
  refresh();
  const take = await microphone.stop();
  if (take.seconds < 0.2) return tell("That was too short. Hold the button while you speak.", true);
  await send(take);
}

function press() {
  if (recording) {
    pressedAt = 0;
    finish();
  } else {
    pressedAt = performance.now();
    start();
  }
}

function release() {
  if (recording && pressedAt && performance.now() - pressedAt > HOLD_MS) finish();
}

speak.addEventListener("pointerdown", (event) => {
  speak.setPointerCapture(event.pointerId);
  press();
});
speak.addEventListener("pointerup", release);
speak.addEventListener("contextmenu", (event) => event.preventDefault());

const free = (target) => !target.closest?.("button:not(#speak), summary, audio, a, input");
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape") voice.stop();
  if (event.code === "Space" && free(event.target)) {
    event.preventDefault();
    if (!event.repeat) press();
  }
});
document.addEventListener("keyup", (event) => {
  if (event.code === "Space" && free(event.target)) {
    event.preventDefault();
    release();
  }
});
byId("stop").onclick = () => voice.stop();
byId("new").onclick = () => begin();

async function begin() {
  try {
    const response = await call("/api/conversation", { method: "POST" });
    conversation = (await response.json()).conversation;
    voice.stop();
    turns.replaceChildren();
    byId("empty").hidden = false;
    tell("");
    return true;
  } catch (error) {
    tell(error.message, true);
    return false;
  }
}

async function open() {
  const reason = whyNoMicrophone();
  speak.disabled = true;
  if (reason) return tell(explain(reason), true);
  if (!(await begin())) return;
  const about = await (await call("/api/about")).json();
  byId("model").textContent = about.model;
  document.title = `Talk: ${about.model}`;
  if (!about.speech) tell("This model answers in writing.");
  refresh();
}

open();
