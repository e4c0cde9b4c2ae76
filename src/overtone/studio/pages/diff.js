// The difference of two texts by words: what was deleted and what was inserted, in reading order.

/** Return the words of a text, each with the space after it. */
function words(text) {
  return text.match(/\s*\S+\s*/g) ?? [];
}

/** Return [kind, text] pairs; kind is "same", "del" or "ins". */
export function difference(before, after) {
  const a = words(before);
  const b = words(after);
  const rows = Array.from({ length: a.length + 1 }, () => new Uint16Array(b.length + 1));
  for (let i = a.length - 1; i >= 0; i -= 1) {
    for (let j = b.length - 1; j >= 0; j -= 1) rows[i][j] = a[i] === b[j] ? rows[i + 1][j + 1] + 1 : Math.max(rows[i + 1][j], rows[i][j + 1]);
  }
  const parts = [];
  const add = (kind, text) => {
    if (parts.at(-1)?.[0] === kind) parts.at(-1)[1] += text;
    else parts.push([kind, text]);
  };
  let i = 0;
  let j = 0;
  while (i < a.length || j < b.length) {
    if (i < a.length && j < b.length && a[i] === b[j]) {
      add('same', a[i]);
      i += 1;
      j += 1;
    } else if (j >= b.length || (i < a.length && rows[i + 1][j] >= rows[i][j + 1])) add('del', a[i++]);
    else add('ins', b[j++]);
  }
  return parts;
}
