// The recording desk: a script in large type, how to say it, and one take after another until each delivery has one that
// the speaker keeps.
//
// A take is kept in the browser until the server has stored and checked it; the same key makes a repeated upload
// harmless. The player plays what the server stored.

import { Failure, newKey } from './api.js';
import { button, h, icon, kbd, say } from './dom.js';
import { setShortcuts } from './keys.js';
import { Meter } from './meter.js';
import { playerCard, Sound } from './player.js';
import { Setup } from './record-setup.js';
import { actionBar, skipLink } from './screens.js';
import * as store from './take-store.js';

const COUNT = 3; // before a recording
const COUNT_MS = 550;
const OVERTIME = 5; // seconds after the longest plausible time at which a recording stops by itself
const UPLOAD_MS = 120_000;
const WORDS = { heard: 'The words were understood.', unchecked: 'The words were not checked by the computer.' };

let open = null; // {microphone, noise}: stays open from script to script

addEventListener('beforeunload', (event) => {
  if (store.wouldLose()) event.preventDefault();
});

/** Return the view of a screen (see screens.js). */
export async function mount(screen, desk) {
  await styles();
  const task = await desk.api.insist(() => desk.api.get(`api/record?slot=${screen.slot}`), () => {});
  return new Recorder(screen, desk, task);
}

let styled = null;
function styles() {
  styled ??= new Promise((resolve) => {
    document.head.append(h('link', { rel: 'stylesheet', href: 'pages/desks.css', onload: resolve, onerror: resolve }));
  });
  return styled;
}

class Recorder {
  constructor(screen, desk, task) {
    Object.assign(this, { screen, desk, task, opened: performance.now(), phase: 'ready', part: null, inner: null });
    this.element = h('div', { class: 'desk' });
    this.meter = new Meter();
    this.timer = null;
    if (open && !open.microphone.lost) this.begin();
    else this.setUp();
  }

  close() {
    clearTimeout(this.timer);
    clearInterval(this.clock);
    this.inner?.close?.();
    this.desk.speaker.stop();
    if (open) open.microphone.onLevel = () => {};
    if (this.phase === 'recording') open?.microphone.stop();
    this.phase = 'closed';
  }

  // ── microphone ──────────────────────────────────────────────────────────────────────────────────────────────────
  setUp(why = '') {
    this.desk.speaker.stop();
    this.inner = new Setup(this.desk, this.task, (microphone, noise) => {
      open = { microphone, noise };
      this.task.speaker = true;
      this.begin();
    });
    if (why) this.inner.say('bad', why);
    this.place(this.inner.element);
  }

  place(element) {
    this.element.replaceChildren(element);
    element.querySelector('h1').focus({ preventScroll: true });
  }

  begin() {
    this.inner = null;
    open.microphone.onLevel = (level) => this.meter.show(level);
    open.microphone.onLost = (error) => {
      clearTimeout(this.timer);
      clearInterval(this.clock);
      this.phase = 'ready';
      open = null;
      this.setUp(`${error.message} The take that was running is lost; takes that you kept are safe.`);
    };
    this.build();
    this.goTo(this.firstOpen());
    this.resume();
  }

  // ── the page ────────────────────────────────────────────────────────────────────────────────────────────────────
  build() {
    const { task, screen } = this;
    this.steps = h('ol', { class: 'deliveries', 'aria-label': 'Deliveries of this sentence' });
    this.how = h('p', { class: 'how', id: 'how' });
    this.example = h('div', { class: 'example' });
    this.words = h('p', { class: 'words-to-read', dir: 'auto', lang: task.language || 'en' }, task.words);
    this.count = h('p', { class: 'count', 'aria-hidden': 'true' });
    this.press = button('', () => this.toggle(), { class: 'take', 'aria-describedby': 'how', 'aria-keyshortcuts': 'Space' });
    this.result = h('div', { class: 'result', role: 'status' });
    this.bar = actionBar('Keep', () => this.keep(), { extra: [skipLink(screen, this.desk, () => ({ ms: this.ms }))] });
    this.bar.element.querySelector('.link').firstChild.textContent = 'Skip this sentence';
    this.place(h(
      'div', { class: 'screen record' },
      h('h1', { tabindex: '-1' }, `Sentence ${screen.number}`), this.steps,
      h('section', { class: 'read', 'aria-label': 'What to read, and how' }, this.how, this.words, this.example),
      this.area = h('section', { class: 'recorder', 'aria-label': 'Recording', tabindex: '-1' }, this.meter.element, h('div', { class: 'take-row' }, this.press, this.count), this.result),
      this.bar.element,
    ));
    setShortcuts([
      { keys: [' '], show: 'Space', label: 'start and stop the recording', run: () => this.toggle() },
      { keys: ['p'], show: 'P', label: 'listen to the recording', run: () => (this.player ? this.player.toggle() : false) },
      { keys: ['e'], show: 'E', label: 'hear an example', run: () => (this.exampleOf ? this.exampleOf.toggle() : false) },
      { keys: ['r'], show: 'R', label: 'record again', run: () => this.again() },
      { keys: ['enter', 'k'], show: 'Enter', label: 'keep it and go on', run: () => this.keep() },
      { keys: ['1', '2', '3', '4'], show: '1, 2, 3', label: 'go to a delivery', run: (key) => this.choose(Number(key) - 1) },
    ]);
  }

  get ms() {
    return Math.round(performance.now() - this.opened);
  }

  get busy() {
    return ['counting', 'recording', 'sending'].includes(this.phase);
  }

  firstOpen() {
    return this.task.parts.find((part) => !part.take?.kept) ?? this.task.parts.at(-1);
  }

  choose(at) {
    if (this.busy || !this.task.parts[at]) return false;
    this.goTo(this.task.parts[at]);
    return true;
  }

  goTo(part) {
    if (this.part?.key !== part.key) this.drawExample(part);
    this.part = part;
    this.phase = part.take ? 'made' : 'ready';
    this.draw();
  }

  draw() {
    const { task, part, phase } = this;
    this.steps.replaceChildren(...task.parts.map((one, at) => h('li', {}, button(
      [h('span', { class: 'mark' }, one.take?.kept ? icon('check') : String(at + 1)), ` ${capital(one.label)}`],
      () => this.choose(at), { class: one === part ? 'delivery current' : 'delivery', 'aria-current': one === part ? 'step' : null },
    ))));
    this.steps.hidden = task.parts.length < 2;
    this.how.replaceChildren(h('strong', {}, `${capital(part.label)}: `), part.instruction);
    const label = { ready: 'Record', made: 'Record again', counting: 'Wait …', recording: 'Stop', sending: 'Saving …' }[phase];
    this.press.replaceChildren(h('span', { class: phase === 'recording' ? 'dot square' : 'dot', 'aria-hidden': 'true' }), label, kbd('Space'));
    this.press.classList.toggle('on', phase === 'recording');
    this.press.disabled = phase === 'sending';
    this.player = null;
    if (phase === 'made') this.drawTake(part.take);
    else if (phase !== 'sending') this.result.replaceChildren();
    this.bar.next.hidden = phase !== 'made' || !part.take.may_keep;
    this.bar.label(part.take?.kept ? 'Next' : part.take && !part.take.reasons.length ? 'Keep' : 'Keep it anyway');
    this.bar.tell('');
  }

  drawExample(part) {
    this.exampleOf = null;
    this.example.replaceChildren();
    if (!part.example) return;
    const sound = new Sound(this.desk.api, { name: part.key, label: 'An example (optional)', url: part.example });
    const { card, player } = playerCard(this.desk.speaker, sound, { key: 'E', wanted: false, large: false, onchange: () => {} });
    this.exampleOf = player;
    this.example.append(card);
  }

  drawTake(take) {
    const lines = take.reasons.length
      ? take.reasons.map((reason) => h('p', { class: 'reason' }, icon('alert'), ' ', reason))
      : [h('p', { class: 'good' }, icon('check'), ` ${take.kept ? 'Kept.' : 'Good recording.'} ${WORDS[take.words] ?? ''}`)];
    const sound = new Sound(this.desk.api, { name: take.id, label: 'Your recording', url: take.url, seconds: take.seconds });
    const { card, player } = playerCard(this.desk.speaker, sound, { key: 'P', wanted: false, large: false, onchange: () => {} });
    this.player = player;
    this.result.replaceChildren(...lines, card);
  }

  // ── recording ───────────────────────────────────────────────────────────────────────────────────────────────────
  toggle() {
    if (this.phase === 'recording') return this.stop();
    return this.busy ? true : this.start();
  }

  again() {
    return this.busy || this.phase !== 'made' ? false : this.start();
  }

  start() {
    this.desk.speaker.stop();
    this.phase = 'counting';
    this.draw();
    this.area.focus({ preventScroll: true }); // not a button, for which Space and Enter have a meaning of their own
    const tick = (left) => {
      if (this.phase !== 'counting') return;
      this.count.textContent = left || '';
      if (left) this.timer = setTimeout(() => tick(left - 1), COUNT_MS);
      else this.run();
    };
    tick(COUNT);
    return true;
  }

  run() {
    open.microphone.start();
    this.phase = 'recording';
    this.draw();
    const began = performance.now();
    const limit = this.part.longest + OVERTIME;
    clearInterval(this.clock);
    this.clock = setInterval(() => {
      const seconds = (performance.now() - began) / 1000;
      this.count.textContent = `${seconds.toFixed(1)} s`;
      if (seconds > limit) this.stop();
    }, 100);
  }

  async stop() {
    clearInterval(this.clock);
    this.phase = 'sending';
    this.count.textContent = '';
    const { microphone, noise } = open;
    const { wav } = await microphone.stop();
    const settings = { ...simple(microphone.settings), noise_dbfs: Math.round(noise * 10) / 10 };
    const take = { key: newKey(), owner: this.desk.api.name, slot: this.screen.slot, part: this.part.key, settings, wav, at: Date.now() };
    await store.keep(take);
    await this.send(take);
  }

  /** Send takes that an earlier visit could not send. */
  async resume() {
    for (const take of await store.kept(this.desk.api.name)) {
      if (take.slot !== this.screen.slot) await store.remove(take.key); // its script is finished, so it was replaced
      else if (!this.busy) {
        this.goTo(this.task.parts.find((part) => part.key === take.part) ?? this.part);
        this.phase = 'sending';
        await this.send(take);
      }
    }
  }

  async send(take) {
    this.draw();
    this.result.replaceChildren(h('p', { class: 'hint' }, 'Saving and checking the recording …'));
    const query = new URLSearchParams({ slot: take.slot, part: take.part, client_key: take.key });
    const options = { type: 'audio/wav', timeout: UPLOAD_MS, headers: { 'X-Take-Settings': JSON.stringify(take.settings) } };
    try {
      const answer = await this.desk.api.insist(() => this.desk.api.post(`api/take?${query}`, take.wav, options), (failure) => this.wait(failure));
      await store.remove(take.key);
      this.update(answer.task, take.part);
      say(answer.take.reasons.length ? answer.take.reasons.join(' ') : 'Good recording. Press Enter to keep it.');
    } catch (failure) {
      await store.remove(take.key);
      this.refused(failure);
    }
  }

  wait(failure) {
    this.result.replaceChildren(
      h('p', { class: 'reason' }, icon('alert'), ` ${failure.status ? failure.message : 'The server cannot be reached.'} The recording is kept in this browser and sent again.`),
      button('Try again now', () => this.desk.api.retry(), { class: 'quiet' }),
    );
  }

  refused(failure) {
    if (!(failure instanceof Failure)) throw failure;
    if (this.phase === 'closed') return;
    this.phase = this.part.take ? 'made' : 'ready';
    this.draw();
    if ([401, 403, 404, 409, 410].includes(failure.status)) {
      this.desk.failed(failure);
      return;
    }
    this.result.prepend(h('p', { class: 'reason' }, icon('alert'), ` ${failure.message}`));
    say(failure.message);
  }

  update(task, key) {
    if (this.phase === 'closed') return;
    this.task = task;
    this.goTo(task.parts.find((part) => part.key === key) ?? this.firstOpen());
    this.result.scrollIntoView({ block: 'nearest' });
  }

  // ── keeping ─────────────────────────────────────────────────────────────────────────────────────────────────────
  async keep() {
    if (this.phase !== 'made') return false;
    const { take, key } = this.part;
    if (!take.may_keep) {
      this.bar.tell('Please record it again.');
      return true;
    }
    this.desk.speaker.stop();
    this.phase = 'sending';
    try {
      if (!take.kept) {
        const task = await this.desk.api.insist(
          () => this.desk.api.post('api/take/keep', { take: take.id, kept: true }), () => this.bar.tell('Waiting for the network …'),
        );
        this.update(task, key);
      }
    } catch (failure) {
      this.refused(failure);
      return true;
    }
    this.phase = 'made';
    if (this.task.parts.every((part) => part.take?.kept)) await this.desk.complete('api/answer', { slot: this.screen.slot, values: {}, plays: {}, ms: this.ms, done: true });
    else {
      this.goTo(this.firstOpen());
      say(`${capital(this.part.label)}: ${this.part.instruction}`);
      this.area.focus({ preventScroll: true });
    }
    return true;
  }
}

/** Return the facts about a microphone that are simple values. */
function simple(settings) {
  return Object.fromEntries(Object.entries(settings).filter(([, value]) => ['string', 'number', 'boolean'].includes(typeof value)));
}

function capital(text) {
  return text.charAt(0).toUpperCase() + text.slice(1);
}
