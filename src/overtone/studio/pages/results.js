// The results so far, for the owner: systems with intervals, what decides a comparison, agreement, people beside judges.

import { h } from './dom.js';

/** Return a number with a fixed number of digits; "–" if there is none. */
export function number(value, digits = 2) {
  return value === null || value === undefined || !Number.isFinite(value) ? '–' : value.toFixed(digits).replace('-', '−');
}

/** Return a number with its 95 % interval, e.g. "3.42 (3.10 to 3.71)". */
export function interval({ value, low, high }, digits = 2) {
  const range = Number.isFinite(low) && Number.isFinite(high) && low !== null && high !== null ? ` (${number(low, digits)} to ${number(high, digits)})` : '';
  return number(value, digits) + range;
}

/** Return a number with its noun, e.g. "1 person" or "7 people". */
export function counted(n, noun, plural = `${noun}s`) {
  return `${n} ${n === 1 ? noun : plural}`;
}

export function percent(share) {
  return share === null || share === undefined ? '–' : `${Math.round(100 * share)} %`;
}

/** Return a table that scrolls by itself on a narrow screen. `columns`: [heading, is a number]. */
export function table(caption, columns, rows) {
  const head = columns.map(([name, numeric]) => h('th', { scope: 'col', class: numeric ? 'number' : null }, name));
  const body = rows.map((row) => h('tr', {}, row.map((cell, at) => h(at ? 'td' : 'th', { scope: at ? null : 'row', class: columns[at][1] ? 'number' : null }, cell))));
  return h('div', { class: 'tablebox', tabindex: '0', role: 'region', 'aria-label': caption },
    h('table', { class: 'data' }, h('caption', { class: 'visually-hidden' }, caption), h('thead', {}, h('tr', {}, head)), h('tbody', {}, body)));
}

function gap(row) {
  const { gap: difference, first, second } = row;
  const lead = difference.value === null ? `${first} and ${second}` : `${first} minus ${second}: ${interval(difference)}`;
  const acceptable = row.acceptable ? ` Acceptable replies: ${first} ${percent(row.acceptable[0])}, ${second} ${percent(row.acceptable[1])}.` : '';
  const certain = row.p !== null && row.decision.verdict === 'decided' && !row.caution;
  return h('p', { class: certain ? 'verdict decided' : 'verdict' }, h('strong', { dir: 'auto' }, lead), `: ${[row.conclusion, row.caution].filter(Boolean).join('; ')}.`, acceptable);
}

function agreement(question) {
  const facts = [
    ['Krippendorff’s α', question.alpha.value === null ? 'needs recordings with answers of two people' : `${interval(question.alpha)}, ${question.level}`],
    ['Same answer', percent(question.percent)],
    ['One person against the others', question.ceiling.exact === null ? '–' : `${percent(question.ceiling.exact)}, κ ${number(question.ceiling.kappa)}`],
    ['Same answer to a repeated screen', percent(question.repeated)],
  ];
  return h('dl', { class: 'tiles' }, facts.filter(([, text]) => text !== '–').map(([name, text]) => h('div', {}, h('dt', {}, name), h('dd', {}, h('small', {}, text)))));
}

function severities(rows) {
  if (!rows.length) return null;
  return h('details', {}, h('summary', {}, 'Severity of raters'), h('p', { class: 'soft' }, 'How much higher (+) or lower (−) a person rates than the average person, with the standard error.'),
    table('Severity of raters', [['Person'], ['Answers', true], ['Difference', true], ['Standard error', true]], rows.map((row) => [row.rater, row.answers, number(row.value), number(row.error)])));
}

function section(question) {
  const systems = question.systems.map((row) => [row.system, row.answers, interval(row.mean), interval(row.everyone)]);
  return h(
    'div', {}, h('h3', { dir: 'auto' }, question.label),
    h('p', { class: 'soft' }, `${counted(question.answers, 'answer')} by ${counted(question.raters, 'person', 'people')} to ${counted(question.units, 'recording or pair', 'recordings or pairs')}`),
    systems.length ? table(`${question.label}: systems`, [['System'], ['Answers', true], ['Mean (95 % interval)', true], ['With excluded sessions', true]], systems) : null,
    question.gaps.map(gap), h('h3', {}, 'Agreement'), agreement(question), severities(question.severities),
  );
}

function judges(rows) {
  if (!rows.length) return null;
  const cells = rows.map(([run, row]) => [row.dimension.label ?? row.dimension.key ?? '', run, row.judge, row.replies, interval(row.alpha), number(row.spearman), number(row.ceiling), interval(row.bias)]);
  return h('div', {}, h('h3', {}, 'People against judges'), h('p', { class: 'soft' }, 'α between a judge and the mean of people; the ceiling is α between people.'),
    table('People against judges', [['Question'], ['Run'], ['Judge'], ['Replies', true], ['α (95 % interval)', true], ['ρ', true], ['Ceiling', true], ['Bias of the judge', true]], cells));
}

/** Return the contents of the section "Results so far". */
export function results(found) {
  if (!found.questions.length) return [h('p', { class: 'soft' }, 'No answers to compare yet.')];
  return [
    h('p', {}, `${found.usable} of ${counted(found.sessions, 'session')} ${found.usable === 1 ? 'is' : 'are'} usable.`), found.questions.map(section), judges(found.judges),
    found.notes.map((note) => h('p', { class: 'soft', dir: 'auto' }, note)),
  ].flat(2).filter(Boolean);
}
