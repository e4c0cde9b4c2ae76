// Takes that the server does not have yet, kept in the browser (IndexedDB), so that neither a lost network nor a reload
// loses a recording. Where the browser forbids that, they are kept until the page is closed.

const NAME = 'overtone-takes';
const memory = new Map();
let opening = null;

function database() {
  opening ??= new Promise((resolve) => {
    try {
      const request = indexedDB.open(NAME, 1);
      request.onupgradeneeded = () => request.result.createObjectStore('takes', { keyPath: 'key' });
      request.onsuccess = () => resolve(request.result);
      request.onerror = () => resolve(null);
    } catch {
      resolve(null);
    }
  });
  return opening;
}

async function run(mode, act) {
  const open = await database();
  if (!open) return null;
  return new Promise((resolve) => {
    const transaction = open.transaction('takes', mode);
    const request = act(transaction.objectStore('takes'));
    transaction.oncomplete = () => resolve(request.result ?? true);
    transaction.onerror = () => resolve(null); // e.g. the browser's storage is full
    transaction.onabort = () => resolve(null);
  });
}

/** Keep a take {key, owner, slot, part, settings, wav} until it is removed. */
export async function keep(take) {
  if ((await run('readwrite', (store) => store.put(take))) === null) memory.set(take.key, take);
}

/** Return the takes of one person that are kept, oldest first. */
export async function kept(owner) {
  const stored = (await run('readonly', (store) => store.getAll())) ?? [];
  const all = [...(Array.isArray(stored) ? stored : []), ...memory.values()];
  return all.filter((take) => take.owner === owner).sort((a, b) => a.at - b.at);
}

export async function remove(key) {
  memory.delete(key);
  await run('readwrite', (store) => store.delete(key));
}

/** Whether closing the page would lose a take. */
export function wouldLose() {
  return memory.size > 0;
}
