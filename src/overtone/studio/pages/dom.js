// Elements without markup strings. Every text from a study becomes a text node, so nothing in it can become markup.

const SVG = 'http://www.w3.org/2000/svg';
const ICONS = {
  play: 'M8 5v14l11-7z',
  pause: 'M7 5h4v14H7zM13 5h4v14h-4z',
  replay: 'M12 5V1L7 6l5 5V7a6 6 0 1 1-6 6H4a8 8 0 1 0 8-8z',
  check: 'M9.2 16.6 4.9 12.3 3.5 13.7l5.7 5.7L21 7.6l-1.4-1.4z',
  lock: 'M17 9V7A5 5 0 0 0 7 7v2H5v12h14V9zM9 7a3 3 0 0 1 6 0v2H9z',
  alert: 'M12 2 1 21h22zm1 16h-2v-2h2zm0-4h-2V9h2z',
};

/** Return an element. Properties whose name begins with "on" are listeners; null, false and undefined are left out. */
export function h(tag, properties, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith('on')) element.addEventListener(name.slice(2), value);
    else if (name === 'value') element.value = value;
    else element.setAttribute(name, value === true ? '' : value);
  }
  element.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

/** Return an icon that assistive technology ignores; the text beside it says the same. */
export function icon(name) {
  const svg = document.createElementNS(SVG, 'svg');
  const path = document.createElementNS(SVG, 'path');
  for (const [key, value] of Object.entries({ viewBox: '0 0 24 24', class: 'icon', 'aria-hidden': 'true' })) {
    svg.setAttribute(key, value);
  }
  path.setAttribute('d', ICONS[name]);
  svg.append(path);
  return svg;
}

/** Return a text from a study: its line breaks are kept, and its writing direction does not change the text around it. */
export function prose(text, properties) {
  const blocks = String(text ?? '').split(/\n\s*\n/).filter((block) => block.trim());
  return h('div', { class: 'prose', dir: 'auto', ...properties }, blocks.map((block) => h('p', { dir: 'auto' }, block.trim())));
}

export function button(label, run, properties) {
  return h('button', { type: 'button', onclick: run, ...properties }, label);
}

/** Return the name of a key as it is shown beside what the key does. Assistive technology reads aria-keyshortcuts. */
export function kbd(key) {
  return h('kbd', { 'aria-hidden': 'true' }, key);
}

/** Say something to screen readers. The same sentence twice is said twice. */
export function say(text) {
  const region = document.getElementById('live');
  region.textContent = '';
  setTimeout(() => { region.textContent = text; }, 30);
}

let unique = 0;
export function newId(prefix) {
  unique += 1;
  return `${prefix}-${unique}`;
}

/** Return seconds as minutes and seconds, e.g. 0:07. */
export function clock(seconds, round = Math.floor) {
  const whole = Math.max(0, round(seconds || 0));
  return `${Math.floor(whole / 60)}:${String(whole % 60).padStart(2, '0')}`;
}

/** Ask a question in a modal dialog. Return the value of the button that was pressed, or null after Escape. The
 * primary button has the focus first: it changes nothing. */
export function ask({ title, body = [], answers }) {
  return new Promise((resolve) => {
    const name = newId('dialog');
    const close = (value) => () => dialog.close(value);
    const dialog = h(
      'dialog', { 'aria-labelledby': name },
      h('h2', { id: name }, title), body,
      h('div', { class: 'actions' }, answers.map((one) => button(one.label, close(one.value), { class: one.style ?? 'quiet', autofocus: one.style === 'primary' }))),
    );
    dialog.addEventListener('close', () => {
      dialog.remove();
      resolve(dialog.returnValue || null);
    });
    document.body.append(dialog);
    dialog.showModal();
  });
}
