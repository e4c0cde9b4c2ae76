// The review desk: one script, question or clip; a verdict (A, R, X), a reason, and a new version of any text with the
// difference to the old one. Verdicts of earlier rounds are shown, those of this round are not.

import { button, h, kbd, newId, prose, say } from './dom.js';
import { difference } from './diff.js';
import { setShortcuts } from './keys.js';
import { playerCard, Sound } from './player.js';
import { actionBar, skipLink } from './screens.js';

const VERDICTS = { accept: ['Accept', 'A'], revise: ['Revise', 'R'], reject: ['Reject', 'X'] };
const NOTES = { accept: 'Remark (optional)', revise: 'What should change?', reject: 'Why should it be rejected?' };
const TITLES = { words: 'Words', cue: 'How it should sound' };
const EARLIER = /^round (\d)(?:, (.+))?$/;
const REVISED = 'revised:';
const MOST = 4000; // characters

/** Return the view of a screen (see screens.js). */
export async function mount(screen, desk) {
  await styles();
  return new Review(screen, desk);
}

let styled = null;
function styles() {
  styled ??= new Promise((resolve) => {
    document.head.append(h('link', { rel: 'stylesheet', href: 'pages/desks.css', onload: resolve, onerror: resolve }));
  });
  return styled;
}

class Review {
  constructor(screen, desk) {
    Object.assign(this, { screen, desk, opened: performance.now(), editors: [] });
    this.values = { ...screen.answers, ...desk.queue.unsent(screen.slot) };
    this.fields = new Set(screen.stages.flatMap((stage) => stage.fields).map((field) => field.key));
    this.sounds = [...screen.context.sounds, ...screen.sounds].map((one) => new Sound(desk.api, one));
    this.cards = this.sounds.map((sound) => playerCard(desk.speaker, sound, {
      key: 'Space', wanted: true, large: true, onchange: (event) => { if (event === 'ended') this.save({}); },
    }));
    this.build();
    this.keys();
    this.draw();
  }

  close() {
    this.desk.speaker.stop();
  }

  get ms() {
    return Math.round(performance.now() - this.opened);
  }

  get about() {
    return { plays: Object.fromEntries(this.sounds.map((sound) => [sound.name, sound.plays])), ms: this.ms, stage: 0 };
  }

  // ── the page ────────────────────────────────────────────────────────────────────────────────────────────────────
  build() {
    const { screen } = this;
    const texts = screen.context.texts.filter(({ name }) => !EARLIER.test(name));
    const name = newId('note');
    this.buttons = Object.entries(VERDICTS).map(([value, [label, key]]) => button([label, kbd(key)], () => this.choose(value), { 'data-verdict': value, 'aria-keyshortcuts': key }));
    this.noteLabel = h('label', { for: name, class: 'note-label' });
    this.note = h('textarea', { id: name, rows: 3, maxlength: MOST, dir: 'auto', oninput: () => this.save({ note: this.note.value }) });
    this.note.value = this.values.note ?? '';
    this.bar = actionBar('Next', () => this.next(), { extra: [skipLink(screen, this.desk, () => ({ ms: this.ms }))] });
    this.bar.element.querySelector('.link').firstChild.textContent = 'Skip this one';
    this.element = h(
      'div', { class: 'screen review' },
      h('h1', { tabindex: '-1' }, `Review ${screen.number}`),
      this.cards.map(({ card }) => card),
      h('section', { class: 'texts', 'aria-label': 'What is reviewed' }, texts.map((one, at) => this.text(one, at === 0))),
      this.earlier(),
      h('section', { class: 'field', 'aria-label': 'Your verdict' },
        h('div', { class: 'verdicts', role: 'group', 'aria-label': 'Verdict' }, this.buttons),
        h('p', {}, this.noteLabel), this.note),
      this.bar.element,
    );
  }

  /** Return one text with, if reviewers can rewrite it, an editor and the difference. */
  text({ name, label, text }, main) {
    const before = this.screen.context.texts.find((one) => EARLIER.exec(one.name)?.[2] === name && one.text !== text);
    const key = REVISED + name;
    const title = TITLES[name] ?? label;
    const parts = [h('div', { class: 'head' }, h('h2', {}, title)), prose(text)];
    if (before) parts.push(h('p', { class: 'hint' }, 'Changed since the round before:'), marked(before.text, text));
    const element = h('div', { class: main ? 'review-text main' : 'review-text' }, parts);
    if (this.fields.has(key)) this.editors.push(this.editor(element, key, text, title));
    return element;
  }

  editor(element, key, text, title) {
    const area = h('textarea', { rows: 3, maxlength: MOST, dir: 'auto', 'aria-label': `Your version: ${title}`, hidden: true });
    const shown = h('div', { 'aria-live': 'polite', hidden: true });
    const edit = button('Rewrite', () => open(true), { class: 'quiet' });
    const changed = () => area.value.trim() !== text.trim() && area.value.trim() !== '';
    const draw = () => {
      shown.hidden = !changed();
      shown.replaceChildren(changed() ? marked(text, area.value) : '');
    };
    const open = (focus) => {
      area.hidden = false;
      edit.hidden = true;
      if (focus) area.focus();
      if (focus && this.values.verdict !== 'revise') this.choose('revise', false);
    };
    area.value = this.values[key] || text;
    area.addEventListener('input', () => {
      draw();
      this.save({ [key]: changed() ? area.value : '' });
    });
    element.querySelector('.head').append(edit);
    element.append(area, shown);
    if (changed()) open(false);
    draw();
    return { open, changed };
  }

  earlier() {
    const rounds = this.screen.context.texts.filter(({ name }) => EARLIER.test(name) && !EARLIER.exec(name)[2]);
    return rounds.map(({ name, text }) => h('section', { class: 'earlier' }, h('h2', {}, `What reviewers said in ${name}`), h('p', { dir: 'auto' }, text)));
  }

  keys() {
    const verdict = (value) => ({ keys: [VERDICTS[value][1].toLowerCase()], show: VERDICTS[value][1], label: VERDICTS[value][0].toLowerCase(), run: () => this.choose(value) });
    setShortcuts([
      ...Object.keys(VERDICTS).map(verdict),
      { keys: [' '], show: 'Space', label: 'play the clip', run: () => (this.cards.length ? this.cards[0].player.toggle() : false) },
      { keys: ['n'], show: 'N', label: 'write the reason', run: () => this.note.focus() },
      { keys: ['e'], show: 'E', label: 'rewrite the first text', run: () => (this.editors.length ? this.editors[0].open(true) : false) },
      { keys: ['escape'], show: 'Esc', label: 'leave a text field', text: true, run: () => document.activeElement.blur() },
      { keys: ['enter'], show: 'Enter', label: 'next', run: () => this.next() },
      { keys: ['ctrl+enter'], show: 'Ctrl Enter', label: 'next, also while writing', text: true, run: () => this.next() },
    ]);
  }

  draw() {
    const { verdict } = this.values;
    for (const one of this.buttons) one.setAttribute('aria-pressed', String(one.dataset.verdict === verdict));
    this.noteLabel.textContent = NOTES[verdict] ?? 'Reason';
    this.bar.tell('');
  }

  // ── answering ───────────────────────────────────────────────────────────────────────────────────────────────────
  save(values) {
    Object.assign(this.values, values);
    this.bar.tell('');
    this.desk.queue.save(this.screen.slot, values, this.about);
  }

  choose(verdict, move = true) {
    this.save({ verdict });
    this.draw();
    say(VERDICTS[verdict][0]);
    if (move && verdict !== 'accept' && !this.note.value) this.note.focus();
    return true;
  }

  /** Return what is missing, and where. */
  missing() {
    const { verdict } = this.values;
    const unheard = this.cards.find(({ player }) => !player.sound.heard);
    if (unheard) return ['Please listen to the end first.', unheard.press];
    if (!verdict) return ['Please choose: accept, revise or reject.', this.buttons[0]];
    if (verdict === 'reject' && !this.note.value.trim()) return ['Please say why it should be rejected.', this.note];
    if (verdict === 'revise' && !this.note.value.trim() && !this.editors.some((one) => one.changed())) return ['Please say what should change, or rewrite a text.', this.note];
    return null;
  }

  next() {
    const missing = this.missing();
    if (!missing) return this.desk.complete('api/answer', { slot: this.screen.slot, values: this.unsent(), ...this.about, done: true });
    this.bar.tell(missing[0]);
    missing[1].focus();
    return true;
  }

  unsent() {
    return this.desk.queue.unsent(this.screen.slot);
  }
}

function marked(before, after) {
  const parts = difference(before, after).map(([kind, text]) => (kind === 'same' ? text : h(kind, {}, text)));
  return h('p', { class: 'diff', dir: 'auto' }, parts);
}
