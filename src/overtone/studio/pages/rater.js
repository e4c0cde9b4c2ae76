// The page of a person who takes part: it asks the server which step comes next, and shows it.
//
// The token stands in the address after the #, which browsers do not send. A reload, the same link on another device
// and a restarted server all lead to the same place, because the server keeps the step and the queue keeps the answers.

import { Api, Failure, newKey, Queue } from './api.js';
import { ask, button, h, say } from './dom.js';
import * as ends from './ends.js';
import { setShortcuts, showHelp } from './keys.js';
import { decibelsOf, Speaker } from './player.js';
import { open } from './screens.js';
import * as steps from './steps.js';
import { read, removeAll, watch, write } from './storage.js';

const PLATFORM = ['PROLIFIC_PID', 'STUDY_ID', 'SESSION_ID', 'workerId', 'assignmentId', 'hitId'];
const VIEWS = { consent: steps.consent, setup: steps.setup, headphones: steps.headphones, qualification: steps.qualification, break: steps.rest, done: ends.done };
const FINAL = ['done', 'withdrawn', 'closed', 'full', 'screened_out', 'refused'];
const $ = (id) => document.getElementById(id);

class Desk {
  constructor(token) {
    this.api = new Api(token);
    this.queue = new Queue(this.api);
    this.speaker = new Speaker();
    this.state = null;
    this.view = null;
    this.toasted = 0;
    this.calm = matchMedia('(prefers-reduced-motion: reduce)').matches;
    this.tab = newKey();
    this.queue.listeners.push((unsent, waiting) => this.showSaved(unsent, waiting));
    this.queue.refused = (failure) => this.failed(failure);
    this.speaker.setLevel(read(`setup:${this.api.name}`, {}).level ?? 0);
  }

  // ── following the server ────────────────────────────────────────────────────────────────────────────────────────
  /** Send what an earlier visit left, and show the step that the server names. */
  async start() {
    this.claim();
    if (this.queue.items.length) {
      const sent = this.queue.flush();
      if (this.queue.items.length) await Promise.race([sent, new Promise((resolve) => { setTimeout(resolve, 2000); })]);
    }
    await this.reload();
  }

  async reload() {
    try {
      const state = await this.api.insist(() => this.api.get('api/state'), (failure) => this.interrupt(failure));
      await this.go(state);
    } catch (failure) {
      this.failed(failure);
    }
  }

  interrupt(failure) {
    if (this.view?.element.classList.contains('unreachable')) return;
    this.place(ends.unreachable(() => this.api.retry(), failure));
  }

  async go(state) {
    this.state = state;
    if (state.person?.level) this.speaker.setLevel(decibelsOf(state.person.level));
    this.frame(state);
    try {
      const make = VIEWS[state.step];
      if (state.study.needs_microphone && !isSecureContext && !FINAL.includes(state.step)) this.place(ends.insecure());
      else if (state.screen && !make && !FINAL.includes(state.step)) this.place(await open(state.screen, this));
      else this.place((make ?? ends.ended)(state, this));
    } catch (error) {
      console.error(error);
      this.place(ends.broken('This page could not be shown.', () => location.reload()));
    }
  }

  /** Send a request that ends the present screen, and go to the next one. Return false if the server refused. */
  async complete(path, body) {
    if (this.busy) return false;
    this.busy = true;
    const { element } = this.view;
    element.inert = true;
    element.setAttribute('aria-busy', 'true');
    const slow = setTimeout(() => $('waiting').hidden = false, 700);
    try {
      const state = await this.queue.finish(path, body);
      await this.go(state);
      return true;
    } catch (failure) {
      this.failed(failure);
      return false;
    } finally {
      clearTimeout(slow);
      $('waiting').hidden = true;
      this.busy = false;
      element.inert = false;
      element.removeAttribute('aria-busy');
    }
  }

  /** Show what the server refused, and follow it where it knows better. */
  failed(failure) {
    if (!(failure instanceof Failure)) throw failure;
    if (failure.status === 401) this.place(ends.badLink());
    else if ([403, 404, 409, 410].includes(failure.status) && this.state) this.follow(failure);
    else if (this.state && this.view) this.toast(failure.message);
    else this.place(ends.broken(failure.message, () => location.reload()));
  }

  /** The server is at another step than this page: go there. */
  async follow(failure) {
    const before = this.state.screen?.slot;
    await this.reload();
    if (this.state.screen?.slot !== before || this.state.step !== 'rating') this.toast(failure.message);
  }

  async reconsider() {
    await this.go({ ...this.state, step: 'consent' });
  }

  // ── the frame around a view ─────────────────────────────────────────────────────────────────────────────────────
  place(view) {
    this.view?.close();
    const first = !this.view;
    this.view = view;
    $('main').replaceChildren(view.element);
    const title = view.element.querySelector('h1');
    document.title = this.state ? `${title.textContent} · ${this.state.study.title}` : title.textContent;
    scrollTo({ top: 0, behavior: 'auto' });
    if (!first) title.focus({ preventScroll: true });
    if (performance.now() - this.toasted > 4000) $('toast').hidden = true; // a new message survives the change of screens
  }

  frame({ study, progress, step }) {
    $('title').textContent = study.title;
    const total = progress?.total ?? 0;
    $('progress').hidden = !total || ['consent', 'setup', 'headphones', 'qualification', ...FINAL.slice(1)].includes(step);
    $('bar').max = total || 1;
    $('bar').value = progress?.done ?? 0;
    $('count').textContent = `${progress?.done ?? 0} of ${total}`;
    $('help').hidden = FINAL.includes(step);
    const late = study.texts.withdraw_until && study.texts.withdraw_until < new Date().toISOString().slice(0, 10);
    const nothingStored = !total && ['consent', 'refused', 'closed'].includes(step);
    $('withdraw').hidden = late || nothingStored || step === 'withdrawn';
    $('contact').textContent = study.texts.contact ? `Contact: ${study.texts.contact}` : '';
    $('foot').hidden = false;
    this.showSaved(this.queue.items.length, this.queue.waiting);
  }

  showSaved(unsent, waiting) {
    const mark = $('saved');
    const status = !unsent ? 'saved' : waiting ? 'waiting' : 'saving';
    if (mark.dataset.status === status && status !== 'waiting') return;
    const before = mark.dataset.status;
    mark.dataset.status = status;
    mark.querySelector('span').textContent = { saved: 'Saved', saving: 'Saving…', waiting: 'Waiting for the network' }[status];
    $('waiting-text').textContent = waiting
      ? 'The server cannot be reached. Your answers are kept in this browser and will be sent as soon as it is back.'
      : 'Saving…';
    if (status === 'waiting' && before !== 'waiting') say('Waiting for the network. Your answers are kept in this browser.');
    if (status === 'saved' && before === 'waiting') say('All answers are saved.');
  }

  toast(text) {
    $('toast-text').textContent = text;
    $('toast').hidden = false;
    this.toasted = performance.now();
    say(text);
  }

  async withdraw() {
    const answer = await ask({
      title: 'Stop and withdraw?',
      body: [
        h('p', {}, 'If you only want a break, close the page and open your link again later: everything is saved.'),
        h('p', {}, 'If you withdraw, your answers and recordings are deleted from the study, and your link ends. This cannot be undone.'),
      ],
      answers: [{ value: 'yes', label: 'Withdraw and delete', style: 'danger' }, { value: '', label: 'Go on', style: 'primary' }],
    });
    if (answer && (await this.complete('api/withdraw', {}))) await this.forget();
  }

  /** Delete what this browser keeps of the person: unsent recordings and the set-up. */
  async forget() {
    const takes = await import('./take-store.js');
    for (const take of await takes.kept(this.api.name)) await takes.remove(take.key);
    removeAll(this.api.name);
  }

  // ── other tabs, and the button "back" ───────────────────────────────────────────────────────────────────────────
  /** Take over from other tabs with this link: they pause. */
  claim() {
    const key = `tab:${this.api.name}`;
    const resume = () => {
      this.queue.held = false;
      this.claim();
      this.queue.flush();
      this.reload();
    };
    if (!this.claimed) {
      watch(key, ({ tab, paused }) => {
        if (tab === this.tab) return;
        if (paused === this.tab) this.toast('This study was open in another tab too. That tab is paused; continue here.');
        if (paused) return;
        this.queue.held = true;
        this.busy = false;
        this.place(ends.elsewhere(resume));
        write(key, { tab: this.tab, paused: tab });
      });
      this.guardBack();
    }
    this.claimed = true;
    write(key, { tab: this.tab });
  }

  /** "Back" stays on the page and says why. Browsers honour that only after a key or click on the page. */
  guardBack() {
    const guard = () => { if (!history.state?.guard) history.pushState({ guard: true }, '', location.href); };
    addEventListener('pointerup', guard, { once: true });
    addEventListener('keyup', guard, { once: true });
    addEventListener('popstate', () => {
      if (history.state?.guard || FINAL.includes(this.state?.step)) return;
      history.forward();
      this.toast('You cannot go back to an earlier recording. Your answers are saved.');
    });
    addEventListener('hashchange', () => { if (tokenOf() && tokenOf() !== this.api.token) location.reload(); });
  }
}

/** Return the token of the address, without what a mail program may have put behind the link. */
function tokenOf() {
  return location.hash.slice(1).replace(/(%[0-9a-f]{2}|[^\w-])+$/i, '');
}

/** Return the token of somebody who comes from a platform or by a public link; null if this cannot be. */
async function join() {
  const asked = new URLSearchParams(location.search);
  const params = Object.fromEntries(PLATFORM.filter((name) => asked.get(name)).map((name) => [name, asked.get(name)]));
  const mturk = location.pathname.endsWith('/mturk');
  const place = (view) => $('main').replaceChildren(view.element);
  if (!Object.keys(params).length) {
    if (!location.pathname.endsWith('/join')) {
      place(ends.badLink());
      return null;
    }
    await new Promise((begin) => { place(ends.welcome(begin)); });
  }
  setShortcuts([]);
  const api = new Api('');
  try {
    const { token } = await api.insist(() => api.post('api/join', { params }), (failure) => place(ends.unreachable(() => api.retry(), failure)));
    // MTurk's frame keeps its address: the parameters are needed again to submit.
    if (!mturk) history.replaceState(null, '', new URL(`./#${token}`, location.href));
    return token;
  } catch (failure) {
    if (failure.code === 'preview') place(ends.preview());
    else place([401, 403, 404].includes(failure.status) ? ends.badLink(failure.message) : ends.broken(failure.message, () => location.reload()));
    return null;
  }
}

const token = tokenOf() || (await join());
if (token) {
  const desk = new Desk(token);
  $('help').addEventListener('click', showHelp);
  $('withdraw').addEventListener('click', () => desk.withdraw());
  $('again').addEventListener('click', () => desk.api.retry());
  $('toast-close').addEventListener('click', () => { $('toast').hidden = true; });
  await desk.start();
}
