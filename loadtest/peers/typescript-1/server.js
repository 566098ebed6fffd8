// An echo server on the TypeScript SDK 1.x: one transport and one server object for each session, over node:http.

import { randomUUID } from 'node:crypto';
import { createServer } from 'node:http';
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import { z } from 'zod';

const transports = new Map();

function echoServer() {
    const server = new McpServer({ name: 'typescript-1', version: '1.0.0' });
    server.registerTool(
        'echo',
        {
            description: 'Gives the text back.',
            inputSchema: { text: z.string() },
            annotations: { readOnlyHint: true },
        },
        ({ text }) => ({ content: [{ type: 'text', text }] }),
    );
    return server;
}

async function newTransport() {
    const transport = new StreamableHTTPServerTransport({
        sessionIdGenerator: randomUUID,
        onsessioninitialized: (id) => transports.set(id, transport),
        onsessionclosed: (id) => transports.delete(id),
    });
    await echoServer().connect(transport);
    return transport;
}

const http = createServer(async (request, response) => {
    const id = request.headers['mcp-session-id'];
    const transport = id === undefined ? await newTransport() : transports.get(id);
    if (transport === undefined) {
        response.writeHead(404).end();
        return;
    }
    await transport.handleRequest(request, response);
});

http.listen(0, '127.0.0.1', () => {
    console.log(`listening on http://127.0.0.1:${http.address().port}/mcp`);
});
