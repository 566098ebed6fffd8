// A server on the TypeScript server packages 2.x whose tools ask mid-call, in every way that they have, work, and change a
// resource.

import { appendFileSync } from 'node:fs';

import { acceptedContent, inputRequired, McpServer } from '@modelcontextprotocol/server';
import { serveStdio } from '@modelcontextprotocol/server/stdio';
import { z } from 'zod';

import { serveHttp } from './http.js';

const guest = z.object({ name: z.string() });
const form = {
    message: 'Who are you?',
    requestedSchema: { type: 'object', properties: { name: { type: 'string' } }, required: ['name'] },
};
const text = (text) => ({ content: [{ type: 'text', text }] });
const greeting = (answer) => text(answer.action === 'accept' ? `hello ${answer.content.name}` : `nobody: ${answer.action}`);

const COUNTER = 'asking://counter';
let count = 0;
// The servers with subscribed clients of earlier revisions; the entry has the streams of 2026-07-28.
const followers = new Set();

// Writes to a file, because a killed process loses its memory.
const record = (what) => appendFileSync(process.env.INTEROP_RECORD, `${what}\n`);

async function work({ steps, label }, ctx) {
    const { signal, _meta } = ctx.mcpReq;
    record(`started ${label}`);
    signal.addEventListener('abort', () => record(`cancelled ${label}`));
    for (let step = 1; step <= steps && !signal.aborted; step += 1) {
        const params = { progressToken: _meta?.progressToken, progress: step, total: steps };
        if (params.progressToken !== undefined) await ctx.mcpReq.notify({ method: 'notifications/progress', params });
        await new Promise((resolve) => setTimeout(resolve, 50));
    }
    return text(`worked ${steps} steps`);
}

const asking = (changed) => () => {
    const server = new McpServer(
        { name: 'asking-typescript', version: '1.0.0' },
        { capabilities: { resources: { subscribe: true } } },
    );
    const tool = (name, description, inputSchema, run, annotations) =>
        server.registerTool(name, { description, inputSchema, annotations }, run);
    const nothing = z.object({});
    const some = z.object({ text: z.string() });
    const job = z.object({ steps: z.number().int(), label: z.string() });
    tool('echo', 'Gives the text back.', some, (given) => text(given.text), { readOnlyHint: true });
    tool('greet', 'Asks for a name by a request of the server.', nothing, async (_, ctx) =>
        greeting(await ctx.mcpReq.elicitInput({ mode: 'form', ...form })),
    );
    tool('summarize', "Samples from the client's model by a request of the server.", some, async (given, ctx) => {
        const messages = [{ role: 'user', content: { type: 'text', text: given.text } }];
        const answer = await ctx.mcpReq.requestSampling({ messages, maxTokens: 100 });
        return text(`summary: ${answer.content.text}`);
    });
    tool('list_roots', "Lists the client's roots by a request of the server.", nothing, async () => {
        const { roots } = await server.server.listRoots();
        return text(roots.map((root) => root.uri).join('\n'));
    });
    tool('greet_required', 'Asks for a name by its result.', nothing, (_, ctx) => {
        const answered = ctx.mcpReq.inputResponses?.name;
        if (answered) {
            const accepted = acceptedContent(ctx.mcpReq.inputResponses, 'name', guest);
            return text(accepted ? `hello ${accepted.name}` : `nobody: ${answered.action}`);
        }
        return inputRequired({ inputRequests: { name: inputRequired.elicit(form) }, requestState: 'asked' });
    });
    tool('work', 'Takes a while, and says how far it is.', job, work);
    tool('work_safely', 'The same, and it may be called again.', job, work, { readOnlyHint: true });
    tool('change', 'Changes the resource, and tells those who follow it.', nothing, async () => {
        count += 1;
        for (const follower of followers) await follower.sendResourceUpdated({ uri: COUNTER });
        changed(COUNTER);
        return text(`${count}`);
    });
    server.registerResource('counter', COUNTER, { mimeType: 'text/plain' }, () => ({
        contents: [{ uri: COUNTER, text: `${count}` }],
    }));
    server.server.setRequestHandler('resources/subscribe', () => {
        followers.add(server.server);
        return {};
    });
    server.server.setRequestHandler('resources/unsubscribe', () => {
        followers.delete(server.server);
        return {};
    });
    server.server.onclose = () => followers.delete(server.server);
    return server;
};

const [flag, port] = process.argv.slice(2);
if (flag === '--http') serveHttp(Number(port), asking);
else serveStdio(asking(() => {}));
