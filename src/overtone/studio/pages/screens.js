// Screens on which people rate: layouts "single", "pair" and "mushra", with two stages of questions.
//
// Questions open when every sound in `must_play` has been heard to its end. Questions about the voice come first; the
// words are put into the page only after they are answered. From then on the voice answers are final (`change_voice`
// lifts that), because people who know the words hear another voice.
//
// Hook for layouts "record" and "review": `open` imports record.js or review.js and calls
//     await mount(screen, desk)  →  {element, close()}
// `element` is put into the page; its h1 (tabindex -1) gets the focus. `close()` is called before the next screen.
// `desk` is what all views get (rater.js, class Desk):
//     desk.api       get, post(path, body), call(method, path, blob, {type}): requests with the person's token
//     desk.queue     save(slot, values, more): keeps and sends answers; finish(path, body): ends the screen, returns
//                    the next state, which goes to desk.go(state)
//     desk.speaker   WebAudio output; desk.state: the last state; desk.failed(failure): shows what went wrong
//     desk.complete(path, body): finish, wait and go on in one; returns false if the server refused
// setShortcuts of keys.js sets the keys. makeControl of controls.js draws a Field, playerCard of player.js a sound,
// actionBar of this file the bar with the button "Next", and skipLink of this file the way past a recording.

import { makeControl, lockedNote } from './controls.js';
import { ask, button, h, icon, kbd, newId, prose, say } from './dom.js';
import { setShortcuts } from './keys.js';
import { playerCard, Sound } from './player.js';
import { read, write } from './storage.js';

const REMARK = { type: 'text', key: 'remark', label: '', question: 'Remark', required: false, rows: 3 };
const SKIPS = [
  { value: 'distress', label: 'It upsets me' },
  { value: 'technical', label: 'It does not play properly' },
  { value: 'other', label: 'Another reason' },
];

/** Return the view of a screen. */
export async function open(screen, desk) {
  if (screen.layout === 'record' || screen.layout === 'review') {
    const { mount } = await import(`./${screen.layout}.js`);
    return mount(screen, desk);
  }
  const { mushraArea } = screen.layout === 'mushra' ? await import('./mushra.js') : {};
  return new Rating(screen, desk, mushraArea ?? playersArea);
}

/** Return the bar at the bottom of a page: a message that needs no extra space, and the button that goes on. */
export function actionBar(label, run, { extra = [] } = {}) {
  const message = h('p', { class: 'message', role: 'status' });
  const text = h('span', {}, label);
  const next = button([text, kbd('Enter')], run, { class: 'primary next', 'aria-keyshortcuts': 'Enter' });
  const more = h('div', { class: 'extra' }, extra);
  return {
    element: h('div', { class: 'bar-bottom' }, h('div', { class: 'inner' }, more, message, next)),
    next,
    extra: more,
    label: (words) => { text.textContent = words; },
    tell: (words) => { message.textContent = words; },
  };
}

/** Return the button that leaves a recording out, after asking why. */
export function skipLink(screen, desk, values = () => ({})) {
  return button('Skip recording', async () => {
    const reason = await ask({
      title: 'Skip this recording?',
      body: [h('p', {}, 'You need not give a reason beyond these. Skipping does not reduce your pay.')],
      answers: [...SKIPS, { value: '', label: 'Go back', style: 'primary' }],
    });
    if (reason) await desk.complete('api/skip', { slot: screen.slot, reason, ...values() });
  }, { class: 'link' });
}

/** The players of a screen with one or two sounds. */
function playersArea(screen, rating) {
  const pair = screen.sounds.length > 1;
  const keys = pair ? ['←', '→'] : ['Space'];
  const cards = rating.sounds.map((sound, at) => playerCard(rating.desk.speaker, sound, {
    key: keys[at], wanted: screen.must_play.includes(sound.name), large: !pair, onchange: (event, player) => rating.heard(event, player),
  }));
  const shortcuts = pair
    ? cards.slice(0, 2).map(({ player }, at) => ({
      keys: [['left', 'right'][at]], show: keys[at], label: `play or pause ${player.sound.label}`, run: () => player.toggle(),
    }))
    : [];
  const due = () => { // what Space plays: the sound that plays or was paused, otherwise the next one not heard yet
    const all = [...rating.contextCards.filter(({ player }) => screen.must_play.includes(player.sound.name)), ...cards];
    const last = [...rating.contextCards, ...cards].find(({ player }) => player === rating.last);
    if (last && (last.player.state === 'playing' || last.player.offset > 0)) return last;
    return all.find(({ player }) => !player.sound.heard) ?? last ?? cards[0];
  };
  shortcuts.unshift({ keys: [' ', 'p'], show: 'Space', label: pair || screen.context?.sounds?.length ? 'play or pause; then the next sound' : 'play or pause', run: () => due().player.toggle() });
  return {
    element: h('div', { class: pair ? 'players pair' : 'players' }, cards.map(({ card }) => card)),
    shortcuts, fields: new Set(), focus: () => due().press.focus(), failed: () => cards.some(({ player }) => player.state === 'failed'),
    close: () => {},
  };
}

class Rating {
  constructor(screen, desk, makeArea) {
    Object.assign(this, { screen, desk });
    const kept = read(this.draftKey, {});
    const mine = kept.slot === screen.slot ? kept : {};
    this.before = mine.ms ?? 0;
    this.opened = performance.now();
    this.stage = Math.min(Math.max(screen.stage ?? 0, mine.stage ?? 0), Math.max(screen.stages.length - 1, 0));
    this.values = { ...screen.answers, ...desk.queue.unsent(screen.slot) };
    this.sounds = screen.sounds.map((one) => new Sound(desk.api, one, mine.sounds?.[one.name]));
    this.context = (screen.context?.sounds ?? []).map((one) => new Sound(desk.api, one, mine.sounds?.[one.name]));
    this.controls = [];
    this.contextCards = [];
    this.current = null;
    this.area = makeArea(screen, this);
    this.build();
    this.keys();
    this.open();
  }

  get draftKey() {
    return `draft:${this.desk.api.name}`;
  }

  get ms() {
    return Math.round(this.before + performance.now() - this.opened);
  }

  get plays() {
    return Object.fromEntries([...this.context, ...this.sounds].map((sound) => [sound.name, sound.plays]));
  }

  /** The sounds that still have to be heard. */
  get due() {
    return [...this.context, ...this.sounds].filter((sound) => this.screen.must_play.includes(sound.name) && !sound.heard);
  }

  // ── the page ────────────────────────────────────────────────────────────────────────────────────────────────────
  build() {
    const { screen } = this;
    const about = screen.context ?? {};
    const contextCards = this.context.map((sound) => playerCard(this.desk.speaker, sound, {
      key: 'C', large: false, wanted: screen.must_play.includes(sound.name), onchange: (event, player) => this.heard(event, player),
    }));
    this.contextCards = contextCards;
    const context = contextCards.length || about.texts?.length
      ? h('section', { class: 'context', 'aria-label': 'Before the recording' }, texts(about.texts), contextCards.map(({ card }) => card))
      : null;
    this.lock = h('p', { class: 'lock' });
    this.stages = h('div', { class: 'stages' });
    this.bar = actionBar('Next', () => this.next(), { extra: [screen.may_skip ? skipLink(screen, this.desk, () => this.about()) : null] });
    this.element = h(
      'div', { class: `screen ${screen.layout}` },
      h('h1', { tabindex: '-1' }, heading(screen)),
      screen.note ? h('p', { class: 'note', dir: 'auto' }, screen.note) : null,
      context, this.area.element, this.lock, this.stages, this.remark(), this.bar.element,
    );
    for (let at = 0; at <= this.stage; at += 1) this.addStage(at);
  }

  addStage(at) {
    const stage = this.screen.stages[at];
    if (!stage) return;
    const title = h('h2', { tabindex: '-1', class: at ? '' : 'visually-hidden' }, at ? 'Now with the words' : 'Questions');
    const fields = stage.fields.filter((field) => !this.area.fields.has(field.key));
    const first = this.controls.length + 1;
    const many = this.screen.stages.flatMap((one) => one.fields).filter((field) => !this.area.fields.has(field.key)).length > 1;
    const made = fields.map((field, place) => makeControl(
      field, this.values[field.key], (control) => this.answer(control), many ? first + place : 0,
    ));
    for (const control of made) {
      control.stage = at;
      control.element.addEventListener('focusin', () => this.point(control, false));
    }
    this.controls.push(...made);
    const words = h('div', { class: 'reveal' });
    this.reveal = { words, list: stage.reveal };
    this.stages.append(h('section', { class: 'stage' }, title, stage.reveal?.length ? words : null, made.map((control) => control.element)));
    return title;
  }

  remark() {
    if (!this.screen.remark) return null;
    const control = makeControl(REMARK, this.values.remark, (one) => this.answer(one));
    const details = h('details', { class: 'remark' }, h('summary', {}, 'Add a remark (optional)'), control.element);
    details.open = Boolean(this.values.remark);
    return details;
  }

  // ── hearing ─────────────────────────────────────────────────────────────────────────────────────────────────────
  heard(event, player) {
    if (player?.state === 'failed') this.offerSkip();
    if (player?.state === 'playing') this.last = player;
    if (event !== 'ended' && player?.state !== 'ready') return;
    const locked = this.locked;
    this.keep();
    if (event === 'ended') this.desk.queue.save(this.screen.slot, {}, this.about());
    this.open();
    if (locked && !this.locked) {
      say(this.controls.length ? 'You have heard everything. The questions are open.' : 'You have heard everything.');
    }
  }

  /** Let people go on who cannot hear a recording, in studies that do not let them skip otherwise. */
  offerSkip() {
    if (this.screen.may_skip || this.skip || !this.bar) return;
    this.skip = skipLink(this.screen, this.desk, () => this.about());
    this.bar.extra.append(this.skip);
  }

  get locked() {
    return this.due.length > 0;
  }

  about() {
    return { plays: this.plays, ms: this.ms, stage: this.stage };
  }

  keep() {
    const sounds = Object.fromEntries([...this.context, ...this.sounds].map(({ name, plays, parts }) => [name, { plays, parts }]));
    write(this.draftKey, { slot: this.screen.slot, sounds, ms: this.ms, stage: this.stage });
  }

  /** Open the questions that may be answered now, lock the others, and say why. */
  open() {
    if (!this.lock) return;
    const { locked } = this;
    this.showReveal();
    for (const control of this.controls) control.lock(locked || this.isFinal(control));
    this.area.lock?.(locked);
    const names = this.due.map((sound) => sound.label);
    const many = this.sounds.length + this.context.length > 1;
    const what = many ? `Still to be heard to the end: ${names.join(', ')}.` : 'Please listen to the end.';
    const questions = this.screen.stages.some((stage) => stage.fields.length);
    const last = this.stage === this.screen.stages.length - 1;
    const open = last || this.screen.change_voice ? 'You can answer now, and listen again.' : 'You can answer now. Once you see the words, these answers are final.';
    this.lock.replaceChildren(
      icon(locked ? 'lock' : 'check'),
      h('span', {}, locked ? `${what}${questions ? ' Then the questions open.' : ''}` : questions ? open : 'Heard.'),
    );
    this.lock.classList.toggle('unlocked', !locked);
    this.bar.label(this.stage < this.screen.stages.length - 1 ? 'Show the words' : 'Next');
    this.point(this.current && !this.isFinal(this.current) ? this.current : this.firstOpen(), false);
    this.mark();
  }

  /** Show the words of the stage, if what must be heard was heard. */
  showReveal() {
    const { words, list } = this.reveal ?? {};
    if (!list?.length) return;
    if (this.locked) words.replaceChildren(h('p', { class: 'hint' }, 'The words appear here when you have heard everything.'));
    else if (!words.querySelector('dl')) words.replaceChildren(texts(list));
  }

  isFinal(control) {
    return control.stage < this.stage && this.screen.stages[control.stage]?.name === 'voice' && !this.screen.change_voice;
  }

  // ── answering ───────────────────────────────────────────────────────────────────────────────────────────────────
  answer(control) {
    this.values[control.key] = control.value;
    control.element.classList.remove('missing');
    this.bar.tell('');
    // An emptied answer to a question that needs one is not an answer: the server keeps the last one until then.
    const whole = control.filled || control.field.required === false;
    this.desk.queue.save(this.screen.slot, whole ? { [control.key]: control.value } : {}, this.about());
    this.keep();
    this.mark();
  }

  missing() {
    const own = this.controls.filter((control) => !this.isFinal(control) && control.field.required !== false && !control.filled);
    return [...(this.area.missing?.() ?? []), ...own];
  }

  firstOpen() {
    const free = this.controls.filter((control) => !this.isFinal(control));
    return free.find((control) => !control.filled) ?? free.at(-1) ?? null;
  }

  /** Make a question the one that shortcuts answer. */
  point(control, move = true) {
    this.current = control;
    for (const other of this.controls) other.element.classList.toggle('current', other === control && !this.locked);
    if (!move || !control) return;
    control.element.scrollIntoView({ block: 'nearest', behavior: this.desk.calm ? 'auto' : 'smooth' });
    if (control.named || this.typing) control.focus();
  }

  press(key) {
    if (this.locked || !this.current || !this.current.press(key)) return false;
    const control = this.current;
    const after = control.stays ? null : this.firstOpen();
    const more = after && after !== control && !after.filled ? ` Next: ${after.field.question}` : '';
    say(`${control.field.label || 'Answer'}: ${control.describe()}.${more}`);
    if (more) this.point(after);
    return true;
  }

  mark() {
    const ready = !this.locked && !this.missing().length;
    this.bar.next.classList.toggle('ready', ready);
  }

  keys() {
    const answers = '123456789abcdefghijklmnoqrstuvwxyz0'.split('').map((key) => key);
    const pick = { keys: answers, show: this.controls.some(({ key, field }) => field.options?.A) ? 'A, B, 3 …' : '1, 2 …', label: 'answer the marked question', run: (key) => this.press(key) };
    const next = { keys: ['enter', 'ctrl+enter'], show: 'Enter', label: 'next (Ctrl + Enter while typing)', text: true, run: (key) => (this.typing && key === 'enter' ? false : this.enter()) };
    const leave = { keys: ['escape'], show: 'Esc', label: 'leave a text field', text: true, run: () => (this.typing ? this.element.querySelector('h1').focus() : false) };
    const context = this.contextCards.length
      ? [{ keys: ['c'], show: 'C', label: `play or pause ${this.context[0].label}`, run: () => this.contextCards[0].player.toggle() }]
      : [];
    setShortcuts([...this.area.shortcuts, ...context, pick, next, leave]);
  }

  get typing() {
    return document.activeElement?.matches('textarea') ?? false;
  }

  /** Enter: into the marked text or slider, to the next open question, or to the next screen. */
  enter() {
    const { current } = this;
    if (this.locked || !current || !this.missing().length) return this.next();
    if (current.named && !current.filled && !current.element.contains(document.activeElement)) return this.point(current);
    const after = this.controls.slice(this.controls.indexOf(current) + 1).find((control) => !control.filled);
    return after && (current.filled || current.field.required === false) ? this.point(after) : this.next();
  }

  async next() {
    if (this.locked && (this.area.failed() || this.contextCards.some(({ player }) => player.state === 'failed'))) {
      this.bar.tell('A recording did not load. Load it again, or skip it.');
      return;
    }
    if (this.locked) {
      this.bar.tell(`Please listen to ${this.due.length > 1 ? 'all recordings' : 'the recording'} to the end first.`);
      this.area.focus();
      return;
    }
    const missing = this.missing();
    if (missing.length) {
      for (const control of missing) control.element.classList.add('missing');
      this.bar.tell(missing.length > 1 ? `${missing.length} questions are still open.` : 'One question is still open.');
      missing[0].element.scrollIntoView({ block: 'center', behavior: this.desk.calm ? 'auto' : 'smooth' });
      missing[0].focus();
      return;
    }
    this.bar.tell('');
    if (this.stage < this.screen.stages.length - 1) this.showWords();
    else await this.desk.complete('api/answer', { slot: this.screen.slot, values: this.values, ...this.about(), done: true });
  }

  showWords() {
    this.stage += 1;
    const title = this.addStage(this.stage);
    if (!this.screen.change_voice && this.controls.some((control) => this.isFinal(control))) {
      title.before(lockedNote('Your answers about the voice are final now.'));
    }
    this.desk.queue.save(this.screen.slot, {}, this.about());
    this.keep();
    this.current = null;
    this.open();
    title.focus();
    title.scrollIntoView({ block: 'start', behavior: this.desk.calm ? 'auto' : 'smooth' });
  }

  close() {
    this.desk.speaker.stop();
    this.area.close();
  }
}

function heading(screen) {
  const noun = { pair: 'Compare two recordings', mushra: 'Compare with the reference' }[screen.layout] ?? 'Recording';
  return screen.layout === 'single' ? `${noun} ${screen.number}` : `${screen.number}. ${noun}`;
}

/** Return texts such as the words of the user, each under its name. */
function texts(list) {
  if (!list?.length) return null;
  return h('dl', { class: 'texts' }, list.map(({ label, text }) => {
    const id = newId('text');
    return h('div', {}, h('dt', { id, dir: 'auto' }, label), h('dd', {}, prose(text)));
  }));
}
