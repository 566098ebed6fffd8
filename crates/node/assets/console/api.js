// The node's answers.

const TOKEN = 'shoal-admin-token';
const PATIENCE_MS = 8_000;

/// An answer that is no success.
export class Refused extends Error {
    constructor(status, message) {
        super(message);
        this.status = status;
    }
}

export function get(path) {
    return ask(path, { method: 'GET' });
}

/// Does something. The header tells that it is this page that asks.
export function post(path, body) {
    const headers = { 'X-Shoal-Console': '1' };
    const text = body === undefined ? undefined : JSON.stringify(body);
    return ask(path, { method: 'POST', headers, body: text });
}

export function keepToken(token) {
    sessionStorage.setItem(TOKEN, token);
}

async function ask(path, options) {
    const token = sessionStorage.getItem(TOKEN);
    const headers = { ...options.headers };
    if (token) headers.Authorization = `Bearer ${token}`;
    let answer;
    try {
        answer = await fetch(`api/${path}`, {
            ...options, headers, cache: 'no-store', signal: AbortSignal.timeout(PATIENCE_MS),
        });
    } catch {
        throw new Refused(0, 'This node cannot be reached. Trying again …');
    }
    const body = await answer.json().catch(() => ({}));
    if (!answer.ok) throw new Refused(answer.status, body.error ?? `The node answered ${answer.status}.`);
    return body;
}
