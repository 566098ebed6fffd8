// A minimal client, which creates things for the console to show.

const ACCEPT = 'application/json, text/event-stream';

/** A session of 2025-11-25. */
export class Session {
    constructor(url, id) {
        this.url = url;
        this.id = id;
    }

    static async open(url, name) {
        const params = {
            protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name, version: '1.0' }
        };
        const answer = await send(url, { id: 0, method: 'initialize', params });
        return new Session(url, answer.headers.get('mcp-session-id'));
    }

    /** Calls a tool; returns its response from JSON or a stream. */
    async call(id, name, args, meta = {}, signal = undefined) {
        const params = { name, arguments: args, _meta: meta };
        const answer = await this.send({ id, method: 'tools/call', params }, signal);
        return responseOf(await answer.text());
    }

    send(message, signal = undefined) {
        return send(this.url, message, this.headers(), signal);
    }

    /** Ends the session. */
    async close() {
        await fetch(this.url, { method: 'DELETE', headers: this.headers() });
    }

    /** Reads the standalone stream until the returned controller is aborted. */
    async listen() {
        const reading = new AbortController();
        const headers = { Accept: 'text/event-stream', ...this.headers() };
        const answer = await fetch(this.url, { headers, signal: reading.signal });
        // An unread body would be closed at garbage collection.
        answer.text().catch(() => undefined);
        return reading;
    }

    headers() {
        return { 'Mcp-Session-Id': this.id, 'MCP-Protocol-Version': '2025-11-25' };
    }
}

/** Calls a tool in the era of 2026-07-28. */
export async function modern(url, id, name, args) {
    const meta = {
        'io.modelcontextprotocol/protocolVersion': '2026-07-28', 'io.modelcontextprotocol/clientCapabilities': {}
    };
    const message = { id, method: 'tools/call', params: { name, arguments: args, _meta: meta } };
    const answer = await send(url, message, {
        'MCP-Protocol-Version': '2026-07-28', 'Mcp-Method': 'tools/call', 'Mcp-Name': name
    });
    return responseOf(await answer.text());
}

function send(url, message, headers = {}, signal = undefined) {
    return fetch(url, {
        method: 'POST',
        signal,
        headers: { 'Content-Type': 'application/json', Accept: ACCEPT, ...headers },
        body: JSON.stringify({ jsonrpc: '2.0', ...message })
    });
}

function responseOf(text) {
    const lines = text.split('\n').filter(line => line.startsWith('data: {'));
    return JSON.parse(lines.length ? lines.at(-1).slice('data: '.length) : text);
}
