// Calls tools on command, with the official TypeScript SDK 2.x: `node calls.js --url URL --era legacy|modern`.
// ../python/calls.py describes its input and output.

import { createInterface } from 'node:readline';
import { parseArgs } from 'node:util';

import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';

import { textOf } from '../javascript/session.js';

const MODES = { legacy: 'legacy', modern: 'auto' };

const { values } = parseArgs({ options: { url: { type: 'string' }, era: { type: 'string' } } });
const say = members => process.stdout.write(`${JSON.stringify(members)}\n`);

const client = new Client(
    { name: 'calls-typescript', version: '1.0.0' },
    { versionNegotiation: { mode: MODES[values.era] } }
);
await client.connect(new StreamableHTTPClientTransport(new URL(values.url)));
say({ version: client.getNegotiatedProtocolVersion() });

async function answer({ id, list, tool, arguments: args }) {
    try {
        if (list) return say({ id, names: (await client.listTools()).tools.map(({ name }) => name) });
        const result = await client.callTool({ name: tool, arguments: args });
        say({ id, text: textOf(result), failed: Boolean(result.isError) });
    } catch (error) {
        say({ id, code: error.code ?? null, message: `${error.message}` });
    }
}

const pending = new Set();
for await (const line of createInterface({ input: process.stdin })) {
    const one = answer(JSON.parse(line)).finally(() => pending.delete(one));
    pending.add(one);
}
await Promise.all(pending);
await client.transport.terminateSession?.();
await client.close();
