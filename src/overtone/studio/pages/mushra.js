// MUSHRA: all stimuli and the reference run in step, and only one of them is let through, so that switching is
// immediate. A switch fades over a few milliseconds, because a jump in the wave would click.

import { bands, makeControl } from './controls.js';
import { button, clock, h, icon, kbd, newId, say } from './dom.js';

const REFERENCE = 'reference';
const FADE = 0.008;
const LEAD = 0.02; // seconds until all sounds start at the same sample

/** Plays several sounds in step and lets one through. */
class Chorus {
  constructor(speaker, sounds, changed) {
    Object.assign(this, { speaker, sounds, changed });
    this.state = 'loading';
    this.loop = true;
    this.offset = 0;
    this.active = sounds[0];
    this.tracks = new Map();
    this.load();
  }

  async load() {
    this.state = 'loading';
    this.changed();
    const done = await Promise.allSettled(this.sounds.map((sound) => sound.load()));
    const failed = done.find((one) => one.status === 'rejected');
    this.message = failed?.reason.message ?? '';
    this.state = failed ? 'failed' : 'ready';
    if (!failed) [this.from, this.to] = [0, this.length];
    this.changed();
    if (this.wanted && !failed) this.play(this.wanted); // pressed while it loaded
    this.wanted = null;
  }

  /** The length that all sounds share. */
  get length() {
    return Math.min(...this.sounds.map((sound) => sound.seconds));
  }

  get position() {
    if (this.state !== 'playing') return this.offset;
    const at = this.offset + Math.max(0, this.speaker.context.currentTime - this.started);
    if (!this.loop || at < this.to) return Math.min(at, this.length);
    return this.from + ((at - this.from) % (this.to - this.from));
  }

  async play(sound = this.active) {
    if (this.state === 'loading') this.wanted = sound;
    if (this.state === 'failed') return void this.load();
    if (this.state === 'playing') return void this.select(sound);
    if (this.state !== 'ready') return undefined;
    this.speaker.takeOver(this);
    this.active = sound;
    let context;
    try {
      context = await this.speaker.wake();
    } catch {
      this.message = 'Your browser kept the sound silent. Press play again.';
      this.changed();
      return undefined;
    }
    if (this.loop && (this.offset < this.from || this.offset >= this.to)) this.offset = this.from;
    this.started = context.currentTime + LEAD;
    for (const one of this.sounds) {
      const source = context.createBufferSource();
      const gate = context.createGain();
      source.buffer = one.buffer;
      Object.assign(source, { loop: this.loop, loopStart: this.from, loopEnd: this.to });
      gate.gain.value = one === sound ? 1 : 0;
      source.connect(gate).connect(this.speaker.volume);
      source.start(this.started, this.offset);
      this.tracks.set(one, { source, gate });
    }
    const { source } = this.tracks.get(this.sounds[0]);
    source.onended = () => this.ended(source);
    Object.assign(this, { state: 'playing', message: '', since: this.offset });
    this.watch();
    this.changed();
    return undefined;
  }

  /** Let another sound through. */
  select(sound) {
    if (sound === this.active) return;
    this.note();
    const now = this.speaker.context.currentTime;
    for (const [one, level] of [[this.active, 0], [sound, 1]]) {
      const { gain } = this.tracks.get(one).gate;
      gain.cancelScheduledValues(now);
      gain.setValueAtTime(1 - level, now);
      gain.linearRampToValueAtTime(level, now + FADE);
    }
    this.active = sound;
    this.changed();
  }

  /** Note what was heard of the active sound since the last note. */
  note(end = this.position) {
    const parts = end >= this.since ? [[this.since, end]] : [[this.since, this.to], [this.from, end]]; // looped in between
    for (const part of parts) this.active.add(...part);
    this.since = end;
    if (!this.covers(this.active)) return;
    const first = !this.active.heard;
    this.active.complete();
    if (first) say(`${this.active.label}: heard completely.`);
    this.changed(first ? 'ended' : '');
  }

  covers({ parts }) { // the longer sounds end with the shortest
    return parts.length === 1 && parts[0][0] <= 0.05 && parts[0][1] >= this.length - 0.05;
  }

  watch() {
    clearInterval(this.timer);
    this.timer = setInterval(() => { if (this.state === 'playing') this.note(); }, 100);
  }

  ended(source) {
    if (this.tracks.get(this.sounds[0])?.source !== source) return;
    this.note(this.length);
    this.halt(0);
  }

  pause() {
    if (this.state !== 'playing') return;
    const at = this.position;
    this.note(at);
    this.halt(at);
  }

  halt(offset) {
    const now = this.speaker.context.currentTime;
    for (const [one, { source, gate }] of this.tracks) {
      gate.gain.setValueAtTime(one === this.active ? 1 : 0, now);
      gate.gain.linearRampToValueAtTime(0, now + FADE);
      source.stop(now + FADE);
    }
    this.tracks.clear();
    clearInterval(this.timer);
    Object.assign(this, { state: 'ready', offset });
    this.changed();
  }

  toggle() {
    if (this.state === 'playing') this.pause();
    else this.play();
  }

  /** Change the loop; what plays goes on with it. */
  repeat(loop, from = this.from, to = this.to) {
    Object.assign(this, { loop, from, to });
    if (this.state !== 'playing') return void this.changed();
    this.pause();
    return void this.play();
  }
}

/** The area of a MUSHRA screen: transport, reference, and a row with a slider per stimulus. */
export function mushraArea(screen, rating) {
  const { sounds } = rating;
  const fields = screen.stages.flatMap((stage) => stage.fields);
  const fieldOf = (sound) => fields.find(({ type, key }) => type === 'slider' && (key === sound.name || key.endsWith(`:${sound.name}`)));
  const reference = sounds.find(({ name }) => name === REFERENCE);
  const rated = sounds.filter((sound) => fieldOf(sound));
  const order = [...(reference ? [reference] : []), ...rated];
  const switches = new Map();
  const controls = [];
  const parts = transport(() => chorus);

  const choose = (sound) => chorus.play(sound);
  const make = (sound, key) => {
    const press = button([h('span', { class: 'stimulus' }, sound === reference ? 'Reference' : key), sound === reference ? kbd('R') : null, h('span', { class: 'done' })],
      () => choose(sound), { class: sound === reference ? 'switch reference' : 'switch', 'aria-pressed': 'false', 'aria-keyshortcuts': sound === reference ? 'R' : key });
    switches.set(sound, press);
    return press;
  };
  const rows = rated.map((sound, at) => {
    const field = { ...fieldOf(sound), label: '', question: `Rating of ${sound.label}`, ends: ['', ''], marks: [] };
    const control = makeControl(field, rating.values[field.key], (one) => rating.answer(one));
    controls.push(control);
    return h('div', { class: 'stimulus-row' }, make(sound, String(at + 1)), control.element);
  });

  const draw = (event) => {
    if (!chorus) return;
    parts.draw();
    element?.setAttribute('aria-busy', String(chorus.state === 'loading'));
    for (const [sound, press] of switches) {
      const playing = chorus.state === 'playing' && chorus.active === sound;
      press.setAttribute('aria-pressed', String(playing));
      press.setAttribute('aria-label', `${sound.label}${sound.heard ? ', heard' : ''}`);
      press.querySelector('.done').replaceChildren(...(sound.heard ? [icon('check')] : []));
    }
    if (chorus.state === 'failed') say(chorus.message);
    rating.heard(event, { state: chorus.state === 'failed' ? 'failed' : 'ready' });
  };
  let element = null;
  let chorus = null;
  chorus = new Chorus(rating.desk.speaker, order, draw);

  const question = fields.find((field) => rated.some((sound) => fieldOf(sound) === field))?.question ?? '';
  element = h(
    'section', { class: 'mushra-area', 'aria-label': 'Recordings' },
    h('p', { class: 'question', dir: 'auto' }, question), parts.element, reference ? make(reference, 'R') : null,
    bands(fieldOf(rated[0])?.marks ?? []), rows,
  );
  draw();
  return {
    element,
    fields: new Set(controls.map((control) => control.key)),
    lock: (on) => { for (const control of controls) control.lock(on); },
    missing: () => controls.filter((control) => !control.filled),
    focus: () => parts.press.focus(),
    failed: () => chorus.state === 'failed',
    close: () => clearInterval(chorus.timer),
    shortcuts: [
      { keys: [' ', 'p'], show: 'Space', label: 'play or pause', run: () => chorus.toggle() },
      { keys: ['r', '0'], show: 'R', label: 'switch to the reference', run: () => (reference ? choose(reference) : false) },
      {
        keys: rated.slice(0, 9).map((_, at) => String(at + 1)), show: '1, 2 …', label: 'switch to a recording and its slider; arrow keys rate it',
        run: (key) => {
          choose(rated[key - 1]);
          if (!rating.locked) controls[key - 1].focus();
        },
      },
    ],
  };
}

function transport(chorusOf) {
  const press = button([icon('play'), kbd('Space')], () => chorusOf().toggle(), { class: 'play', 'aria-keyshortcuts': 'Space' });
  const filled = h('span', { class: 'filled' });
  const region = h('span', { class: 'region' });
  const time = h('span', { class: 'time' });
  const note = h('p', { class: 'state' });
  const loop = h('input', { type: 'checkbox', onchange: () => chorusOf().repeat(loop.checked) });
  loop.checked = true;
  const ends = ['from', 'to'].map((name, at) => h('input', {
    type: 'range', min: 0, max: 100, step: 1, value: at ? '100' : '0', 'aria-label': `Loop ${name}, in percent of the recording`,
    onchange: () => {
      const chorus = chorusOf();
      const [low, high] = ends.map((input) => Number(input.value));
      if (high - low < 5) ends[at].value = String(at ? Math.min(100, low + 5) : Math.max(0, high - 5));
      chorus.repeat(loop.checked, (chorus.length * ends[0].value) / 100, (chorus.length * ends[1].value) / 100);
    },
  }));
  const tick = () => {
    const chorus = chorusOf();
    filled.style.transform = `scaleX(${chorus.length ? chorus.position / chorus.length : 0})`;
    time.textContent = `${clock(chorus.position)} / ${clock(chorus.length, Math.ceil)}`;
    if (chorus.state === 'playing' && press.isConnected) requestAnimationFrame(tick);
  };
  const id = newId('loop');
  return {
    press,
    element: h(
      'div', { class: 'transport' }, press,
      h('div', { class: 'middle' }, h('span', { class: 'bar', 'aria-hidden': 'true' }, region, filled), h('p', { class: 'under' }, note, time)),
      h('details', { class: 'loop' }, h('summary', {}, 'Loop'), h('label', { class: 'option', for: id }, Object.assign(loop, { id }), h('span', { class: 'words' }, 'Repeat')),
        h('label', {}, 'From ', ends[0]), h('label', {}, 'To ', ends[1])),
    ),
    draw: () => {
      const chorus = chorusOf();
      const playing = chorus.state === 'playing';
      press.firstChild.replaceWith(icon(playing ? 'pause' : chorus.state === 'failed' ? 'replay' : 'play'));
      press.setAttribute('aria-label', playing ? 'Pause' : chorus.state === 'failed' ? 'Load again' : 'Play');
      const words = { loading: 'Loading…', failed: chorus.message, playing: `Playing: ${chorus.active.label}`, ready: chorus.message || 'Paused' };
      note.textContent = words[chorus.state];
      if (chorus.length) {
        region.style.left = `${(100 * (chorus.from ?? 0)) / chorus.length}%`;
        region.style.width = `${(100 * ((chorus.to ?? chorus.length) - (chorus.from ?? 0))) / chorus.length}%`;
      }
      tick();
    },
  };
}
