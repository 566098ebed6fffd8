// Sessions: list, details, and ending them.

import { get, post } from './api.js';
import { announce, byId, confirm, h, say } from './dom.js';
import { ago, count, duration, many } from './format.js';
import { Table } from './table.js';
import { unseen } from './calls.js';

const TYPED_MS = 250;
/// The classes for a task's status.
const TASKS = { input_required: 'tag warn', completed: 'tag good', failed: 'tag bad' };

export class Sessions {
    constructor(refreshSoon) {
        this.refreshSoon = refreshSoon;
        this.open = null;
        this.table = new Table([
            { name: 'Client', kind: 'clip', cell: ({ client }) => client ?? 'not yet named' },
            { name: 'Principal', kind: 'mono', cell: ({ principal }) => principal },
            { name: 'Session', extra: true, kind: 'mono', cell: ({ id }) => ({ text: `${id.slice(0, 10)}…`, title: id }) },
            { name: 'Revision', extra: true, cell: ({ revision }) => revision },
            { name: 'Node', extra: true, kind: 'mono', cell: ({ node }) => node },
            { name: 'State', cell: ({ live }) => h('span', { class: live ? 'tag good' : 'tag' }, live ? 'in memory' : 'asleep') },
            { name: 'Task', extra: true, cell: ({ task }) => (task ? h('span', { class: TASKS[task] ?? 'tag' }, task.replace('_', ' ')) : '–') },
            { name: 'Calls', kind: 'num', cell: ({ in_flight: calls }) => count(calls) },
            { name: 'Streams', extra: true, kind: 'num', cell: ({ streams, streams_read: read }) => (
                { text: count(read), title: `${count(streams)} open, ${count(read)} of them read by the client` }) },
            { name: 'Used', kind: 'num', cell: ({ idle_ms: idle }) => used(idle) },
        ], {
            id: 'sessions',
            caption: 'Sessions; arrow keys move, Enter opens, Tab reaches the button that ends the session',
            key: ({ id }) => id,
            empty: 'There are no sessions.',
            open: (session) => this.show(session.id),
            action: {
                short: () => 'End',
                name: ({ id, client }) => `End session ${id} of ${client ?? 'an unknown client'}`,
                run: (session) => this.end(session),
            },
        });
        this.box = h('input', { id: 'filter', type: 'search', autocomplete: 'off', spellcheck: 'false',
            maxlength: 128, placeholder: 'id, client, revision, principal, task status' });
        this.note = h('span', { class: 'quiet', role: 'status', 'aria-live': 'polite' });
        this.unseen = unseen();
        this.detail = h('aside', { class: 'panel detail', 'aria-label': 'Session', tabindex: '-1', hidden: true });
        this.beside = h('div', { class: 'beside' },
            h('div', { class: 'panel' }, h('header', {}, h('h2', {}, 'Sessions'), this.note), this.table.element), this.detail);
        byId('sessions').append(
            h('div', { class: 'filter' }, h('label', { for: 'filter' }, 'Filter'), this.box), this.unseen.element, this.beside);
        this.box.addEventListener('input', () => {
            clearTimeout(this.typed);
            this.typed = setTimeout(refreshSoon, TYPED_MS);
        });
        this.detail.addEventListener('keydown', (event) => {
            if (event.key === 'Escape') this.close();
        });
    }

    async refresh() {
        const filter = this.box.value.trim();
        const { items, total, unseen } = await get(`sessions?filter=${encodeURIComponent(filter)}`);
        this.table.options.empty = filter ? 'No session matches.' : 'There are no sessions.';
        // Sorts by minutes, because active sessions would otherwise change places with every refresh.
        const minutes = ({ idle_ms: idle }) => Math.floor(idle / 60_000);
        items.sort((one, other) => minutes(one) - minutes(other) || (one.id < other.id ? -1 : 1));
        this.table.update(items, total);
        this.table.select(this.open);
        say(this.note, filter ? `${many(total, 'session matches', 'sessions match')}` : many(total, 'session'));
        this.unseen.update(unseen);
        if (this.open) await this.#refreshDetail();
    }

    async show(id) {
        this.open = id;
        this.table.select(id);
        await this.#refreshDetail();
        if (this.open) this.detail.focus();
    }

    close() {
        const key = this.open;
        this.open = null;
        this.detail.hidden = true;
        this.beside.classList.remove('open');
        this.table.select(null);
        this.table.focus(key);
    }

    async end({ id, client }) {
        const sure = await confirm('End this session?',
            `${client ?? 'The client'} loses session ${id}. Shoal cancels its calls and answers its next request with 404.`, 'End session');
        if (!sure) return;
        const { node } = await post(`sessions/${encodeURIComponent(id)}/end`);
        announce(`Session ${id} was ended on ${node}.`);
        if (this.open === id) this.close();
        this.refreshSoon();
    }

    async #refreshDetail() {
        let found;
        try {
            found = await get(`sessions/${encodeURIComponent(this.open)}`);
        } catch (error) {
            if (error.status !== 404) throw error;
            announce('The session has ended.');
            return this.close();
        }
        const had = this.detail.contains(document.activeElement) && document.activeElement.dataset.does;
        this.detail.replaceChildren(...this.#parts(found));
        this.detail.hidden = false;
        this.beside.classList.add('open');
        if (had) this.detail.querySelector(`[data-does="${had}"]`)?.focus();
    }

    #parts(found) {
        const { session, node } = found;
        const close = h('button', { type: 'button', class: 'small', 'data-does': 'close' }, 'Close');
        close.addEventListener('click', () => this.close());
        const end = h('button', { type: 'button', class: 'small danger', 'data-does': 'end' }, 'End session');
        end.addEventListener('click', () => this.end(session));
        const facts = [
            ['Client', session.client ?? 'not yet named'], ['Principal', session.principal], ['Id', session.id],
            ['Revision', session.revision ?? '–'], ['Node', node], ['State', session.live ? 'in memory' : 'asleep in the store'],
            ['Transport', session.task ? `a task: ${session.task.replace('_', ' ')}` : session.single_stream ? 'one stream' : 'Streamable HTTP'],
            ['Used', used(session.idle_ms).text], ['Epoch', String(session.epoch)], ['Log level', found.log_level ?? '–'],
        ];
        const streams = found.streams.map((stream) =>
            `${stream.standalone ? 'standalone' : 'of a request'}, at ${stream.last}, ${stream.read ? 'being read' : 'nobody reads'}`);
        const calls = found.calls.map((call) => `${call.target ?? call.method}, ${duration(call.age_ms)}, ${call.worker ?? 'no worker yet'}`);
        const left = found.subscriptions_total - found.subscriptions.length;
        const subscriptions = left > 0 ? [...found.subscriptions, `and ${left} more`] : found.subscriptions;
        return [
            h('header', {}, h('h2', {}, 'Session'), h('div', { class: 'buttons' }, end, close)),
            h('dl', {}, ...facts.flatMap(([name, value]) => [h('dt', {}, name), h('dd', {}, value)])),
            ...list('Running calls', calls), ...list('Streams', streams), ...list('Subscriptions', subscriptions),
        ];
    }
}

function list(title, texts) {
    const items = texts.map((text) => h('li', {}, text));
    return [h('h3', {}, title), items.length ? h('ul', {}, ...items) : h('p', { class: 'none' }, 'None.')];
}

function used(idle) {
    return ago(Date.now() - idle);
}
