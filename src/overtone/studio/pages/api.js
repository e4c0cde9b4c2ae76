// Requests to the server, and the queue that keeps answers until the server has them.
//
// An answer is written to the browser's storage before it is sent. It leaves the queue when the server has confirmed
// it. Its client key makes a second delivery harmless, so whatever happens in between (lost network, restarted server,
// reload, second tab), the answer is sent again and counted once.

import { isDurable, nameOf, read, write } from './storage.js';

const TIMEOUT = 20_000; // ms until a request without an answer counts as lost
const FIRST_WAIT = 500;
const LONGEST_WAIT = 15_000;
const GATHER = 250; // ms in which several changes become one request

/** A request that failed. `status` 0: the server was not reached. `code` names the reason in the server's words. */
export class Failure extends Error {
  constructor(message, status, code) {
    super(message);
    this.status = status;
    this.code = code;
  }

  /** Whether sending the same again later can help. */
  get passes() {
    return this.status === 0 || this.status === 408 || this.status === 429 || this.status >= 500;
  }
}

/** Return a server's message as a sentence. */
function sentence(message) {
  return message.charAt(0).toUpperCase() + message.slice(1) + (/[.?!]$/.test(message) ? '' : '.');
}

export function newKey() {
  return [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, '0')).join('');
}

export function pause(ms) {
  return new Promise((resolve) => { setTimeout(resolve, ms); });
}

export class Api {
  constructor(token) {
    this.token = token;
    this.name = nameOf(token);
    this.waiters = new Set();
  }

  /** Return the answer to a request: parsed JSON, or the response itself with `raw`. Raises Failure. */
  async call(method, path, body, { raw = false, type = 'application/json', timeout = TIMEOUT, headers: more = {} } = {}) {
    const headers = { ...more, ...(this.token ? { Authorization: `Bearer ${this.token}` } : {}) };
    if (body !== undefined) headers['Content-Type'] = type;
    const sent = body === undefined || body instanceof Blob ? body : JSON.stringify(body);
    const stop = new AbortController();
    const timer = setTimeout(() => stop.abort(), timeout);
    let response;
    try {
      response = await fetch(path, { method, headers, body: sent, signal: stop.signal, cache: 'no-store' });
      if (response.ok) return raw ? response : await response.json();
    } catch {
      throw new Failure('The server cannot be reached.', 0, 'network');
    } finally {
      clearTimeout(timer);
    }
    const { error } = await response.json().catch(() => ({}));
    throw new Failure(sentence(error?.message ?? `the server answered ${response.status}`), response.status, error?.code ?? '');
  }

  get(path, options) {
    return this.call('GET', path, undefined, options);
  }

  post(path, body, options) {
    return this.call('POST', path, body, options);
  }

  /** Repeat a request until the server can be reached. `tell(seconds)` is called before each wait. */
  async insist(request, tell) {
    for (let wait = FIRST_WAIT; ; wait = Math.min(wait * 2, LONGEST_WAIT)) {
      try {
        return await request();
      } catch (failure) {
        if (!(failure instanceof Failure) || !failure.passes) throw failure;
        tell(failure, wait);
        let again;
        await Promise.race([pause(wait), new Promise((resolve) => { again = resolve; this.waiters.add(again); })]);
        this.waiters.delete(again);
      }
    }
  }

  /** Try again at once whatever waits for the server. */
  retry() {
    for (const again of this.waiters) again();
  }
}

/** Answers on their way to the server, in order. Listeners hear `(unsent, waiting)` after every change. */
export class Queue {
  constructor(api) {
    this.api = api;
    this.key = `queue:${api.name}`;
    this.listeners = [];
    this.waiting = false; // for the network
    this.sending = Promise.resolve();
    this.held = false; // another tab sends
    this.inFlight = null;
    this.awaited = new Map(); // client key → what waits for the server's answer
    this.refused = () => {};
    addEventListener('online', () => api.retry());
    document.addEventListener('visibilitychange', () => api.retry());
    addEventListener('beforeunload', (event) => {
      if (!isDurable() && this.items.length) event.preventDefault();
    });
  }

  get items() {
    return read(this.key, []);
  }

  set items(items) {
    write(this.key, items);
    this.tell();
  }

  tell() {
    const unsent = this.items.length;
    for (const listener of this.listeners) listener(unsent, this.waiting);
  }

  /** Return the answers of a slot that the server may not have yet. */
  unsent(slot) {
    return Object.assign({}, ...this.items.filter((item) => item.body.slot === slot).map((item) => item.body.values ?? {}));
  }

  /** Keep answers to a slot and send them soon. Changes that follow quickly share one request. */
  save(slot, values, more) {
    const items = this.items;
    const last = items.at(-1);
    if (last && last.path === 'api/answer' && last.body.slot === slot && !last.body.done && last.body.client_key !== this.inFlight) {
      last.body = { ...last.body, ...more, values: { ...last.body.values, ...values } };
    } else {
      items.push({ path: 'api/answer', body: { slot, client_key: newKey(), values, ...more, done: false } });
    }
    this.items = items;
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.flush(), GATHER);
  }

  /** Keep a request that ends a screen and send it now. Return the server's answer, however long that takes. */
  finish(path, body) {
    const whole = { client_key: newKey(), ...body };
    const replaced = ({ body: other }) => other.slot === body.slot && !other.done && other.client_key !== this.inFlight;
    this.items = [...this.items.filter((item) => !(body.slot && replaced(item))), { path, body: whole }];
    const answer = new Promise((resolve, reject) => { this.awaited.set(whole.client_key, { resolve, reject }); });
    this.flush();
    return answer;
  }

  /** Send everything that is kept, in order. */
  flush() {
    clearTimeout(this.timer);
    this.sending = this.sending.catch(() => {}).then(() => this.send()); // an error in one does not stop the next
    return this.sending;
  }

  async send() {
    for (let item = this.items[0]; item && !this.held; item = this.items[0]) {
      const key = item.body.client_key;
      this.inFlight = key;
      let answer = null;
      let failure = null;
      try {
        answer = await this.api.insist(() => this.api.post(item.path, item.body), () => this.wait());
      } catch (error) {
        if (!(error instanceof Failure)) throw error;
        failure = error;
      }
      this.inFlight = null;
      this.waiting = false;
      this.items = this.items.filter((other) => other.body.client_key !== key);
      const waiter = this.awaited.get(key);
      this.awaited.delete(key);
      if (failure) (waiter?.reject ?? this.refused)(failure);
      else waiter?.resolve(answer);
    }
    this.tell();
  }

  wait() {
    this.waiting = true;
    this.tell();
  }
}
