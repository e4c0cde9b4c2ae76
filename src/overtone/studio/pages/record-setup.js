// The set-up of the recording desk: whose voice it is, permission for the microphone, its level, the noise of the room.

import { makeControl } from './controls.js';
import { button, h, icon, kbd } from './dom.js';
import { setShortcuts } from './keys.js';
import { Meter } from './meter.js';
import { microphones, openMicrophone } from './microphone.js';
import { actionBar } from './screens.js';

const NOISY = -45; // dB of full scale: a fan, a street, a room full of people
const WAIT_MS = 600; // before the noise is measured, so that the click on the button is over
const VOICE = { type: 'choice', key: 'voice', question: 'Which is closer to your voice?', options: { female: 'A typical woman’s voice', male: 'A typical man’s voice' } };
const AGE = { type: 'choice', key: 'age', question: 'Are you an adult?', options: { adult: 'Yes, I am an adult', guardian: 'No, but my parent or guardian has read the information and agrees' } };
const CHANGES = { autoGainControl: 'its level', noiseSuppression: 'noise', echoCancellation: 'echoes', voiceIsolation: 'everything but a voice' };

/** Show the set-up. `ready(microphone, noise)` is called when the speaker goes on. */
export class Setup {
  constructor(desk, task, ready) {
    Object.assign(this, { desk, task, ready, microphone: null, noise: null, device: '', opening: false });
    this.meter = new Meter();
    this.answers = {};
    this.fields = task.speaker ? [] : [VOICE, AGE].map((field, at) => makeControl(field, undefined, (control) => {
      this.answers[control.key] = control.value;
      this.bar.tell('');
      this.point();
    }, at + 1));
    this.press = button([icon('play'), ' Turn on the microphone', kbd('Space')], () => this.open(), { class: 'primary', 'aria-keyshortcuts': 'Space' });
    this.message = h('div', { class: 'setup-message', role: 'status' });
    this.choice = h('select', { id: 'microphone', onchange: () => this.change() });
    this.chosen = h('p', { class: 'microphones', hidden: true }, h('label', { for: 'microphone' }, 'Microphone '), this.choice);
    this.again = button('Measure the room again', () => this.measure(), { class: 'quiet', hidden: true });
    this.bar = actionBar('Continue', () => this.next());
    this.element = h(
      'div', { class: 'screen record setup-microphone' },
      h('h1', { tabindex: '-1' }, 'Set up your microphone'),
      h('p', {}, 'Choose a quiet room with curtains or carpets, about a hand’s length from the microphone. Switch off fans and phones.'),
      this.fields.map((control) => control.element),
      h('section', { class: 'field', 'aria-label': 'Microphone' }, this.press, this.chosen, this.meter.element, this.message, this.again),
      this.bar.element,
    );
    setShortcuts([
      { keys: [' '], show: 'Space', label: 'turn on the microphone', run: () => (this.microphone ? false : this.open()) },
      { keys: ['1', '2'], show: '1, 2', label: 'answer', run: (key) => this.pick(key) },
      { keys: ['enter'], show: 'Enter', label: 'continue', run: () => this.next() },
    ]);
    this.point();
  }

  point() {
    this.current = this.fields.find((control) => !control.filled) ?? null;
    for (const control of this.fields) control.element.classList.toggle('current', control === this.current);
  }

  pick(key) {
    return this.current ? this.current.press(key) : false;
  }

  async open() {
    if (this.opening) return;
    this.opening = true;
    this.say('wait', 'Please allow the microphone when the browser asks.');
    try {
      this.microphone?.close();
      this.microphone = await openMicrophone({
        device: this.device, onLevel: (level) => this.meter.show(level), onLost: (error) => this.lost(error),
      });
      this.press.hidden = true;
      await this.list();
      await this.measure();
    } catch (error) {
      this.lost(error);
    } finally {
      this.opening = false;
    }
  }

  lost(error) {
    this.microphone = null;
    this.noise = null;
    this.meter.clear();
    this.press.hidden = false;
    this.again.hidden = true;
    this.say('bad', error.message ?? String(error));
  }

  async list() {
    const found = await microphones();
    const used = this.microphone.label;
    this.choice.replaceChildren(...found.map(({ id, label }, at) => h('option', { value: id }, label || `Microphone ${at + 1}`)));
    for (const [at, { label }] of found.entries()) if (label === used) this.choice.selectedIndex = at;
    this.chosen.hidden = found.length < 2;
  }

  change() {
    this.device = this.choice.value;
    this.open();
  }

  async measure() {
    this.again.hidden = true;
    this.noise = null;
    this.say('wait', 'Please be silent for a second: the noise of the room is measured …');
    try {
      await new Promise((resolve) => { setTimeout(resolve, WAIT_MS); });
      this.noise = await this.microphone.noise(1);
    } catch (error) {
      this.lost(error);
      return;
    }
    const level = `${Math.round(this.noise)} dB`.replace('-', '−');
    const changed = Object.entries(CHANGES).filter(([name]) => this.microphone.settings[name] === true).map(([, what]) => what);
    const lines = [];
    if (this.noise <= -100) lines.push('The microphone is silent. Is it muted, or is another one meant?');
    else lines.push(this.noise > NOISY ? `The room is noisy (${level}). Close windows, switch off fans, or move; then measure again.` : `The room is quiet (${level}).`);
    if (changed.length) lines.push(`Your browser or system changes ${changed.join(', ')}. If you can, switch that off in its settings for the microphone.`);
    lines.push('Say something: the bar should reach the middle, and never the red end.');
    this.say(this.noise > NOISY || this.noise <= -100 ? 'warn' : 'good', ...lines);
    this.again.hidden = false;
  }

  say(kind, ...lines) {
    this.message.dataset.kind = kind;
    this.message.replaceChildren(...lines.map((line) => h('p', {}, line)));
  }

  async next() {
    const open = this.fields.find((control) => !control.filled);
    if (open) {
      this.bar.tell('Please answer the questions about your voice.');
      open.focus();
      return;
    }
    if (!this.microphone || this.noise === null) {
      this.bar.tell(this.microphone ? 'One moment: the room is being measured.' : 'Please turn on the microphone first.');
      if (!this.microphone) this.press.focus();
      return;
    }
    const { microphone, noise } = this;
    if (this.fields.length) {
      const device = { voice: this.answers.voice, adult: this.answers.age === 'adult', guardian: this.answers.age === 'guardian', ...microphone.settings, noise_dbfs: noise };
      try {
        await this.desk.api.insist(() => this.desk.api.post('api/setup', { device, level: null }), () => this.bar.tell('Waiting for the network …'));
      } catch (failure) {
        this.bar.tell(failure.message);
        return;
      }
    }
    this.microphone = null; // it goes on living in the desk
    this.ready(microphone, noise);
  }

  close() {
    this.microphone?.close();
  }
}
