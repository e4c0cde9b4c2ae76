// The steps before the first recording: consent, set-up of the sound, headphone check, qualification; and breaks.
// Each function returns a view: {element, close()}.

import { makeControl } from './controls.js';
import { button, h, icon, kbd, newId, prose, say } from './dom.js';
import { setShortcuts } from './keys.js';
import { decode, gainOf, playerCard, Sound } from './player.js';
import { actionBar } from './screens.js';
import { read, write } from './storage.js';

const LOWEST = -30; // dB, the left end of the level control
const OUTPUTS = { headphones: 'Headphones', earphones: 'Earphones', loudspeaker: 'Loudspeaker' };

function page(kind, title, ...parts) {
  return h('div', { class: `screen ${kind}` }, h('h1', { tabindex: '-1' }, title), ...parts);
}

function enter(run, more = []) {
  setShortcuts([...more, { keys: ['enter'], show: 'Enter', label: 'continue', run: () => run() }]);
}

const NOTHING = { close() {} };

// ── consent ─────────────────────────────────────────────────────────────────────────────────────────────────────────
export function consent(state, desk) {
  const { texts, title, consents = [] } = state.study;
  const boxes = consents.map((part) => {
    const input = h('input', { type: 'checkbox', name: part.key });
    input.checked = part.default === true;
    return { part, input, element: h('label', { class: 'option' }, input, h('span', { class: 'words', dir: 'auto' }, part.text, part.required ? ' (required)' : ' (optional)')) };
  });
  const send = (agree) => desk.complete('api/consent', {
    consent_sha: texts.consent_sha, agree, parts: Object.fromEntries(boxes.map(({ part, input }) => [part.key, agree && input.checked])),
  });
  const yes = () => {
    const open = boxes.filter(({ part, input }) => part.required && !input.checked);
    if (!open.length) return send(true);
    bar.tell('To take part, please tick what is required.');
    return open[0].input.focus();
  };
  const bar = actionBar('I agree and take part', yes, { extra: [button('I do not agree', () => send(false), { class: 'quiet' })] });
  bar.next.querySelector('kbd').remove(); // consent takes a deliberate press
  bar.next.removeAttribute('aria-keyshortcuts');
  const facts = [['Responsible', texts.controller], ['Contact', texts.contact], ['Ethics approval', texts.approval], ['When the data will be deleted', texts.retention], ['Withdrawal possible', texts.withdraw_until ? `until ${texts.withdraw_until}` : '']];
  setShortcuts([]);
  return {
    ...NOTHING,
    element: page(
      'consent', title || 'A listening test', prose(texts.consent),
      texts.warning ? h('div', { class: 'warning' }, icon('alert'), prose(texts.warning)) : null,
      boxes.length ? h('fieldset', { class: 'parts' }, h('legend', {}, 'Your choices'), boxes.map(({ element }) => element)) : null,
      h('dl', { class: 'facts' }, facts.filter(([, text]) => text).map(([name, text]) => h('div', {}, h('dt', {}, name), h('dd', { dir: 'auto' }, text)))),
      h('p', { class: 'version' }, `Version of this text: ${texts.consent_sha ?? ''}`), bar.element,
    ),
  };
}

// ── output device and level ─────────────────────────────────────────────────────────────────────────────────────────
export function setup(state, desk) {
  const kept = read(`setup:${desk.api.name}`, {});
  let output = kept.output ?? '';
  let level = kept.level ?? -9;
  const device = makeControl(
    { type: 'choice', key: 'output', question: 'What do you listen with?', options: OUTPUTS }, output || undefined,
    (control) => { output = control.value; keep(); },
  );
  const noise = new Noise(desk, () => draw());
  const press = button([h('span', {}), kbd('Space')], () => noise.toggle(), { class: 'play wide', 'aria-keyshortcuts': 'Space' });
  const shown = h('output', { 'aria-hidden': 'true' });
  const range = h('input', { type: 'range', 'aria-label': 'Level', min: LOWEST, max: 0, step: 1, value: String(level), oninput: () => { level = Number(range.value); apply(); keep(); } });
  const problem = h('p', { class: 'message', role: 'status' });
  const keep = () => write(`setup:${desk.api.name}`, { output, level });
  const percent = () => `${Math.round((100 * (level - LOWEST)) / -LOWEST)} %`;
  const apply = () => {
    desk.speaker.setLevel(level);
    shown.textContent = percent();
    range.setAttribute('aria-valuetext', percent());
    range.style.setProperty('--part', (level - LOWEST) / -LOWEST);
  };
  const draw = () => {
    const words = !noise.on ? 'Play the noise' : noise.source ? 'Stop the noise' : 'Loading…';
    press.firstChild.replaceChildren(icon(noise.on ? 'pause' : 'play'), words);
    problem.textContent = noise.message;
  };
  const next = () => {
    if (!output) {
      bar.tell('Please choose what you listen with.');
      return device.focus();
    }
    if (!noise.played) {
      bar.tell('Please play the noise and set the level first.');
      return press.focus();
    }
    const about = { output, touch: matchMedia('(pointer: coarse)').matches, rate: desk.speaker.context?.sampleRate, channels: desk.speaker.context?.destination.maxChannelCount };
    return desk.complete('api/setup', { device: about, level: Number(gainOf(level).toFixed(4)) });
  };
  const bar = actionBar('Continue', next);
  const name = newId('level');
  apply();
  draw();
  const keys = [
    { keys: [' ', 'p'], show: 'Space', label: 'play or stop the noise', run: () => noise.toggle() },
    { keys: ['1', '2', '3'], show: '1, 2, 3', label: 'what you listen with', run: (key) => device.press(key) },
  ];
  enter(next, keys);
  device.element.classList.add('current');
  return {
    element: page(
      'setup', 'Set up your sound',
      h('p', {}, 'Choose a quiet place. Headphones or earphones are best.'), device.element,
      h('section', { class: 'field', 'aria-labelledby': name },
        h('h2', { id: name }, 'Set a comfortable level'),
        h('p', {}, 'Play the noise. Set the level so that it is clearly audible and pleasant, like a voice beside you. Then leave the volume as it is.'),
        press, h('div', { class: 'slide' }, h('span', { 'aria-hidden': 'true' }, 'Softer'), range, h('span', { 'aria-hidden': 'true' }, 'Louder'), shown),
        h('p', { class: 'hint' }, 'Nothing to hear? Turn up the volume of your device, and on a phone turn off its silent mode.'), problem),
      bar.element,
    ),
    close: () => noise.stop(),
  };
}

/** The calibration noise, repeated until it is stopped. */
class Noise {
  constructor(desk, changed) {
    Object.assign(this, { desk, changed, on: false, played: false, message: '' });
    this.buffer = null;
    this.load().catch(() => {}); // early; `toggle` says what went wrong
  }

  load() {
    this.loading ??= this.desk.api.get('api/calibration', { raw: true }).then((response) => response.arrayBuffer()).then(decode)
      .catch((error) => { this.loading = null; throw error; });
    return this.loading;
  }

  async toggle() {
    if (this.on) return void this.stop();
    this.on = true;
    this.changed();
    try {
      const [context, buffer] = await Promise.all([this.desk.speaker.wake(), this.load()]);
      if (!this.on) return undefined;
      this.source = Object.assign(context.createBufferSource(), { buffer, loop: true });
      this.source.connect(this.desk.speaker.volume);
      this.source.start();
      Object.assign(this, { played: true, message: '' });
    } catch {
      Object.assign(this, { on: false, message: 'The noise cannot be played. Check your connection and press again.' });
    }
    return void this.changed();
  }

  stop() {
    this.on = false;
    this.source?.stop();
    this.source = null;
    this.changed();
  }
}

// ── headphone check ─────────────────────────────────────────────────────────────────────────────────────────────────
const ASKED = {
  woods: ['Which of the three tones is the softest?', 'You hear three tones, one after the other.'],
  huggins: ['In which of the three noises do you hear a faint tone?', 'You hear three noises. A faint tone is hidden in one of them.'],
};

export function headphones(state, desk) {
  const { test = 'woods', trials } = state.headphones;
  const key = `headphones:${desk.api.name}`;
  const kept = read(key, {});
  const answers = kept.test === test && kept.first === trials[0]?.url ? kept.answers : [];
  const [question, what] = ASKED[test] ?? ASKED.woods;
  const title = h('h1', { tabindex: '-1' }, 'Check of your headphones');
  const place = h('div', { class: 'trial' });
  const element = h('div', { class: 'screen headphones' }, title, h('p', {}, `${what} ${question} Each of the six sets can be played once. If you use headphones or earphones, put them on now.`), place);

  const trial = async () => {
    const at = answers.length;
    if (at >= trials.length) {
      await desk.complete('api/headphones', { test, answers, device: read(`setup:${desk.api.name}`, {}) });
      return;
    }
    const sound = new Sound(desk.api, { name: String(at), label: `Sound ${at + 1} of ${trials.length}`, ...trials[at] });
    const control = makeControl(
      { type: 'choice', key: 'interval', question, options: Object.fromEntries(Array.from({ length: trials[at].intervals ?? 3 }, (_, n) => [String(n + 1), ['First', 'Second', 'Third', 'Fourth'][n] ?? String(n + 1)])) },
      undefined, () => bar.tell(''),
    );
    const bar = actionBar(at + 1 < trials.length ? 'Next sound' : 'Continue', () => go());
    const { card, player, press } = playerCard(desk.speaker, sound, {
      key: 'Space',
      onchange: (event, one) => {
        if (event === 'ended') {
          control.lock(false);
          control.element.classList.add('current');
          press.disabled = true;
          say(question);
        }
        if (one?.state === 'playing') one.once = true;
      },
    });
    card.classList.add('once');
    control.lock(true);
    const go = () => {
      if (control.value === undefined) {
        bar.tell(sound.heard ? 'Please choose one of the three.' : 'Please play the sound first.');
        (sound.heard ? control : press).focus();
        return;
      }
      answers.push(Number(control.value));
      write(key, { test, first: trials[0].url, answers });
      desk.speaker.stop();
      trial();
      title.focus();
    };
    enter(go, [
      { keys: [' ', 'p'], show: 'Space', label: 'play', run: () => (sound.heard ? false : player.toggle()) },
      { keys: ['1', '2', '3', '4'], show: '1, 2, 3', label: 'choose', run: (pressed) => sound.heard && control.press(pressed) },
    ]);
    place.replaceChildren(card, control.element, bar.element);
  };
  trial();
  return { element, close: () => desk.speaker.stop() };
}

// ── qualification, break ────────────────────────────────────────────────────────────────────────────────────────────
export function qualification(state, desk) {
  const { text, fields } = state.qualification;
  const key = `qualification:${desk.api.name}`;
  const values = read(key, {});
  const controls = fields.map((field, at) => makeControl(field, values[field.key], (control) => {
    values[control.key] = control.value;
    control.element.classList.remove('missing');
    write(key, values);
    bar.tell('');
  }, fields.length > 1 ? at + 1 : 0));
  const next = () => {
    const open = controls.filter((control) => control.field.required !== false && !control.filled);
    if (!open.length) return desk.complete('api/qualification', { values });
    for (const control of open) control.element.classList.add('missing');
    bar.tell(open.length > 1 ? `${open.length} questions are still open.` : 'One question is still open.');
    return open[0].focus();
  };
  const bar = actionBar('Continue', next);
  enter(next);
  return { ...NOTHING, element: page('qualification', 'About you', text ? prose(text) : null, controls.map(({ element }) => element), bar.element) };
}

export function rest(state, desk) {
  const { done, total } = state.progress;
  const next = () => desk.complete('api/break', {});
  const bar = actionBar('Continue', next);
  enter(next);
  return {
    ...NOTHING,
    element: page(
      'rest', 'Time for a short break', h('p', { class: 'big' }, `You have finished ${done} of ${total} recordings.`),
      h('p', {}, 'Take off your headphones for a minute, look into the distance, stretch. Everything is saved: you may also close the page and open your link again later.'),
      Number.isFinite(state.study.reserve_minutes) ? h('p', { class: 'hint' }, `After ${state.study.reserve_minutes} minutes without an answer, your places may go to other people. You then get new ones when you return, as long as there are any.`) : null,
      bar.element,
    ),
  };
}
