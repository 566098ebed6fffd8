// A plain server on the TypeScript SDK 1.x over Streamable HTTP and HTTP+SSE, for interop/odd/clients.py, written like the
// SDK's examples. Prints its port.

import { randomUUID } from 'node:crypto';

import { createMcpExpressApp } from '@modelcontextprotocol/sdk/server/express.js';
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { SSEServerTransport } from '@modelcontextprotocol/sdk/server/sse.js';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import { isInitializeRequest } from '@modelcontextprotocol/sdk/types.js';
import { z } from 'zod';

const text = (text) => ({ content: [{ type: 'text', text }] });

function plain() {
    const server = new McpServer({ name: 'plain', version: '1' }, { capabilities: { logging: {} } });
    server.registerTool('echo', { inputSchema: { text: z.string() } }, ({ text: given }) => text(given));
    server.registerTool('add', { inputSchema: { a: z.number().int(), b: z.number().int() } }, ({ a, b }) => text(String(a + b)));
    server.registerTool('join', { inputSchema: { tags: z.array(z.string()) } }, ({ tags }) => text(tags.join(',')));
    server.registerTool('nothing', {}, () => text('done'));
    server.registerResource('one', 'plain://one', {}, (uri) => ({ contents: [{ uri: uri.href, text: '1' }] }));
    server.registerPrompt('greet', {}, () => ({ messages: [{ role: 'user', content: { type: 'text', text: 'hello' } }] }));
    return server;
}

const app = createMcpExpressApp();
const sessions = new Map();

app.all('/mcp', async (request, response) => {
    const known = request.headers['mcp-session-id'];
    let transport = sessions.get(known);
    if (!transport && !known && isInitializeRequest(request.body)) {
        transport = new StreamableHTTPServerTransport({
            sessionIdGenerator: randomUUID,
            onsessioninitialized: (id) => void sessions.set(id, transport),
            onsessionclosed: (id) => void sessions.delete(id),
        });
        await plain().connect(transport);
    }
    if (transport) await transport.handleRequest(request, response, request.body);
    else response.status(known ? 404 : 400).json({ jsonrpc: '2.0', error: { code: -32000, message: 'no session' }, id: null });
});

app.get('/sse', async (request, response) => {
    const transport = new SSEServerTransport('/messages', response);
    sessions.set(transport.sessionId, transport);
    await plain().connect(transport);
});
app.post('/messages', (request, response) => sessions.get(request.query.sessionId).handlePostMessage(request, response, request.body));

const listening = app.listen(0, '127.0.0.1', () => console.log(listening.address().port));
