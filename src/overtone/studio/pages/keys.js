// Keyboard shortcuts: a list per screen, shown on the controls and in a dialog, and one switch for all single keys
// (WCAG 2.1.4: people who speak to their computer press keys by accident).

import { button, h, kbd } from './dom.js';
import { read, write } from './storage.js';

const NATIVE = { // keys that an element with focus needs for itself
  button: ['enter', ' '], a: ['enter'], summary: ['enter', ' '], radio: ['left', 'right', 'up', 'down'], checkbox: [],
  range: ['left', 'right', 'up', 'down', 'home', 'end', 'pageup', 'pagedown'], select: ['enter', ' ', 'up', 'down'],
};

let shortcuts = []; // {keys: [names], label, show, run(key), text}; `text`: also while typing
let on = read('shortcuts', true);

/** Replace the shortcuts of the page. */
export function setShortcuts(list) {
  shortcuts = list;
}

function nameOf(event) {
  const key = event.key.toLowerCase().replace(/^arrow/, '');
  if (event.ctrlKey || event.metaKey) return key === 'enter' ? 'ctrl+enter' : '';
  if (event.altKey) return '';
  // A keyboard of another script still has the Latin letter's place.
  return key.length === 1 && key > '~' && /^Key[A-Z]$/.test(event.code) ? event.code.slice(3).toLowerCase() : key;
}

function taken(target, key) {
  const tag = target.tagName?.toLowerCase();
  const kind = tag === 'input' ? target.type : tag;
  if (kind === 'radio' || kind === 'checkbox') return (key === ' ' && !(kind === 'radio' && target.checked)) || NATIVE[kind].includes(key);
  return NATIVE[kind]?.includes(key) ?? false;
}

addEventListener('keydown', (event) => {
  if (event.defaultPrevented || event.repeat || document.querySelector('dialog[open]')) return;
  const key = nameOf(event);
  const typing = event.target.matches?.('textarea, input[type=text], input[type=email]');
  const long = key.includes('enter') || key === 'escape';
  if (!key || taken(event.target, key) || (!on && !long)) return;
  for (const one of shortcuts) {
    if (!one.keys.includes(key) || (typing && !one.text)) continue;
    if (one.run(key) === false) continue;
    event.preventDefault();
    return;
  }
});

/** Show the shortcuts of the present screen, with the switch. */
export function showHelp() {
  const rows = shortcuts.filter((one) => one.label).map((one) => h('tr', {}, h('td', {}, h('kbd', {}, one.show)), h('td', {}, one.label)));
  const box = h('input', { type: 'checkbox', onchange: () => { on = box.checked; write('shortcuts', on); draw(); } });
  box.checked = on;
  const dialog = h(
    'dialog', { 'aria-labelledby': 'keys-title' },
    h('h2', { id: 'keys-title' }, 'Keyboard'),
    h('table', { class: 'keys' }, h('tbody', {}, rows, h('tr', {}, h('td', {}, h('kbd', {}, 'Tab')), h('td', {}, 'next control')))),
    h('label', { class: 'option' }, box, h('span', { class: 'words' }, 'Use shortcuts of one key')),
    h('div', { class: 'actions' }, button('Close', () => dialog.close(), { class: 'primary' })),
  );
  dialog.addEventListener('close', () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
}

function draw() {
  document.documentElement.classList.toggle('no-shortcuts', !on);
}
draw();

/** Return a hint such as "Space" for a shortcut, as it stands on a control. */
export function hint(show) {
  return kbd(show);
}
