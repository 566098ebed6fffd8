// What the TypeScript SDK's client gets from a server, step by step, as one line of JSON; for interop/odd/oracle.py.
// node odd.js ERA SECONDS URL | COMMAND ARGUMENT…

import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';

// The SDK tells of odd answers on standard output.
console.log = console.info = console.debug = console.error;

const [era, seconds, target, ...args] = process.argv.slice(2);
const transport = target.startsWith('http')
    ? new StreamableHTTPClientTransport(new URL(target))
    : new StdioClientTransport({ command: target, args, stderr: 'ignore' });
const mode = era === 'modern' ? 'auto' : 'legacy';
const client = new Client({ name: 'odd', version: '1' }, { versionNegotiation: { mode } });

const STEPS = {
    connect: async () => {
        await client.connect(transport);
        return true;
    },
    tools: async () => Object.fromEntries((await client.listTools()).tools.map(tool => [tool.name, tool.inputSchema])),
    resources: async () => (await client.listResources()).resources.map(resource => resource.uri),
    templates: async () => (await client.listResourceTemplates()).resourceTemplates.map(template => template.uriTemplate),
    prompts: async () => (await client.listPrompts()).prompts.map(prompt => prompt.name),
    call: async () => {
        const { _meta, resultType, ...result } = await client.callTool({ name: 'tool1', arguments: { text: 'x' } });
        return result;
    }
};

function limited(step) {
    const tooLate = (_, reject) => setTimeout(() => reject(new Error('no answer')), seconds * 1000);
    return Promise.race([step(), new Promise(tooLate)]);
}

const seen = {};
for (const [name, step] of Object.entries(STEPS)) {
    try {
        seen[name] = { got: await limited(step) };
    } catch (error) {
        seen[name] = { error: String(error.message).replaceAll('\n', ' ') };
        if (name === 'connect') break;
    }
}
process.stdout.write(JSON.stringify(seen) + '\n', () => process.exit());
