// The owner's page: how the study goes, who takes part, what the answers say so far, and what to do next.

import { Api, Failure } from './api.js';
import { ask, button, h, icon, say } from './dom.js';
import { counted, number, results, table } from './results.js';

const EVERY = 15_000; // ms between updates
const FLAGS = {
  played: 'not heard to the end', trap: 'trap question wrong', gold: 'gold question wrong', skipped: 'checks skipped', variance: 'always the same answer',
  fast: 'quicker than the sounds', unfinished: 'not finished', sessions: 'too many sessions', design: 'rule of the design',
};
const STATES = { invited: 'invited', started: 'under way', finished: 'finished', refused: 'did not agree', screened_out: 'screened out', withdrawn: 'withdrawn' };
const EXPORTS = [['csv', 'CSV'], ['jsonl', 'JSONL'], ['label-studio', 'Label Studio JSON']];
const $ = (id) => document.getElementById(id);

function tile(name, value, more) {
  return h('div', {}, h('dt', {}, name), h('dd', {}, String(value), more ? h('small', {}, ` ${more}`) : null));
}

function mark(value, yes, no) {
  if (value === null || value === undefined) return '–';
  return h('span', { class: `mark ${value ? 'good' : 'bad'}` }, icon(value ? 'check' : 'alert'), ` ${value ? yes : no}`);
}

function ago(seconds) {
  if (!seconds) return '–';
  const minutes = Math.round((Date.now() / 1000 - seconds) / 60);
  if (minutes < 1) return 'just now';
  if (minutes < 60) return `${minutes} min ago`;
  return minutes < 2880 ? `${Math.round(minutes / 60)} h ago` : `${Math.round(minutes / 1440)} days ago`;
}

class Owner {
  constructor(token) {
    this.api = new Api(token);
    this.parts = Object.fromEntries(['progress', 'people', 'results', 'invite', 'export', 'close'].map((name) => [name, h('section', { 'aria-labelledby': `${name}-title` })]));
    this.heads = { progress: 'Progress', people: 'People', results: 'Results so far', invite: 'Invite people', export: 'Export', close: 'Close the study' };
    this.shown = '';
  }

  async start() {
    $('main').replaceChildren(h('div', { class: 'owner' }, h('h1', { tabindex: '-1' }, 'Your study'), Object.values(this.parts)));
    this.fill('results', [h('p', { class: 'soft' }, 'Computing…')]);
    this.inviting();
    this.exporting();
    await this.update();
    this.refreshResults();
    setInterval(() => { if (document.visibilityState === 'visible') this.update(); }, EVERY);
  }

  fill(name, content) {
    this.parts[name].replaceChildren(h('h2', { id: `${name}-title` }, this.heads[name]), ...content.flat(2).filter((one) => one !== null && one !== undefined));
  }

  /** Load the state and the people; parts that did not change stay as they are, so that the focus is not lost. */
  async update() {
    let status;
    let people;
    try {
      [status, { people }] = await Promise.all([this.api.get('api/owner/status'), this.api.get('api/owner/people')]);
    } catch (failure) {
      this.failed(failure);
      return;
    }
    $('updated').textContent = `Updated ${new Date().toLocaleTimeString([], { hour: '2-digit', minute: '2-digit' })}`;
    const text = JSON.stringify([status, people]);
    if (text === this.shown) return;
    this.shown = text;
    this.status = status;
    $('title').textContent = status.title;
    document.title = `${status.title} · your study`;
    this.progress(status, people);
    this.people(people);
    this.closing(status.status.state);
  }

  failed(failure) {
    if (!(failure instanceof Failure)) throw failure;
    const ended = failure.status === 401 || failure.status === 404;
    $('updated').textContent = failure.status === 0 ? 'No connection; trying again' : ended ? '' : failure.message;
    if (!ended) return;
    const whole = 'Open the whole link that “overtone studio serve” printed, with all characters after the #.';
    $('main').replaceChildren(h('div', { class: 'screen end' }, h('h1', { tabindex: '-1' }, 'This link is not valid'),
      failure.status === 401 && failure.message ? h('p', { class: 'big' }, failure.message) : null, h('p', { class: 'big' }, whole)));
  }

  progress(found, people) {
    const { status } = found;
    const all = status.answers + status.missing;
    const count = (state) => people.filter((one) => one.state === state).length;
    const blocked = Object.entries(found.blocked);
    this.fill('progress', [
      h('div', { class: 'headline' }, h('p', { class: 'big' }, h('strong', {}, `${status.answers} of ${all}`), ' answers', status.state === 'closed' ? ' · closed' : ''),
        h('progress', { max: String(all || 1), value: String(status.answers), 'aria-label': 'Answers' })),
      h('dl', { class: 'tiles' },
        tile('Finished', count('finished'), `of ${counted(people.length, 'person', 'people')}`), tile('Under way', count('started')), tile('Invited, not begun', count('invited')),
        tile('Usable sessions', found.usable, `of ${found.sessions}`), tile('To be paid', found.payable, `of ${found.sessions}`),
        tile('Time a screen', found.seconds === null ? '–' : `${number(found.seconds, 1)} s`), tile('Time a person', found.minutes === null ? '–' : `${number(found.minutes, 1)} min`),
        tile('Reserved places', status.reserved), status.takes ? tile('Recordings', status.takes) : null),
      Object.keys(found.flags).length ? h('p', {}, 'Flags: ', Object.entries(found.flags).map(([rule, times]) => h('span', { class: 'pill' }, `${FLAGS[rule] ?? rule} × ${times}`))) : null,
      blocked.length ? h('div', { class: 'warning' }, icon('alert'), h('div', {}, h('p', {}, 'Some sounds are missing or have changed. Nobody gets them until the files are restored.'), blocked.map(([unit, why]) => h('p', {}, `${unit}: ${why}`)))) : null,
    ]);
  }

  people(people) {
    const columns = [['Person'], ['State'], ['Answers', true], ['Seconds a screen', true], ['Headphones'], ['Usable'], ['Pay'], ['Flags'], ['Last answer'], [h('span', { class: 'visually-hidden' }, 'Actions')]];
    const rows = people.map((one) => [
      h('span', {}, one.label, one.source !== 'invite' ? h('small', { class: 'soft' }, ` ${one.source}`) : null), STATES[one.state] ?? one.state, one.done, number(one.seconds, 1),
      mark(one.headphones, 'passed', 'failed'), mark(one.usable, 'yes', 'no'), mark(one.payable, 'yes', 'no'),
      Object.entries(one.flags).map(([rule, times]) => h('span', { class: 'pill' }, (FLAGS[rule] ?? rule) + (times > 1 ? ` × ${times}` : ''))), ago(one.last),
      one.state === 'withdrawn' ? '' : h('div', { class: 'row-actions' }, button('End link', () => this.revoke(one), { class: 'quiet', 'aria-label': `End the link of ${one.label}` }), button('Delete', () => this.remove(one), { class: 'danger', 'aria-label': `Delete ${one.label}` })),
    ]);
    this.fill('people', [people.length ? table('Everybody who was invited', columns, rows) : h('p', { class: 'soft' }, 'Nobody is invited yet.')]);
  }

  async refreshResults() {
    try {
      this.fill('results', [results(await this.api.get('api/owner/agreement', { timeout: 120_000 })), this.again()]);
    } catch (failure) {
      this.fill('results', [h('p', { class: 'soft' }, failure.message), this.again()]);
    }
  }

  again() {
    const press = button('Compute again', () => {
      press.disabled = true;
      press.textContent = 'Computing…';
      this.refreshResults();
    }, { class: 'quiet' });
    return h('p', {}, press);
  }

  inviting() {
    const count = h('input', { type: 'number', min: 1, max: 1000, value: '20' });
    const role = h('select', {}, ['rater', 'speaker', 'reviewer'].map((name) => h('option', { value: name }, name)));
    const made = h('div', {});
    const invite = button('Make links', async () => {
      const found = await this.act('invite', { count: Number(count.value), role: role.value });
      if (!found) return;
      const base = new URL('./', location.href);
      const lines = found.invitations.map(({ label, token }) => `${label},${new URL(`#${token}`, base)}`);
      const links = h('textarea', { class: 'links', rows: Math.min(10, lines.length + 1), readonly: true, 'aria-label': 'Links' }, lines.join('\n'));
      made.replaceChildren(
        h('p', {}, 'These links are shown only now: copy or save them. Each is for one person.'), links,
        h('p', { class: 'toolbar' }, button('Save as CSV', () => this.save(new Blob([`label,link\n${lines.join('\n')}\n`], { type: 'text/csv' }), 'links.csv'), { class: 'quiet' })),
      );
      links.focus();
      links.select();
      await this.update();
    }, { class: 'primary' });
    this.fill('invite', [h('div', { class: 'toolbar' }, h('label', {}, 'People', count), h('label', {}, 'Role', role), invite), made]);
  }

  exporting() {
    const buttons = EXPORTS.map(([format, name]) => button(name, async () => {
      try {
        const response = await this.api.get(`api/owner/export?format=${format}`, { raw: true, timeout: 120_000 });
        const suffix = /filename="[^"]*\.([a-z.]+)"/.exec(response.headers.get('Content-Disposition') ?? '')?.[1] ?? format;
        this.save(await response.blob(), `answers.${suffix}`);
      } catch (failure) {
        await this.tell(failure.message);
      }
    }, { class: 'quiet' }));
    this.fill('export', [h('p', { class: 'soft' }, 'Answers under pseudonyms. If somebody withdraws later, delete their rows from what you exported.'), h('div', { class: 'toolbar' }, buttons)]);
  }

  closing(state) {
    if (state === 'closed') {
      this.fill('close', [h('p', {}, icon('check'), ' The study is closed. Labels are in the runs; “overtone studio sync” writes them again.')]);
      return;
    }
    this.fill('close', [
      h('p', { class: 'soft' }, 'Closing ends all sessions, erases payment ids and writes the labels into the runs.'),
      h('div', { class: 'toolbar' }, button('Close the study', async () => {
        const answer = await ask({
          title: 'Close the study?', body: [h('p', {}, 'People who are under way cannot continue. This cannot be undone.')],
          answers: [{ value: 'yes', label: 'Close the study', style: 'danger' }, { value: '', label: 'Keep it open', style: 'primary' }],
        });
        const closed = answer && (await this.act('close', {}));
        if (!closed) return;
        await this.update();
        await this.tell(closed.runs.join('\n') || 'The study is closed.');
      }, { class: 'danger' })),
    ]);
  }

  async revoke({ label }) {
    const answer = await ask({
      title: `End the link of ${label}?`, body: [h('p', {}, 'The person cannot continue. Answers given so far stay.')],
      answers: [{ value: 'yes', label: 'End the link', style: 'danger' }, { value: '', label: 'Keep it', style: 'primary' }],
    });
    if (answer && (await this.act(`person/${label}/revoke`, {}))) await this.update();
  }

  async remove({ label, done }) {
    const answer = await ask({
      title: `Delete everything of ${label}?`,
      body: [h('p', {}, `${done} answers, recordings and labels in the runs are deleted, as after a withdrawal. This cannot be undone.`)],
      answers: [{ value: 'yes', label: 'Delete', style: 'danger' }, { value: '', label: 'Keep', style: 'primary' }],
    });
    const gone = answer && (await this.act(`person/${label}/delete`, {}));
    if (!gone) return;
    await this.update();
    const exports = gone.exports?.length ? ` Exports that still hold them: ${gone.exports.join(', ')}.` : '';
    await this.tell(`${gone.answers} answers and ${gone.takes} recordings of ${label} are deleted.${exports}`);
  }

  async act(path, body) {
    try {
      return await this.api.post(`api/owner/${path}`, body, { timeout: 120_000 });
    } catch (failure) {
      await this.tell(failure.message);
      return null;
    }
  }

  tell(text) {
    say(text);
    return ask({ title: this.status?.title ?? 'Your study', body: text.split('\n').map((line) => h('p', {}, line)), answers: [{ value: 'ok', label: 'OK', style: 'primary' }] });
  }

  save(blob, name) {
    const link = h('a', { href: URL.createObjectURL(blob), download: name });
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
  }
}

/** Return the token of the address. Owners may choose their own, with any characters. */
function tokenOf() {
  try {
    return decodeURIComponent(location.hash.slice(1)).trim();
  } catch {
    return location.hash.slice(1);
  }
}

const token = tokenOf();
addEventListener('hashchange', () => location.reload());
const owner = new Owner(token);
if (token) await owner.start();
else owner.failed(new Failure('', 401, ''));
