// Shoal as a client that the conformance suite tests. Starts `shoal serve` with the suite's server behind it, and uses everything that
// the server has through Shoal. The suite appends the server's URL: node client.js --shoal SHOAL URL

import { spawn } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import readline from 'node:readline';
import { parseArgs } from 'node:util';

import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { ElicitRequestSchema, ErrorCode, McpError } from '@modelcontextprotocol/sdk/types.js';

/** How long Shoal may take to serve the tools, in ms. */
const READY = 10_000;

const { values, positionals } = parseArgs({ options: { shoal: { type: 'string' } }, allowPositionals: true });
const [url] = positionals;
if (!values.shoal || !url) {
    console.error('usage: client.js --shoal SHOAL URL');
    process.exit(2);
}
const context = JSON.parse(process.env.MCP_CONFORMANCE_CONTEXT ?? '{}');
const modern = process.env.MCP_CONFORMANCE_PROTOCOL_VERSION === '2026-07-28';

const directory = await mkdtemp(path.join(tmpdir(), 'conformance-client-'));
let shoal;
try {
    shoal = spawn(values.shoal, ['serve', '--config', await configure()], { stdio: ['ignore', 'pipe', 'inherit'] });
    await use(await serving());
} finally {
    const ended = new Promise(resolve => shoal?.once('exit', resolve) ?? resolve());
    shoal?.kill('SIGTERM');
    await ended;
    await rm(directory, { recursive: true, force: true });
}

/** Writes the configuration, and returns its path. */
async function configure() {
    const http = { url, era: modern ? 'modern' : 'legacy' };
    // The suite's authorization servers, which the server names, are on loopback.
    const lines = [
        '[server]',
        'listen = "127.0.0.1:0"',
        'admin = "127.0.0.1:0"',
        '[outbound]',
        'allow = ["127.0.0.0/8", "::1/128"]',
        // Like SDK clients, which send arguments unchanged.
        '[catalog]',
        'validate_arguments = false',
        '[pools.upstream.backend.http]',
        ...Object.entries(http).map(([name, value]) => `${name} = ${JSON.stringify(value)}`)
    ];
    if (process.env.MCP_CONFORMANCE_SCENARIO?.startsWith('auth/')) {
        lines.push('[pools.upstream.backend.http.client_credentials]');
        lines.push(`client_id = ${JSON.stringify(context.client_id ?? 'shoal')}`);
        if (context.private_key_pem) {
            const key = path.join(directory, 'key.pem');
            await writeFile(key, context.private_key_pem);
            lines.push(`private_key_file = ${JSON.stringify(key)}`);
        } else {
            lines.push(`client_secret = ${JSON.stringify(context.client_secret ?? 'secret')}`);
        }
    }
    const file = path.join(directory, 'shoal.toml');
    await writeFile(file, `${lines.join('\n')}\n`);
    return file;
}

/** Waits until Shoal has the server's lists, and returns its URL. */
async function serving() {
    let mcp, admin;
    for await (const line of readline.createInterface({ input: shoal.stdout })) {
        mcp ??= /serving MCP on (http\S+)/.exec(line)?.[1];
        admin ??= /admin on (http\S+)/.exec(line)?.[1];
        if (mcp && admin) break;
    }
    shoal.stdout.resume();
    const end = Date.now() + READY;
    for (;;) {
        const ready = await fetch(new URL('/readyz', admin)).catch(() => undefined);
        if (ready?.ok) return mcp;
        if (Date.now() > end) throw new Error(`not ready: ${await ready?.text()}`);
        await new Promise(resolve => setTimeout(resolve, 50));
    }
}

/** Uses everything that the server has. */
async function use(mcp) {
    const client = new Client(
        { name: 'conformance', version: '1' },
        { capabilities: { elicitation: { form: { applyDefaults: true } } } }
    );
    client.setRequestHandler(ElicitRequestSchema, ({ params }) => ({ action: 'accept', content: required(params.requestedSchema) }));
    await client.connect(new StreamableHTTPClientTransport(new URL(mcp)));
    const { tools = [], resources = [], prompts = [] } = {
        ...(await listed(client.listTools())),
        ...(await listed(client.listResources())),
        ...(await listed(client.listPrompts()))
    };
    const calls = context.toolCalls ?? tools.map(({ name, inputSchema }) => ({ name, arguments: required(inputSchema) }));
    // One scenario checks the unchanged schema of a tool.
    const echo = calls.find(call => call.name === 'json_schema_echo');
    if (echo) echo.arguments.schema = tools.find(tool => tool.name !== echo.name).inputSchema;
    for (const call of calls) await tried(client.callTool(call));
    for (const { uri } of resources) await tried(client.readResource({ uri }));
    for (const { name } of prompts) await tried(client.getPrompt({ name }));
    await client.close();
}

/** Waits for an answer. The suite judges errors, because some of its servers only list. */
async function tried(asked) {
    await asked.catch(error => {
        if (!(error instanceof McpError) || error.code === ErrorCode.RequestTimeout) throw error;
        console.log(`${error}`);
    });
}

/** The items of a list; empty if the server does not have the list. */
async function listed(asked) {
    return await asked.catch(() => ({}));
}

/** Values for a schema's required members without defaults. */
function required({ properties = {}, required = [] }) {
    const values = { string: 'x', number: 1.5, integer: 1, boolean: true, array: [], object: {}, null: null };
    const named = required.filter(name => !('default' in (properties[name] ?? {})));
    return Object.fromEntries(named.map(name => [name, properties[name]?.enum?.[0] ?? values[properties[name]?.type ?? 'string']]));
}
