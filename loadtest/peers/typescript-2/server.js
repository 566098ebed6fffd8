// An echo server on the TypeScript server packages 2.x, for revision 2026-07-28: a server object for each request, over
// node:http.

import { createServer } from 'node:http';
import { toNodeHandler } from '@modelcontextprotocol/node';
import { createMcpHandler, McpServer } from '@modelcontextprotocol/server';
import { z } from 'zod';

const inputSchema = z.object({ text: z.string() });

function echoServer() {
    const server = new McpServer({ name: 'typescript-2', version: '1.0.0' });
    server.registerTool(
        'echo',
        { description: 'Gives the text back.', inputSchema, annotations: { readOnlyHint: true } },
        ({ text }) => ({ content: [{ type: 'text', text }] }),
    );
    return server;
}

const http = createServer(toNodeHandler(createMcpHandler(echoServer, { legacy: 'reject' })));

http.listen(0, '127.0.0.1', () => {
    console.log(`listening on http://127.0.0.1:${http.address().port}/mcp`);
});
