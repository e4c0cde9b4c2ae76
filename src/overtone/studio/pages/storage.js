// What the page keeps in the browser: unsent answers and what was heard of the present screen, under the hash of the
// link's token, so that several people can use one browser. Where storage is forbidden, memory serves until the page
// is closed.

const PREFIX = 'overtone:';
const memory = new Map();
let durable = true;
try {
  localStorage.setItem(`${PREFIX}test`, '1');
  localStorage.removeItem(`${PREFIX}test`);
} catch {
  durable = false;
}

/** Whether what is kept survives a reload. */
export function isDurable() {
  return durable;
}

/** Return a short name for a token from which it cannot be guessed (crypto.subtle is missing without https). */
export function nameOf(token) {
  let a = 0xdeadbeef;
  let b = 0x41c6ce57;
  for (const character of token) {
    const code = character.codePointAt(0);
    a = Math.imul(a ^ code, 2654435761);
    b = Math.imul(b ^ code, 1597334677);
  }
  return (a >>> 0).toString(36) + (b >>> 0).toString(36);
}

export function read(key, otherwise) {
  try {
    const text = durable ? localStorage.getItem(PREFIX + key) : memory.get(key);
    return text ? JSON.parse(text) : otherwise;
  } catch {
    return otherwise; // damaged by something else of this origin: as good as nothing
  }
}

export function write(key, value) {
  const text = JSON.stringify(value);
  try {
    if (durable) localStorage.setItem(PREFIX + key, text);
  } catch {
    durable = false; // full: keep everything in memory from now on
    for (let at = 0; at < localStorage.length; at += 1) {
      const name = localStorage.key(at);
      if (name.startsWith(PREFIX)) memory.set(name.slice(PREFIX.length), localStorage.getItem(name));
    }
  }
  if (!durable) memory.set(key, text);
}

export function remove(key) {
  memory.delete(key);
  if (durable) localStorage.removeItem(PREFIX + key);
}

/** Forget everything under a name, e.g. of a person who withdrew. */
export function removeAll(name) {
  const keys = durable ? Object.keys(localStorage).filter((key) => key.startsWith(PREFIX)).map((key) => key.slice(PREFIX.length)) : [];
  for (const key of [...keys, ...memory.keys()]) if (key.endsWith(`:${name}`)) remove(key);
}

/** Call `run(value)` when another tab writes this key. */
export function watch(key, run) {
  addEventListener('storage', (event) => {
    if (event.key === PREFIX + key && event.newValue) run(JSON.parse(event.newValue));
  });
}
