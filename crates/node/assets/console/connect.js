// How to connect a client: the endpoint, and the configuration of each known client.

import { get } from './api.js';
import { announce, byId, h, say } from './dom.js';

const CREDENTIALS = {
    none: 'Clients need no token.',
    token: 'Each client needs a bearer token: replace YOUR_TOKEN by the token of a caller in auth.tokens or auth.tokens_file.',
    login: 'Clients log in at the authorization server of auth.issuers. Most open a browser for it.',
};

export class Connect {
    constructor() {
        this.shown = '';
        this.url = h('code', { id: 'endpoint' });
        this.endpoint = h('div', { class: 'snippet' }, h('pre', {}, this.url), copyButton('the endpoint', this.url));
        this.note = h('p', {});
        this.clients = h('div', { class: 'clients' });
        byId('connect').append(
            h('div', { class: 'panel connect' },
                h('header', {}, h('h2', {}, 'Connect a client')),
                h('p', {}, 'Give your client this MCP endpoint, or copy its configuration from below.'),
                this.endpoint, this.note),
            this.clients,
        );
    }

    async refresh() {
        const found = await get('connect');
        const text = JSON.stringify(found);
        // Do not redraw the same text, so that a selection stays.
        if (text === this.shown) return;
        this.shown = text;
        const { url, credential, clients } = found;
        this.endpoint.hidden = url === null;
        say(this.url, url ?? '');
        const unknown = 'This process takes no clients. Open the console of an edge, or replace the address below by the one of your edges.';
        say(this.note, `${url === null ? `${unknown} ` : ''}${CREDENTIALS[credential]}`);
        this.clients.replaceChildren(...clients.map(clientPanel));
    }
}

function clientPanel({ name, command, place, text, note }) {
    const code = h('code', {}, text.trimEnd());
    return h('div', { class: 'panel connect' },
        h('header', {}, h('h2', {}, name)),
        h('p', {}, place),
        note && h('p', {}, note),
        h('div', { class: 'snippet' }, h('pre', { tabindex: '0', 'aria-label': `Configuration of ${name}` }, code),
            copyButton(`the configuration of ${name}`, code)),
        h('p', { class: 'quiet' }, 'Or print it: ', h('code', {}, command)));
}

/// Copies an element's text, or selects it if the browser does not let pages copy.
function copyButton(what, element) {
    const button = h('button', { type: 'button', class: 'small', 'aria-label': `Copy ${what}` }, 'Copy');
    button.addEventListener('click', async () => {
        try {
            await navigator.clipboard.writeText(element.textContent);
            button.textContent = 'Copied';
            announce(`Copied ${what}.`);
        } catch {
            getSelection().selectAllChildren(element);
            button.textContent = 'Selected';
            announce(`Selected ${what}. Copy it with Control+C.`);
        }
        setTimeout(() => { button.textContent = 'Copy'; }, 2_000);
    });
    return button;
}
