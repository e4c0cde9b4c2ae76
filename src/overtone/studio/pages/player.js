// Sounds: fetched with the token, decoded once, played by WebAudio.
//
// A sound counts as heard when every part of it was played. The end is the end of the samples plus the delay of the
// device, so that questions do not open while a wireless headphone still plays. There is no waveform on purpose: a
// picture of a sound changes how people judge it.

import { button, clock, h, icon, kbd, say } from './dom.js';

const RATE = 48_000;
const FADE = 0.006; // seconds; short enough to go unnoticed, long enough not to click
const SLACK = 0.05; // seconds that may be missing at the ends of what was heard

/** Return the factor of a level in decibels, and back. */
export const gainOf = (decibels) => 10 ** (decibels / 20);
export const decibelsOf = (gain) => 20 * Math.log10(Math.max(gain, 1e-3));

/** The page's one audio context. It starts with the first key or click, because browsers forbid sound before that. */
export class Speaker {
  constructor() {
    this.context = null;
    this.level = 0; // dB, chosen on the calibration noise
    this.playing = null;
    const unlock = () => { this.wake().catch(() => {}); };
    addEventListener('pointerdown', unlock, { once: true });
    addEventListener('keydown', unlock, { once: true });
  }

  /** Return the running context. Raises an error if the browser keeps it silent. */
  async wake() {
    if (!this.context) {
      this.context = new AudioContext({ sampleRate: RATE, latencyHint: 'interactive' });
      this.volume = this.context.createGain();
      this.volume.connect(this.context.destination);
      this.setLevel(this.level);
    }
    if (this.context.state !== 'running') {
      const late = new Promise((_, reject) => { setTimeout(() => reject(new Error('silent')), 3000); });
      await Promise.race([this.context.resume(), late]);
    }
    return this.context;
  }

  setLevel(decibels) {
    this.level = decibels;
    if (this.volume) this.volume.gain.value = gainOf(decibels);
  }

  /** Let one thing play at a time. */
  takeOver(player) {
    if (this.playing && this.playing !== player) this.playing.pause();
    this.playing = player;
  }

  stop() {
    this.playing?.pause();
    this.playing = null;
  }

  /** Seconds between a sample's time in the context and the moment at which it is heard. */
  get delay() {
    return Math.min(this.context?.outputLatency || 0, 1);
  }
}

/** Decode without an audio context, so that loading needs no gesture. */
export function decode(bytes) {
  return new OfflineAudioContext(1, 1, RATE).decodeAudioData(bytes);
}

/** One sound of a screen: where it comes from, its samples, and which parts of it were heard. */
export class Sound {
  constructor(api, { name, label, url, seconds }, kept) {
    Object.assign(this, { api, name, label, url, seconds: seconds ?? 0 });
    this.plays = kept?.plays ?? 0;
    this.parts = kept?.parts ?? []; // [from, to] in seconds, sorted, without overlap
    this.buffer = null;
  }

  /** Fetch and decode, once. Raises an error with a message for the listener. */
  load() {
    this.loading ??= this.fetch().catch((error) => {
      this.loading = null;
      throw error;
    });
    return this.loading;
  }

  async fetch() {
    let bytes;
    try {
      const response = await this.api.get(this.url, { raw: true, timeout: 60_000 });
      bytes = await response.arrayBuffer();
    } catch (error) {
      const why = error.status ? `the server says: ${error.message}` : 'the server cannot be reached';
      throw new Error(`This sound did not load (${why}).`);
    }
    try {
      this.buffer = await decode(bytes);
    } catch {
      throw new Error('Your browser cannot play this sound.');
    }
    this.seconds = this.buffer.duration;
    return this.buffer;
  }

  get heard() {
    return this.plays > 0;
  }

  /** Note that a part was played. Return whether that completed the sound. */
  add(from, to) {
    const all = [...this.parts, [from, to]].sort((a, b) => a[0] - b[0]);
    this.parts = [];
    for (const part of all) {
      const last = this.parts.at(-1);
      if (last && part[0] <= last[1] + SLACK) last[1] = Math.max(last[1], part[1]);
      else this.parts.push([...part]);
    }
    return this.parts.length === 1 && this.parts[0][0] <= SLACK && this.parts[0][1] >= this.seconds - SLACK;
  }

  /** Count one complete play. */
  complete() {
    this.plays += 1;
    this.parts = [];
  }
}

/** Plays one sound: play, pause, replay from the start. `changed()` is called when its state changes. */
export class Player {
  constructor(speaker, sound, changed) {
    Object.assign(this, { speaker, sound, changed });
    this.offset = 0;
    this.source = null;
    this.state = 'loading'; // loading, failed, ready, playing
    this.message = '';
    this.load();
  }

  async load() {
    this.state = 'loading';
    this.changed();
    try {
      await this.sound.load();
      this.state = 'ready';
    } catch (error) {
      this.state = 'failed';
      this.message = error.message;
    }
    this.changed();
    if (this.wanted && this.state === 'ready') this.play(); // pressed while it loaded
    this.wanted = false;
  }

  get position() {
    if (!this.source) return this.offset;
    const heard = this.speaker.context.currentTime - this.started - this.speaker.delay;
    return Math.min(this.sound.seconds, this.offset + Math.max(0, heard));
  }

  async play(from = this.offset) {
    if (this.state === 'failed') {
      await this.load();
      return;
    }
    this.wanted = this.state === 'loading';
    if (this.state !== 'ready') return;
    this.speaker.takeOver(this);
    this.state = 'playing';
    this.changed();
    let context;
    try {
      context = await this.speaker.wake();
    } catch {
      this.state = 'ready';
      this.message = 'Your browser kept the sound silent. Press play again.';
      this.changed();
      return;
    }
    if (this.state !== 'playing') return;
    this.message = '';
    this.offset = from;
    const source = context.createBufferSource();
    const fade = context.createGain();
    source.buffer = this.sound.buffer;
    source.connect(fade).connect(this.speaker.volume);
    this.started = context.currentTime;
    if (from > 0) {
      fade.gain.setValueAtTime(0, this.started);
      fade.gain.linearRampToValueAtTime(1, this.started + FADE);
    }
    source.onended = () => { setTimeout(() => this.ended(source), this.speaker.delay * 1000); };
    source.start(this.started, from);
    Object.assign(this, { source, fade });
    this.changed();
  }

  ended(source) {
    if (this.source !== source) return; // paused before the end
    if (this.sound.add(this.offset, this.sound.seconds)) this.sound.complete();
    Object.assign(this, { source: null, offset: 0, state: 'ready' });
    this.changed('ended');
  }

  pause() {
    if (this.state !== 'playing') return;
    this.state = 'ready';
    if (this.source) {
      const { source, fade, position } = this;
      const now = this.speaker.context.currentTime;
      this.sound.add(this.offset, position);
      Object.assign(this, { source: null, offset: position });
      fade.gain.setValueAtTime(1, now);
      fade.gain.linearRampToValueAtTime(0, now + FADE);
      source.stop(now + FADE);
    }
    this.changed();
  }

  toggle() {
    if (this.state === 'playing') this.pause();
    else this.play();
  }
}

/** Return the card of a player, and `toggle()` for shortcuts. `wanted`: the sound must be heard to its end. */
export function playerCard(speaker, sound, { key, wanted = true, onchange = () => {}, large = true }) {
  const mark = h('span', { class: 'mark' });
  const press = button([mark, key ? kbd(key) : null], () => player.toggle(), { class: 'play', 'aria-keyshortcuts': key });
  const again = button([icon('replay'), h('span', {}, 'Replay')], () => { player.pause(); player.play(0); }, {
    class: 'quiet replay', 'aria-label': `Replay ${sound.label} from the start`,
  });
  const bar = h('span', { class: 'bar', 'aria-hidden': 'true' }, h('span', { class: 'filled' }));
  const time = h('span', { class: 'time' });
  const note = h('p', { class: 'state' });
  const card = h(
    'section', { class: large ? 'player' : 'player small', 'aria-label': sound.label },
    press, h('div', { class: 'middle' }, h('p', { class: 'name', dir: 'auto' }, sound.label), bar, h('p', { class: 'under' }, note, time)), again,
  );

  const draw = () => {
    bar.firstChild.style.transform = `scaleX(${sound.seconds ? player.position / sound.seconds : 0})`;
    time.textContent = `${clock(player.position)} / ${clock(sound.seconds, Math.ceil)}`;
    if (player.state === 'playing' && card.isConnected) requestAnimationFrame(draw);
  };
  const states = {
    loading: ['Loading…'], failed: [icon('alert'), () => player.message], playing: ['Playing'],
    ready: () => (sound.heard ? [icon('check'), 'Heard to the end'] : [wanted ? 'Please listen to the end' : 'Not heard yet']),
  };
  let shown = '';
  const changed = (event) => {
    if (!player) return;
    const { state } = player;
    const verb = { loading: 'Loading', failed: 'Load again:', playing: 'Pause' }[state] ?? 'Play';
    if (shown !== state) mark.replaceChildren(icon({ playing: 'pause', failed: 'replay' }[state] ?? 'play'));
    shown = state;
    press.setAttribute('aria-label', `${verb} ${sound.label}`);
    const parts = player.message && state === 'ready' ? [icon('alert'), player.message] : states[state];
    note.replaceChildren(...(typeof parts === 'function' ? parts() : parts).map((part) => (typeof part === 'function' ? part() : part)));
    card.classList.toggle('failed', state === 'failed');
    card.classList.toggle('heard', sound.heard);
    card.setAttribute('aria-busy', String(state === 'loading'));
    again.classList.toggle('unseen', !sound.heard && player.offset === 0);
    if (state === 'failed') say(player.message);
    if (event === 'ended') say(`${sound.label} ended.`);
    draw();
    onchange(event, player);
  };
  let player = null;
  player = new Player(speaker, sound, changed);
  changed();
  return { card, player, press };
}
