// Tools with their statistics, and a form that calls one.

import { get } from './api.js';
import { announce, byId, h, say } from './dom.js';
import { count, latency, many, rate } from './format.js';
import { schemaTable } from './schema.js';
import { Table } from './table.js';
import { ToolCall } from './toolcall.js';
import { unseen } from './calls.js';

const TYPED_MS = 250;
const HINTS = [['read_only', 'read-only', 'changes things'], ['destructive', 'destructive', 'not destructive'],
    ['idempotent', 'idempotent', 'not idempotent'], ['open_world', 'open world', 'closed world']];

export class Tools {
    constructor(refreshSoon) {
        this.refreshSoon = refreshSoon;
        this.open = null;
        this.table = new Table([
            { name: 'Tool', kind: 'clip', cell: ({ name, title }) => ({ text: name, title: title ?? name }) },
            { name: 'Description', extra: true, kind: 'wrap', cell: ({ description }) => firstLine(description) },
            { name: 'Pool', extra: true, cell: ({ pool }) => pool },
            { name: 'Annotations', extra: true, kind: 'wrap', cell: ({ annotations }) => hints(annotations) },
            { name: 'Calls', kind: 'num', cell: ({ outcomes, rate }) => (rate === null ? 'not counted' : count(calls(outcomes))) },
            { name: 'Per second', kind: 'num', cell: (tool) => (tool.rate === null ? '–' : rate(tool.rate)) },
            { name: 'p95', kind: 'num', cell: ({ p50_ms: p50, p95_ms: p95 }) => ({ text: latency(p95), title: `p50 ${latency(p50)}` }) },
            { name: 'Failures', kind: 'num', cell: ({ outcomes }) => failures(outcomes) },
        ], {
            id: 'tools', caption: 'Tools; arrow keys move, Enter opens', key: ({ name }) => name,
            empty: 'There are no tools.', open: (tool) => this.show(tool),
        });
        this.box = h('input', { id: 'tool-filter', type: 'search', autocomplete: 'off', spellcheck: 'false',
            maxlength: 128, placeholder: 'name, title, pool' });
        this.note = h('span', { class: 'quiet', role: 'status', 'aria-live': 'polite' });
        this.unseen = unseen();
        this.detail = h('aside', { class: 'panel detail', 'aria-label': 'Tool', tabindex: '-1', hidden: true });
        this.beside = h('div', { class: 'beside' },
            h('div', { class: 'panel' }, h('header', {}, h('h2', {}, 'Tools'), this.note), this.table.element), this.detail);
        byId('tools').append(h('div', { class: 'filter' }, h('label', { for: 'tool-filter' }, 'Filter'), this.box),
            this.unseen.element, this.beside);
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
        const { items, total, unseen, calls_off: off } = await get(`tools?filter=${encodeURIComponent(filter)}`);
        this.off = off;
        this.table.options.empty = filter ? 'No tool matches.' : 'There are no tools.';
        this.table.update(items, total);
        this.table.select(this.open);
        say(this.note, `${filter ? many(total, 'tool matches', 'tools match') : many(total, 'tool')}, calls of the last 5 minutes`);
        this.unseen.update(unseen);
    }

    /// Opens a tool. Its typed values stay until another tool is opened.
    async show({ name, annotations }) {
        const { pool, definition } = await get(`tools/${encodeURIComponent(name)}`);
        const call = new ToolCall(definition, { annotations, off: this.off, ended: this.refreshSoon });
        const parts = this.#parts(definition, pool, annotations, call);
        this.call?.close();
        this.call = call;
        this.open = name;
        this.table.select(name);
        this.detail.replaceChildren(...parts);
        this.detail.hidden = false;
        this.beside.classList.add('open');
        this.detail.focus();
        announce(`${name} is open.`);
    }

    close() {
        const key = this.open;
        this.call?.close();
        this.call = null;
        this.open = null;
        this.detail.hidden = true;
        this.detail.replaceChildren();
        this.beside.classList.remove('open');
        this.table.select(null);
        this.table.focus(key);
    }

    #parts(definition, pool, annotations, call) {
        const close = h('button', { type: 'button', class: 'small', 'data-does': 'close' }, 'Close');
        close.addEventListener('click', () => this.close());
        const told = typeof definition.description === 'string' ? definition.description : '';
        const title = definition.title ?? definition.annotations?.title;
        const facts = [['Pool', pool], ['Title', typeof title === 'string' ? title : '–'], ['Annotations', hints(annotations)]];
        const { inputSchema: takes, outputSchema: gives } = definition;
        return [
            h('header', {}, h('h2', { class: 'mono' }, definition.name), h('div', { class: 'buttons' }, close)),
            h('p', { class: 'told' }, told || 'The server gives no description.'),
            h('dl', {}, ...facts.flatMap(([name, value]) => [h('dt', {}, name), h('dd', {}, value)])),
            h('h3', {}, 'Call this tool'), call.element,
            h('h3', {}, 'Arguments'), schemaTable(takes ?? {}, 'Arguments'),
            gives ? h('h3', {}, 'Result') : null, gives ? schemaTable(gives, 'Result') : null,
            h('details', {}, h('summary', {}, 'As JSON'), h('pre', { tabindex: '0' }, JSON.stringify(definition, null, 2))),
        ].filter((part) => part !== null);
    }
}

function firstLine(text) {
    return text?.trim().split('\n', 1)[0] || '–';
}

function hints(annotations) {
    const said = HINTS.map(([key, yes, no]) => ({ true: yes, false: no })[annotations[key]]).filter(Boolean);
    return said.join(', ') || '–';
}

function calls({ ok, rejected, failed, cancelled }) {
    return ok + rejected + failed + cancelled;
}

function failures(outcomes) {
    const { rejected, failed, cancelled } = outcomes;
    const all = rejected + failed;
    if (!calls(outcomes)) return '–';
    const share = Math.round(all / calls(outcomes) * 100);
    return { text: `${count(all)} (${share} %)`, title: `${count(rejected)} rejected or failed by the tool, ${count(failed)} failed, ${count(cancelled)} cancelled` };
}
