// Calls in flight, which operators can stop.

import { get, post } from './api.js';
import { announce, byId, confirm, h, say } from './dom.js';
import { many, since } from './format.js';
import { Table } from './table.js';

const STATES = { starting: 'tag', running: 'tag good', cancelling: 'tag warn' };

export class Calls {
    constructor(refreshSoon) {
        this.table = new Table([
            { name: 'Target', kind: 'clip', cell: ({ target, method }) => target ?? method },
            { name: 'Method', cell: ({ method }) => method },
            { name: 'State', cell: ({ state }) => h('span', { class: STATES[state] }, state) },
            { name: 'Age', kind: 'num', cell: ({ age_ms: age }) => since(age) },
            { name: 'Worker', kind: 'mono', cell: ({ worker }) => worker },
            { name: 'Node', kind: 'mono', cell: ({ node }) => node },
            { name: 'Era', cell: ({ modern }) => (modern ? 'modern' : 'legacy') },
            { name: 'Carried', cell: ({ journaled }) => (journaled ? { text: 'journaled', title: 'executed at most once' }
                : { text: 'repeatable', title: 'safe to run again' }) },
            { name: 'Client', kind: 'clip', cell: ({ client, session }) => ({ text: client ?? '–', title: session ? `session ${session}` : undefined }) },
            { name: 'Principal', kind: 'mono', cell: ({ principal }) => principal },
            { name: 'Call', kind: 'mono', cell: ({ id }) => ({ text: `…${id.slice(-8)}`, title: id }) },
        ], {
            id: 'calls', caption: 'Calls in flight', key: ({ id, node }) => `${node} ${id}`, empty: 'No call is in flight.',
            action: {
                short: ({ state }) => (state === 'cancelling' ? 'Again' : 'Cancel'),
                name: ({ target, method, id }) => `Cancel ${target ?? method}, call ${id}`,
                run: (call) => this.cancel(call),
            },
        });
        this.refreshSoon = refreshSoon;
        this.note = h('span', { class: 'quiet' });
        this.unseen = unseen();
        byId('calls').append(this.unseen.element,
            h('div', { class: 'panel' }, h('header', {}, h('h2', {}, 'Calls in flight'), this.note), this.table.element));
    }

    async refresh() {
        const { items, total, unseen } = await get('calls');
        this.table.update(items, total);
        say(this.note, many(total, 'call'));
        this.unseen.update(unseen);
    }

    async cancel({ id, target, method }) {
        const sure = await confirm('Cancel this call?',
            `Shoal tells ${target ?? method} to stop and answers the client with an error. What the tool has already done remains.`, 'Cancel call', 'Keep running');
        if (!sure) return;
        const { node } = await post(`calls/${id}/cancel`, {});
        announce(`Shoal told call ${id} on ${node} to stop.`);
        this.refreshSoon();
    }
}

/// Names the nodes that a list leaves out.
export function unseen() {
    const element = h('p', { class: 'unseen', role: 'status', hidden: true });
    return {
        element,
        update(nodes) {
            element.hidden = nodes.length === 0;
            say(element, nodes.map(({ node, reason }) => `This list does not contain ${node}: ${reason}.`).join(' '));
        },
    };
}
