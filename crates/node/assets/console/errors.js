// Requests that were refused or failed, and tools that failed.

import { get } from './api.js';
import { byId, h, say } from './dom.js';
import { ago, many } from './format.js';
import { Table } from './table.js';
import { unseen } from './calls.js';

export class Errors {
    constructor() {
        this.table = new Table([
            { name: 'When', kind: 'num', cell: ({ at_ms: at }) => ago(at) },
            { name: 'Code', kind: 'num', cell: ({ code, tool_failed: failed }) => (failed ? { text: 'tool', title: 'the tool reports an error (isError)' } : String(code)) },
            { name: 'Target', kind: 'clip', cell: ({ target }) => target },
            { name: 'Message', kind: 'wrap', cell: ({ message }) => message },
            { name: 'Method', kind: 'clip', cell: ({ method }) => method ?? 'unread' },
            { name: 'Session', kind: 'mono', cell: ({ session }) => (session ? { text: `${session.slice(0, 10)}…`, title: session } : '–') },
            { name: 'Trace', kind: 'mono', cell: ({ trace }) => trace },
            { name: 'Node', kind: 'mono', cell: ({ node }) => node },
        ], { id: 'errors', caption: 'Recent errors, the newest first', key: (error) => error.key, empty: 'No request was refused or failed.' });
        this.note = h('span', { class: 'quiet' });
        this.unseen = unseen();
        byId('errors').append(this.unseen.element,
            h('div', { class: 'panel' }, h('header', {}, h('h2', {}, 'Recent errors'), this.note), this.table.element));
    }

    async refresh() {
        const { items, total, unseen } = await get('errors');
        const seen = new Map();
        for (const error of items) {
            const alike = `${error.node} ${error.at_ms} ${error.code} ${error.message}`;
            const before = seen.get(alike) ?? 0;
            seen.set(alike, before + 1);
            error.key = `${alike} ${before}`;
        }
        this.table.update(items, total);
        say(this.note, `the newest ${many(total, 'error')}`);
        this.unseen.update(unseen);
    }
}
