// Streamable HTTP in both eras: the package serves 2026-07-28 itself; the server keeps a transport for each session of
// earlier revisions.

import { randomUUID } from 'node:crypto';
import { createServer } from 'node:http';
import { Readable } from 'node:stream';

import { createMcpHandler, isLegacyRequest, WebStandardStreamableHTTPServerTransport } from '@modelcontextprotocol/server';

/** @param factory gets what to call when a resource has changed, and gives a function that makes a server
 *  @returns the server of Node.js */
export function serveHttp(port, factory) {
    const modern = createMcpHandler((...context) => make(...context), { legacy: 'reject' });
    const make = factory((uri) => modern.notify.resourceUpdated(uri));
    const sessions = new Map();

    async function legacy(request) {
        const known = request.headers.get('mcp-session-id');
        if (known) return sessions.get(known)?.handleRequest(request) ?? new Response('session not found', { status: 404 });
        const transport = new WebStandardStreamableHTTPServerTransport({
            sessionIdGenerator: randomUUID,
            onsessioninitialized: (id) => void sessions.set(id, transport),
            onsessionclosed: (id) => void sessions.delete(id),
        });
        await make().connect(transport);
        return transport.handleRequest(request);
    }

    return createServer((request, response) => {
        answer(request, response).catch(() => response.headersSent || response.writeHead(500).end());
    }).listen(port, '127.0.0.1');

    async function answer(request, response) {
        const gone = new AbortController();
        response.on('close', () => gone.abort());
        const body = ['GET', 'HEAD'].includes(request.method) ? undefined : Readable.toWeb(request);
        const { method, headers } = request;
        const url = new URL(request.url, 'http://127.0.0.1');
        if (url.pathname !== '/mcp') return response.writeHead(404).end();
        const asked = new Request(url, { method, headers, body, duplex: 'half', signal: gone.signal });
        const answered = await ((await isLegacyRequest(asked)) ? legacy(asked) : modern.fetch(asked));
        response.writeHead(answered.status, Object.fromEntries(answered.headers));
        response.flushHeaders();
        const reader = answered.body?.getReader();
        gone.signal.addEventListener('abort', () => void reader?.cancel().catch(() => {}));
        for (;;) {
            const { done, value } = (await reader?.read()) ?? { done: true };
            if (done) break;
            response.write(value);
        }
        response.end();
    }
}
