// Requests to the node.

const TOKEN = 'shoal-admin-token';
const PATIENCE_MS = 8_000;
/// Proves that the request comes from this page.
const ACTION = { 'X-Shoal-Console': '1' };

/// An unsuccessful answer.
export class Refused extends Error {
    constructor(status, message) {
        super(message);
        this.status = status;
    }
}

export function get(path) {
    return ask(path, { method: 'GET' });
}

export function post(path, body) {
    const text = body === undefined ? undefined : JSON.stringify(body);
    return ask(path, { method: 'POST', headers: ACTION, body: text });
}

export function keepToken(token) {
    sessionStorage.setItem(TOKEN, token);
}

/// Sends an MCP request and returns its response. Passes earlier messages to `heard`. Waits until `signal`
/// aborts.
export async function call(path, body, signal, heard) {
    const answer = await send(path, { method: 'POST', headers: ACTION, body: JSON.stringify(body) }, signal);
    const streamed = answer.headers.get('Content-Type')?.startsWith('text/event-stream');
    const response = streamed ? await lastOf(answer, heard) : await answer.json().catch(() => ({}));
    // The last message is no MCP response.
    if (response.jsonrpc === undefined) throw refused(answer, response);
    return response;
}

async function lastOf(answer, heard) {
    const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
    let text = '';
    for (;;) {
        const { value, done } = await reader.read();
        if (done) throw new Refused(0, 'The connection broke before the answer. The tool may have run.');
        text += value;
        const events = text.split('\n\n');
        text = events.pop();
        for (const event of events) {
            const data = event.split('\n').filter((line) => line.startsWith('data:')).map((line) => line.slice(5)).join('\n');
            if (!data) continue;
            const message = JSON.parse(data);
            if (message.id !== undefined) return message;
            heard(message);
        }
    }
}

async function ask(path, options) {
    let answer;
    try {
        answer = await send(path, options, AbortSignal.timeout(PATIENCE_MS));
    } catch {
        throw new Refused(0, 'Cannot reach this node. Trying again …');
    }
    const body = await answer.json().catch(() => ({}));
    if (!answer.ok) throw refused(answer, body);
    return body;
}

function send(path, options, signal) {
    const token = sessionStorage.getItem(TOKEN);
    const headers = { ...options.headers };
    if (token) headers.Authorization = `Bearer ${token}`;
    return fetch(`api/${path}`, { ...options, headers, cache: 'no-store', signal });
}

function refused(answer, body) {
    return new Refused(answer.status, body.error ?? `The node answered ${answer.status}.`);
}
