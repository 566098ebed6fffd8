// What the TypeScript SDK's client gets from servers, step by step; for interop/odd/clients_of_sdks.py.
// Each line of standard input is a job {number, era, seconds, words, asks}, where words are a URL or a command with its arguments. Each line
// of standard output is {number, seen}, in the order in which the jobs are done.

import { createInterface } from 'node:readline';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';

// The SDK tells of odd answers on standard output.
console.log = console.info = console.debug = console.error;
// What comes of one odd server must not end the others' clients.
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

async function run({ era, seconds, words: [target, ...args], asks }) {
    const transport = target.startsWith('http')
        ? new StreamableHTTPClientTransport(new URL(target))
        : new StdioClientTransport({ command: target, args, stderr: 'ignore' });
    const capabilities = asks ? { elicitation: { form: {} } } : {};
    const mode = era === 'modern' ? 'auto' : 'legacy';
    const client = new Client({ name: 'odd', version: '1' }, { capabilities, versionNegotiation: { mode } });
    if (asks) client.setRequestHandler('elicitation/create', () => ({ action: 'accept', content: { colour: 'blue' } }));
    const seen = {};
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
    return seen;
}

for await (const line of createInterface({ input: process.stdin })) {
    const job = JSON.parse(line);
    run(job).then(seen => process.stdout.write(JSON.stringify({ number: job.number, seen }) + '\n'));
}
