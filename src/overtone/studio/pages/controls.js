// One control per kind of field (studio/fields.py): Scale, Choice, Tags, Slider, Text.
//
// A control has `element`, `value` (undefined: not answered), `filled`, `lock(on)`, `focus()` and `press(key)`, which
// answers by a shortcut and returns whether it used the key. `onchange(control)` is called after every change.

import { h, icon, kbd, newId } from './dom.js';

const LONG = 18; // characters of an anchor from which answers stand in a list, one below the other

/** Return the text of an answer without the key that chooses it. */
function plain(element) {
  const copy = element?.cloneNode(true);
  copy?.querySelectorAll('kbd').forEach((key) => key.remove());
  return copy?.textContent.trim() ?? '';
}

export function makeControl(field, value, onchange, number = 0) {
  const makers = { scale, choice, tags, slider, text };
  const control = makers[field.type](field, onchange);
  const parts = Array.isArray(control.body) ? control.body : [control.body];
  const label = field.label && field.label !== field.question ? h('span', { class: 'about', dir: 'auto' }, field.label) : null;
  const optional = field.required === false ? h('span', { class: 'optional' }, ' (optional)') : null;
  const question = h('span', { dir: 'auto' }, number ? `${number}. ` : '', field.question || field.label, optional);
  const group = { scale: 'radiogroup', choice: 'radiogroup' }[field.type];
  const title = newId('question');
  control.title = title;
  control.field = field;
  control.key = field.key;
  control.element = h(
    'fieldset', { class: `field ${field.type}`, role: group, 'aria-labelledby': title, 'aria-required': group && field.required !== false ? 'true' : null },
    h('legend', { id: title }, label, question), parts,
  );
  control.inputs ??= () => [...control.element.querySelectorAll('input, textarea')];
  for (const input of control.inputs()) if (control.named) input.setAttribute('aria-labelledby', title);
  control.lock = (on) => { control.element.disabled = on; };
  control.focus ??= () => (control.element.querySelector('input:checked') ?? control.inputs()[0]).focus();
  Object.defineProperty(control, 'filled', { get: () => control.isFilled(control.value) });
  if (value !== undefined && value !== null) control.set(value);
  return control;
}

// ── one of several ──────────────────────────────────────────────────────────────────────────────────────────────────
function options(field, answers, onchange, look) {
  const name = newId('answer');
  const control = { value: undefined, isFilled: (value) => value !== undefined };
  const inputs = answers.map(({ value, label, mark, key }) => {
    const input = h('input', { type: 'radio', name, onchange: () => { control.value = value; onchange(control); } });
    const ends = [mark === undefined ? null : h('span', { class: 'mark' }, mark), label ? h('span', { class: 'words', dir: 'auto' }, label) : null];
    const hint = key && key !== String(mark) ? kbd(key.toUpperCase()) : null;
    return { value, key, input, words: label, element: h('label', { class: 'option' }, input, ends, hint) };
  });
  control.body = h('div', { class: `options ${look}` }, inputs.map((one) => one.element));
  control.set = (value) => {
    control.value = value;
    for (const one of inputs) one.input.checked = one.value === value;
  };
  control.press = (pressed) => {
    const one = inputs.find((input) => input.key === pressed) ?? (field.type === 'choice' ? inputs[pressed - 1] : undefined);
    if (!one) return false;
    control.set(one.value);
    onchange(control);
    return true;
  };
  control.describe = () => plain(inputs.find((one) => one.value === control.value)?.element);
  return control;
}

function scale(field, onchange) {
  const values = Array.from({ length: field.high - field.low + 1 }, (_, at) => field.low + at);
  const anchors = field.anchors ?? {};
  const plain = field.low >= 0 && field.high <= 9; // then the key is the number itself
  const signed = (value) => (field.low < 0 && value > 0 ? `+${value}` : String(value).replace('-', '−'));
  const answers = values.map((value, at) => ({
    value, label: anchors[value] ?? '', mark: signed(value), key: plain ? String(value) : at < 9 ? String(at + 1) : '',
  }));
  const list = answers.some(({ label }) => label.length > LONG) || (values.length > 5 && answers.filter(({ label }) => label).length > 2);
  const control = options(field, answers, onchange, list ? 'list' : 'row');
  if (values.length > 11) control.body.classList.add('many');
  return control;
}

function choice(field, onchange) {
  const answers = Object.entries(field.options).map(([value, label], at) => ({
    value, label, key: /^[A-Za-z]$/.test(value) ? value.toLowerCase() : at < 9 ? String(at + 1) : '',
  }));
  const look = answers.some(({ label }) => label.length > 34) ? 'list' : 'A' in field.options && answers.length === 5 ? 'tiles votes' : 'tiles';
  return options(field, answers, onchange, look);
}

// ── any number of several ───────────────────────────────────────────────────────────────────────────────────────────
function tags(field, onchange) {
  const control = { value: undefined, isFilled: (value) => Boolean(value?.length), stays: true };
  const entries = Object.entries(field.options);
  const read = () => boxes.filter((box) => box.input.checked).map((box) => box.value);
  const boxes = entries.map(([value, label], at) => {
    const alone = field.none && value === field.none;
    const key = alone ? 'n' : at < 9 ? String(at + 1) : '';
    const input = h('input', {
      type: 'checkbox', value,
      onchange: () => {
        if (input.checked) for (const box of boxes) if (box.input !== input && (alone || box.value === field.none)) box.input.checked = false;
        control.value = read();
        onchange(control);
      },
    });
    const element = h('label', { class: alone ? 'option alone' : 'option' }, input, h('span', { class: 'words', dir: 'auto' }, label), key ? kbd(key.toUpperCase()) : null);
    return { value, key, input, element };
  });
  const grouped = Object.entries(field.groups ?? {}).map(([heading, values]) => {
    const id = newId('group');
    const own = boxes.filter((box) => values.includes(box.value));
    return h('div', { role: 'group', 'aria-labelledby': id, class: 'group' }, h('p', { id, dir: 'auto' }, heading), h('div', { class: 'options tags' }, own.map((box) => box.element)));
  });
  const rest = boxes.filter((box) => !Object.values(field.groups ?? {}).flat().includes(box.value));
  control.body = [...grouped, h('div', { class: 'options tags' }, rest.map((box) => box.element))];
  control.set = (value) => {
    control.value = value;
    for (const box of boxes) box.input.checked = value.includes(box.value);
  };
  control.press = (pressed) => {
    const box = boxes.find((one) => one.key === pressed);
    box?.input.click();
    return Boolean(box);
  };
  control.describe = () => boxes.filter((box) => box.input.checked).map((box) => plain(box.element)).join(', ') || 'nothing';
  return control;
}

// ── a number between two ends ───────────────────────────────────────────────────────────────────────────────────────
/** A native range, which always has a value: until it is touched it looks and reads as not answered. */
function slider(field, onchange) {
  const control = { value: undefined, isFilled: (value) => value !== undefined, named: true, stays: true };
  const [low, high] = field.ends ?? ['', ''];
  const digits = String(field.step ?? 1).split('.')[1]?.length ?? 0;
  const signed = (value) => (field.low < 0 && value > 0 ? '+' : '') + value.toFixed(digits).replace('-', '−');
  const output = h('output', { 'aria-hidden': 'true' }, '–');
  const input = h('input', {
    type: 'range', class: 'unset', min: field.low, max: field.high, step: field.step ?? 1,
    value: String((field.low + field.high) / 2), 'aria-valuetext': 'not answered yet',
  });
  const draw = () => {
    input.classList.toggle('unset', control.value === undefined);
    if (control.value === undefined) return;
    output.textContent = signed(control.value);
    input.setAttribute('aria-valuetext', signed(control.value));
    input.style.setProperty('--part', (control.value - field.low) / (field.high - field.low));
  };
  const take = () => {
    control.value = Number(input.value);
    draw();
    onchange(control);
  };
  input.addEventListener('input', take);
  input.addEventListener('click', take); // a click on the middle changes nothing, but it is an answer
  control.input = input;
  control.output = output;
  control.body = [
    h('div', { class: 'slide' }, input, output),
    field.marks?.length ? bands(field.marks) : null,
    low || high ? h('div', { class: 'ends' }, h('span', { dir: 'auto' }, low), h('span', { dir: 'auto' }, high)) : null,
  ];
  control.set = (value) => {
    control.value = value;
    input.value = String(value);
    draw();
  };
  control.press = () => false;
  control.describe = () => output.textContent;
  return control;
}

/** Return the names of equal intervals, as they stand along a slider. */
export function bands(marks) {
  return h('div', { class: 'bands', 'aria-hidden': 'true' }, marks.map((mark) => h('span', { dir: 'auto' }, mark)));
}

// ── text ────────────────────────────────────────────────────────────────────────────────────────────────────────────
function text(field, onchange) {
  const control = { value: undefined, isFilled: (value) => Boolean(value?.trim()), named: true, stays: true };
  const input = h('textarea', {
    rows: field.rows ?? 3, maxlength: 4000, dir: 'auto', autocomplete: 'off', spellcheck: 'false', autocapitalize: 'sentences',
    oninput: () => { control.value = input.value; onchange(control); },
  });
  control.body = input;
  control.set = (value) => {
    control.value = value;
    input.value = value;
  };
  control.press = () => false;
  control.describe = () => 'text';
  return control;
}

/** Return the lines that say which answers are final. */
export function lockedNote(message) {
  return h('p', { class: 'locked' }, icon('lock'), message);
}
