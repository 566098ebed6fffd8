// What the TypeScript SDK's client gets from servers, step by step; for interop/odd/clients_of_sdks.py.
// Each line of standard input is a job {number, era, seconds, words, asks, waits}, where words are a URL or a command with its arguments. Each line
// of standard output is {number, seen}, in the order in which the jobs are done.

import { createInterface } from 'node:readline';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';

// The SDK reports odd answers on standard output.
console.log = console.info = console.debug = console.error;
// One odd server must not end the others' clients.
process.on('uncaughtException', error => console.error(error));
process.on('unhandledRejection', error => console.error(error));

const STEPS = {
    tools: async client => Object.fromEntries((await client.listTools()).tools.map(tool => [tool.name, tool.inputSchema])),
    resources: async client => (await client.listResources()).resources.map(resource => resource.uri),
    templates: async client => (await client.listResourceTemplates()).resourceTemplates.map(template => template.uriTemplate),
    prompts: async client => (await client.listPrompts()).prompts.map(prompt => prompt.name),
    read: async client => ({ contents: (await client.readResource({ uri: 'odd://one' })).contents }),
    get: async client => ({ messages: (await client.getPrompt({ name: 'greet' })).messages }),
    call: async client => {
        const result = await client.callTool({ name: 'tool1', arguments: { text: 'x' } });
        const { content, structuredContent, isError, toolResult } = result;
        return { content, structuredContent, isError, toolResult };
    }
};

function limited(step, seconds) {
    let timer;
    const tooLate = new Promise((_, reject) => (timer = setTimeout(() => reject(new Error('no answer')), seconds * 1000)));
    return Promise.race([step, tooLate]).finally(() => clearTimeout(timer));
}

// A handler that answers if the question was not withdrawn within `waits` seconds.
function answering(answer, waits, seen) {
    return async (_request, context) => {
        if (waits) {
            const { signal } = context.mcpReq;
            await new Promise(resolve => {
                setTimeout(resolve, waits * 1000);
                signal.addEventListener('abort', resolve);
                if (signal.aborted) resolve();
            });
            seen.withdrawn = { got: signal.aborted || seen.withdrawn?.got === true };
        }
        return answer;
    };
}

async function run({ era, seconds, words: [target, ...args], asks, waits }) {
    const transport = target.startsWith('http')
        ? new StreamableHTTPClientTransport(new URL(target))
        : new StdioClientTransport({ command: target, args, stderr: 'ignore' });
    const capabilities = asks ? { elicitation: { form: {} }, sampling: {}, roots: {} } : {};
    const mode = era === 'modern' ? 'auto' : 'legacy';
    const client = new Client({ name: 'odd', version: '1' }, { capabilities, versionNegotiation: { mode } });
    const seen = {};
    const answers = {
        'elicitation/create': { action: 'accept', content: { colour: 'blue' } },
        'sampling/createMessage': { role: 'assistant', model: 'none', content: { type: 'text', text: 'Hi' } },
        'roots/list': { roots: [] }
    };
    for (const [method, answer] of Object.entries(asks ? answers : {})) client.setRequestHandler(method, answering(answer, waits, seen));
    const steps = { connect: async () => client.connect(transport).then(() => true), ...STEPS };
    for (const [name, step] of Object.entries(steps)) {
        try {
            seen[name] = { got: await limited(step(client), seconds) };
        } catch (error) {
            seen[name] = { error: String(error?.message ?? error).replaceAll('\n', ' ') };
            if (name === 'connect') break;
        }
    }
    await limited(client.close(), seconds).catch(() => {});
    // Clients of 2026-07-28 are not told of withdrawn questions.
    if (era === 'modern') delete seen.withdrawn;
    return seen;
}

for await (const line of createInterface({ input: process.stdin })) {
    const job = JSON.parse(line);
    run(job).then(seen => process.stdout.write(JSON.stringify({ number: job.number, seen }) + '\n'));
}
