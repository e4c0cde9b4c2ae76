// Pages on which there is nothing to rate: before the beginning, at the end, and when something is in the way.

import { button, h, icon, kbd, prose, say } from './dom.js';
import { setShortcuts } from './keys.js';

function page(kind, title, ...parts) {
  return { element: h('div', { class: `screen end ${kind}` }, h('h1', { tabindex: '-1' }, title), ...parts), close() {} };
}

/** The end of the session, with the debriefing and the way back to the platform that sent the person. */
export function done(state, desk) {
  const { end, study } = state;
  const code = end?.code ? h('p', { class: 'code' }, h('span', {}, 'Your completion code'), h('strong', {}, end.code), copy(end.code)) : null;
  const back = end?.redirect_url ? h('p', {}, h('a', { class: 'button primary', href: safe(end.redirect_url), rel: 'noreferrer' }, 'Return and complete', kbd('Enter'))) : null;
  const again = end?.again ? h('p', {}, button('Rate more recordings', () => desk.complete('api/again', {}), { class: 'quiet' })) : null;
  const form = end?.submit ? submitForm(end.submit) : null;
  setShortcuts(back ? [{ keys: ['enter'], show: 'Enter', label: 'return and complete', run: () => back.firstChild.click() }] : []);
  return page(
    'done', 'Thank you', h('p', { class: 'big' }, icon('check'), (end?.message || 'All your answers are saved.').replace(/^Thank you\. /, '')), code, back, form, again,
    study.texts.debriefing ? h('section', {}, h('h2', {}, 'What this study is about'), prose(study.texts.debriefing)) : null,
    h('p', { class: 'hint' }, back || form ? '' : 'You can close this page now.'),
  );
}

/** MTurk takes the end of a task as a form that the page posts into its frame. */
function submitForm(values) {
  const asked = new URLSearchParams(location.search);
  const site = asked.get('turkSubmitTo') ?? '';
  if (!['https://www.mturk.com', 'https://workersandbox.mturk.com'].includes(site.replace(/\/$/, ''))) return null;
  const hidden = Object.entries({ assignmentId: asked.get('assignmentId') ?? '', ...values });
  return h(
    'form', { method: 'post', action: `${site.replace(/\/$/, '')}/mturk/externalSubmit` },
    hidden.map(([name, value]) => h('input', { type: 'hidden', name, value })), h('button', { type: 'submit', class: 'primary' }, 'Submit'),
  );
}

function copy(text) {
  return button('Copy', async (event) => {
    const press = event.currentTarget;
    try {
      await navigator.clipboard.writeText(text);
      press.textContent = 'Copied';
      say('Copied');
    } catch { // without https there is no clipboard: select the code instead
      getSelection().selectAllChildren(press.previousElementSibling);
    }
  }, { class: 'quiet' });
}

/** Return a link of the study if it leads to a web page, and otherwise "#". */
function safe(url) {
  try {
    return ['https:', 'http:'].includes(new URL(url, location.href).protocol) ? url : '#';
  } catch {
    return '#';
  }
}

const TEXTS = {
  withdrawn: ['You have withdrawn', 'Your answers and recordings are deleted. Thank you for your time.'],
  closed: ['This study is closed', 'It takes no more answers. What you answered before is saved.'],
  full: ['No places left', 'Others have taken all places for now. If someone does not finish, places become free again: you may try later with the same link.'],
  screened_out: ['Thank you', 'This study needs other listeners or other equipment, so that you cannot take part. It is no judgement on you or your hearing.'],
  refused: ['You do not take part', 'You did not agree, so nothing about you is stored. You can close this page.'],
};

/** An end without ratings: withdrawn, closed, full, screened out or refused. */
export function ended(state, desk) {
  const [title, text] = TEXTS[state.step] ?? ['Nothing to do', 'There is nothing to do here at present.'];
  const { end } = state;
  const again = { refused: ['I changed my mind', () => desk.reconsider()], full: ['Try again', () => desk.reload()] }[state.step];
  setShortcuts([]);
  return page(
    state.step, title, h('p', { class: 'big' }, end?.message || text),
    end?.code ? h('p', { class: 'code' }, h('span', {}, 'Your code'), h('strong', {}, end.code), copy(end.code)) : null,
    end?.submit ? submitForm(end.submit) : null,
    end?.redirect_url ? h('p', {}, h('a', { class: 'button primary', href: safe(end.redirect_url), rel: 'noreferrer' }, 'Return')) : null,
    again ? h('p', {}, button(again[0], again[1], { class: 'quiet' })) : null,
  );
}

/** A link that the server does not know. */
export function badLink(message) {
  setShortcuts([]);
  return page(
    'bad-link', 'This link is not valid', h('p', { class: 'big' }, message || 'The study does not know this link.'),
    h('p', {}, 'Open the whole link that you were sent, with all characters after the #. If it still fails, write to the person who invited you.'),
  );
}

/** The start of a person who came by a public link. */
export function welcome(begin) {
  setShortcuts([{ keys: ['enter'], show: 'Enter', label: 'begin', run: begin }]);
  return page(
    'welcome', 'A listening test', h('p', { class: 'big' }, 'You will listen to short recordings and answer questions about them.'),
    h('p', {}, 'If you were sent a personal link, please open that one, with all characters after the #.'),
    button(['Begin', kbd('Enter')], begin, { class: 'primary' }),
  );
}

/** MTurk shows a task before it is accepted. */
export function preview() {
  setShortcuts([]);
  return page('preview', 'A listening test', h('p', { class: 'big' }, 'You will listen to short recordings and answer questions about them.'), h('p', {}, 'Accept the task to begin.'));
}

/** The server cannot be reached. `retry` tries again at once. */
export function unreachable(retry, failure) {
  setShortcuts([{ keys: ['enter'], show: 'Enter', label: 'try again', run: retry }]);
  return page(
    'unreachable', 'No connection', h('p', { class: 'big' }, failure?.status ? failure.message : navigator.onLine ? 'The server cannot be reached. It may be restarting.' : 'Your device is offline.'),
    h('p', {}, 'This page tries again by itself. Nothing is lost: answers that are not sent yet are kept in this browser.'),
    button(['Try again now', kbd('Enter')], retry, { class: 'primary' }),
  );
}

/** Something unexpected: say what, and offer to load again. */
export function broken(message, retry) {
  setShortcuts([]);
  return page('broken', 'Something went wrong', h('p', { class: 'big' }, message), h('p', {}, 'Your answers so far are saved.'), button('Load again', retry, { class: 'primary' }));
}

/** The study was opened in another tab. */
export function elsewhere(resume) {
  setShortcuts([{ keys: ['enter'], show: 'Enter', label: 'continue here', run: resume }]);
  return page(
    'elsewhere', 'Continued in another tab', h('p', { class: 'big' }, 'You opened this study in another tab, so this one is paused. Nothing is lost.'),
    h('p', {}, 'Close this tab, or continue here; the other tab is then paused.'), button(['Continue here', kbd('Enter')], resume, { class: 'primary' }),
  );
}

/** The browser forbids the microphone without https. */
export function insecure() {
  setShortcuts([]);
  return page(
    'insecure', 'The microphone needs a secure page', h('p', { class: 'big' }, 'This study records your voice. Your browser allows that only on an https:// page, and this page came over http://.'),
    h('p', {}, 'Please ask the person who invited you for an https:// link. Nothing about you is stored yet.'),
  );
}
