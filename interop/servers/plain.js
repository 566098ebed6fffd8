// A plain server on the TypeScript server packages 2.x, for interop/odd/clients.py: over stdio, or with --http over Streamable HTTP,
// when it prints its port.

import { McpServer } from '@modelcontextprotocol/server';
import { serveStdio } from '@modelcontextprotocol/server/stdio';
import { z } from 'zod';

import { serveHttp } from './http.js';

const text = (text) => ({ content: [{ type: 'text', text }] });

const plain = () => () => {
    const server = new McpServer({ name: 'plain', version: '1' }, { capabilities: { logging: {} } });
    server.registerTool('echo', { inputSchema: z.object({ text: z.string() }) }, ({ text: given }) => text(given));
    server.registerTool('add', { inputSchema: z.object({ a: z.number().int(), b: z.number().int() }) }, ({ a, b }) => text(String(a + b)));
    server.registerTool('join', { inputSchema: z.object({ tags: z.array(z.string()) }) }, ({ tags }) => text(tags.join(',')));
    server.registerTool('nothing', {}, () => text('done'));
    server.registerResource('one', 'plain://one', {}, (uri) => ({ contents: [{ uri: uri.href, text: '1' }] }));
    server.registerPrompt('greet', {}, () => ({ messages: [{ role: 'user', content: { type: 'text', text: 'hello' } }] }));
    return server;
};

if (process.argv[2] === '--http') {
    const listening = serveHttp(0, plain);
    listening.on('listening', () => console.log(listening.address().port));
} else serveStdio(plain());
