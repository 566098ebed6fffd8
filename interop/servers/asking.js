// A server on the TypeScript server packages 2.x whose tools ask mid-call, in every way that they have.

import { createServer } from 'node:http';
import { Readable } from 'node:stream';

import { acceptedContent, createMcpHandler, inputRequired, McpServer } from '@modelcontextprotocol/server';
import { serveStdio } from '@modelcontextprotocol/server/stdio';
import { z } from 'zod';

const guest = z.object({ name: z.string() });
const form = {
    message: 'Who are you?',
    requestedSchema: { type: 'object', properties: { name: { type: 'string' } }, required: ['name'] },
};
const text = (text) => ({ content: [{ type: 'text', text }] });
const greeting = (answer) => text(answer.action === 'accept' ? `hello ${answer.content.name}` : `nobody: ${answer.action}`);

const asking = () => {
    const server = new McpServer({ name: 'asking-typescript', version: '1.0.0' });
    const tool = (name, description, inputSchema, run) => server.registerTool(name, { description, inputSchema }, run);
    const nothing = z.object({});
    const some = z.object({ text: z.string() });
    tool('echo', 'Gives the text back.', some, (given) => text(given.text));
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
    return server;
};

const [flag, port] = process.argv.slice(2);
if (flag === '--http') {
    const handler = createMcpHandler(asking);
    createServer(async (request, response) => {
        const gone = new AbortController();
        response.on('close', () => gone.abort());
        const body = ['GET', 'HEAD'].includes(request.method) ? undefined : Readable.toWeb(request);
        const { method, headers } = request;
        const asked = new Request(`http://127.0.0.1:${port}${request.url}`, { method, headers, body, duplex: 'half', signal: gone.signal });
        const answer = await handler.fetch(asked);
        response.writeHead(answer.status, Object.fromEntries(answer.headers));
        response.flushHeaders();
        for await (const bytes of answer.body ?? []) response.write(bytes);
        response.end();
    }).listen(Number(port), '127.0.0.1');
} else {
    serveStdio(asking);
}
