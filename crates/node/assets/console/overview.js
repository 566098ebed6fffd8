// Nodes, pools and workers, and their load.

import { get } from './api.js';
import { byId, h, say } from './dom.js';
import { count, latency, many, rate, since, time } from './format.js';
import { Plot } from './plot.js';
import { Table } from './table.js';

const STEP_S = 5;
/// Maximum named lost nodes.
const MOST_LOST = 5;

function tag(text, kind, why) {
    return h('span', {}, h('span', { class: `tag ${kind}` }, text), why ? h('span', { class: 'why' }, why) : null);
}

function nodeState(node) {
    if (node.trouble) return tag(node.present ? 'unseen' : 'gone', 'bad', node.trouble);
    if (!node.present) return tag('gone', 'bad');
    if (node.starting) return tag('starting', 'warn');
    if (node.draining) return tag('draining', 'warn');
    if (node.store_trouble) return tag('store away', 'bad', node.store_trouble);
    if (node.waits_for.length) return tag('not ready', 'warn', node.waits_for.join('; '));
    return tag('ready', 'good');
}

function workerState({ worker }, nodes) {
    if (!worker) return tag('no worker', 'bad');
    if (!worker.ready) return tag('not ready', 'warn', worker.detail);
    if (worker.reached_by === 0) return tag('unreachable', 'bad', worker.detail);
    if (worker.avoided_by) return tag('failing', 'bad', `gets no calls from ${many(worker.avoided_by, 'node')} for now`);
    if (worker.reached_by < nodes) return tag('partly linked', 'warn', `reached by ${worker.reached_by} of ${nodes} nodes`);
    return tag('ready', 'good', worker.detail);
}

/// Names the nodes without history in the plots, and why.
function lossesTold(lost, nodes) {
    const told = lost.slice(0, MOST_LOST).map(({ node, until }) => {
        const state = nodes.some(({ id }) => id === node) ? 'does not answer' : 'is gone';
        const part = until === null ? 'the plots do not contain it' : `the plots contain it until ${time((until + STEP_S) * 1000)}`;
        return `${node} ${state}: ${part}.`;
    });
    if (lost.length > told.length) told.push(`And ${many(lost.length - told.length, 'more node', 'more nodes')}.`);
    return told.join(' ');
}

/** Maximum rows of operations that pools leave out or cut. */
const MOST_NOTES = 50;

function notesOf({ name, left_out, cut }) {
    const rows = (what, all) => (all ?? []).map((why) => ({ pool: name, what, why }));
    return [...rows('left out', left_out), ...rows('shortened', cut)];
}

export class Overview {
    constructor() {
        this.nodes = new Table([
            { name: 'Node', kind: 'mono', cell: (node) => node.id },
            { name: 'State', cell: nodeState },
            { name: 'Roles', cell: (node) => node.roles.join(', ') },
            { name: 'Sessions', kind: 'num', cell: (node) => this.#of(node, node.live_sessions + node.sleeping_sessions,
                `${count(node.live_sessions)} in memory, ${count(node.sleeping_sessions)} asleep`) },
            { name: 'Streams', kind: 'num', cell: (node) => this.#of(node, node.streams) },
            { name: 'Requests', kind: 'num', cell: (node) => this.#of(node, node.requests) },
            { name: 'Calls', kind: 'num', cell: (node) => this.#of(node, node.calls) },
            { name: 'Up', kind: 'num', cell: (node) => (node.trouble ? '–' : since(node.uptime_ms)) },
            { name: 'Version', cell: (node) => node.version },
            { name: 'Address', kind: 'mono', cell: (node) => node.address || '–' },
        ], { id: 'nodes', caption: 'Nodes', key: (node) => node.id, empty: 'No node answers.' });
        this.workers = new Table([
            { name: 'Pool', cell: ({ pool }) => pool.name },
            { name: 'Worker', kind: 'mono', cell: ({ worker }) => worker?.id },
            { name: 'State', cell: (row) => workerState(row, this.seen) },
            { name: 'Running', kind: 'num', cell: ({ worker }) => worker && `${count(worker.running)} / ${count(worker.capacity)}` },
            { name: 'Waiting', kind: 'num', cell: ({ worker }) => worker && count(worker.queued) },
            { name: 'Tools', kind: 'num', cell: ({ pool }) => count(pool.tools) },
            { name: 'Prompts', kind: 'num', cell: ({ pool }) => count(pool.prompts) },
            { name: 'Resources', kind: 'num', cell: ({ pool }) => count(pool.resources) },
        ], { id: 'workers', caption: 'Pools and workers', key: ({ pool, worker }) => worker?.id ?? pool.name,
            empty: 'No worker has joined.' });
        const perSecond = (name) => (point) => point[name] / STEP_S;
        this.conflicts = new Table([
            { name: 'Kind', cell: (conflict) => conflict.kind.replaceAll('_', ' ') },
            { name: 'Name', kind: 'mono', cell: (conflict) => conflict.name },
            { name: 'Served by', cell: (conflict) => conflict.kept },
            { name: 'Hidden', cell: (conflict) => conflict.hidden },
        ], { id: 'conflicts', caption: 'Names that two pools claim', key: ({ kind, name, hidden }) => `${kind} ${hidden} ${name}`,
            empty: 'No two pools claim the same name.' });
        this.notes = new Table([
            { name: 'Pool', cell: ({ pool }) => pool },
            { name: 'What', cell: ({ what }) => what },
            { name: 'Why', cell: ({ why }) => why },
        ], { id: 'notes', caption: 'Operations without a tool, and tools with shortened schemas', key: ({ pool, what, why }) => `${pool} ${what} ${why}`,
            empty: 'Every operation is a tool with its whole schema.' });
        this.plots = [
            new Plot('requests', 'Requests per second', [
                { name: 'ok', hue: 'good', of: perSecond('ok') },
                { name: 'rejected', hue: 'warn', of: perSecond('rejected') },
                { name: 'failed', hue: 'bad', of: perSecond('failed') },
                { name: 'cancelled', hue: 'quiet', of: perSecond('cancelled') },
            ], rate),
            new Plot('latency', 'Time to the answer', [
                { name: 'p50', hue: 'accent', of: (point) => point.p50_ms },
                { name: 'p95', hue: 'mixed', of: (point) => point.p95_ms },
                { name: 'p99', hue: 'warn', of: (point) => point.p99_ms },
            ], latency),
            new Plot('load', 'Sessions, streams, calls', [
                { name: 'sessions', hue: 'accent', of: (point) => point.sessions },
                { name: 'streams', hue: 'mixed', of: (point) => point.streams },
                { name: 'calls', hue: 'good', of: (point) => point.calls },
            ], (number) => count(number ?? 0), { whole: true }),
        ];
        this.figures = Object.fromEntries(['nodes', 'workers', 'sessions', 'streams', 'calls', 'parked'].map((name) => [name, h('dd', {}, '–')]));
        const figure = (title, name) => h('div', {}, h('dt', {}, title), this.figures[name]);
        this.conflictsPanel = h('div', { class: 'panel', hidden: true },
            h('header', {}, h('h2', {}, 'Names that two pools claim')), this.conflicts.element);
        this.notesPanel = h('div', { class: 'panel', hidden: true },
            h('header', {}, h('h2', {}, 'Operations without a tool, and tools with shortened schemas')), this.notes.element);
        this.nodesNote = h('span', { class: 'quiet' });
        this.lost = h('p', { class: 'unseen', role: 'status', hidden: true });
        byId('overview').append(
            h('dl', { class: 'figures', 'aria-label': 'Now' }, figure('Nodes', 'nodes'), figure('Workers', 'workers'),
                figure('Sessions', 'sessions'), figure('Streams', 'streams'), figure('Calls in flight', 'calls'),
                figure('Waiting for input', 'parked')),
            this.lost,
            h('div', { class: 'plots' }, ...this.plots.map((plot) => plot.element)),
            h('div', { class: 'panel' }, h('header', {}, h('h2', {}, 'Nodes'), this.nodesNote), this.nodes.element),
            h('div', { class: 'panel' }, h('header', {}, h('h2', {}, 'Pools and workers')), this.workers.element),
            this.conflictsPanel,
            this.notesPanel,
        );
    }

    /// `status` is the requested node's own report.
    async refresh(status) {
        const [{ me, nodes, pools, rates, lost }, { conflicts }] = await Promise.all([get('overview'), status]);
        const answered = nodes.filter((node) => !node.trouble);
        this.seen = answered.filter((node) => node.roles.some((role) => role !== 'worker')).length || 1;
        const sum = (of) => count(answered.reduce((all, node) => all + of(node), 0));
        const workers = pools.flatMap((pool) => (pool.workers.length ? pool.workers : [null]).map((worker) => ({ pool, worker })));
        say(this.figures.nodes, answered.length === nodes.length ? count(nodes.length) : `${answered.length} of ${nodes.length}`);
        const all = workers.filter(({ worker }) => worker);
        const working = all.filter(({ worker }) => worker.ready && worker.reached_by && !worker.avoided_by);
        say(this.figures.workers, working.length === all.length ? count(all.length) : `${count(working.length)} of ${count(all.length)}`);
        say(this.figures.sessions, sum((node) => node.live_sessions + node.sleeping_sessions));
        say(this.figures.streams, sum((node) => node.streams));
        say(this.figures.calls, sum((node) => node.calls));
        this.used = answered.some((node) => node.live_sessions + node.sleeping_sessions + node.calls > 0) || rates.some((point) => point.ok > 0);
        say(this.figures.parked, sum((node) => node.parked));
        say(this.nodesNote, answered.length < nodes.length ? 'Totals contain only nodes that answer.' : '');
        say(byId('me'), `seen from ${me}`);
        this.nodes.update(nodes);
        this.workers.update(workers);
        this.conflicts.update(conflicts ?? []);
        this.conflictsPanel.hidden = !conflicts?.length;
        const notes = pools.flatMap(notesOf);
        this.notes.update(notes.slice(0, MOST_NOTES));
        this.notesPanel.hidden = notes.length === 0;
        this.lost.hidden = lost.length === 0;
        say(this.lost, lossesTold(lost, nodes));
        const losses = lost.filter(({ until }) => until !== null).map(({ until }) => until);
        for (const plot of this.plots) plot.update(rates, losses);
    }

    /// Whether no client has connected lately to the answering nodes.
    isUnused() {
        return this.used === false;
    }

    #of(node, number, title) {
        return node.trouble ? '–' : { text: count(number), title };
    }
}
