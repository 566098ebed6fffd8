// Drives a server with the official TypeScript SDK 2.x and reports what works.
// By hand: node client.js --url http://127.0.0.1:PORT/mcp --era modern

import {
    Client,
    LOG_LEVEL_META_KEY,
    SSEClientTransport,
    StreamableHTTPClientTransport
} from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';

import { main } from '../javascript/main.js';
import { CAPABILITIES } from '../javascript/peer.js';
import { Cutter, Session, takeOneByOne } from '../javascript/session.js';
import { taskChecks } from './task-checks.js';
import { IDENTIFIER } from './tasks.js';

// The SDK's default is `legacy`; `auto` begins with server/discover.
const MODES = { legacy: 'legacy', modern: 'auto' };

class SdkSession extends Session {
    get version() {
        return this.client.getNegotiatedProtocolVersion();
    }

    // The SDK converts every server's -32002 to the code of 2026-07-28.
    get resourceNotFound() {
        return -32602;
    }

    callTool(name, args, { logLevel, ...options } = {}) {
        const params = { name, arguments: args };
        if (this.modern && logLevel) params._meta = { [LOG_LEVEL_META_KEY]: logLevel };
        return this.client.callTool(params, options);
    }

    // Without a cursor these follow every page.
    async listTools() {
        return (await this.client.listTools()).tools;
    }

    async listResources() {
        return (await this.client.listResources()).resources;
    }

    async listResourceTemplates() {
        return (await this.client.listResourceTemplates()).resourceTemplates;
    }

    async listPrompts() {
        return (await this.client.listPrompts()).prompts;
    }

    async subscribe(uri) {
        return this.modern ? this.#listen({ resourceSubscriptions: [uri] }) : super.subscribe(uri);
    }

    async watchTools() {
        return this.modern ? this.#listen({ toolsListChanged: true }) : super.watchTools();
    }

    async close() {
        await this.client.transport.terminateSession?.();
        await this.client.close();
    }

    async #listen(filter) {
        const subscription = await this.client.listen(filter);
        return () => subscription.close();
    }
}

async function connect({ url, command, era, peer, expect }) {
    const client = newClient(era, expect === 'tasks');
    // On a modern connection, the same handlers answer the questions of `input_required` results.
    client.setRequestHandler('elicitation/create', request => peer.onElicit(request.params));
    client.setRequestHandler('sampling/createMessage', request => peer.onSample(request.params));
    client.setRequestHandler('roots/list', () => peer.onListRoots());
    client.setNotificationHandler('notifications/message', ({ params }) => peer.onLog(params));
    client.setNotificationHandler('notifications/resources/updated', ({ params }) => peer.onUpdated(params));
    client.setNotificationHandler('notifications/tools/list_changed', () => peer.onToolListChanged());
    const { transport, cutter } = transportTo(url, command);
    await client.connect(transport);
    if (!url || url.endsWith('/sse')) takeOneByOne(transport);
    return new SdkSession(client, peer, era, cutter);
}

/** A client accepts tasks only in their checks, because it could not handle those of other servers. */
function newClient(era, tasks) {
    const capabilities = tasks ? { ...CAPABILITIES, extensions: { [IDENTIFIER]: {} } } : CAPABILITIES;
    return new Client(
        { name: 'interop-typescript', version: '1.0.0' },
        { capabilities, versionNegotiation: { mode: MODES[era] } }
    );
}

/** The checks of tasks, with more clients of the same server. */
function tasks({ url, era }) {
    return taskChecks(async declared => {
        const client = newClient(era, declared);
        await client.connect(transportTo(url).transport);
        return client;
    });
}

function transportTo(url, command) {
    if (!url) return { transport: new StdioClientTransport({ command: command[0], args: command.slice(1) }) };
    if (url.endsWith('/sse')) return { transport: new SSEClientTransport(new URL(url)) };
    const cutter = new Cutter();
    const transport = new StreamableHTTPClientTransport(new URL(url), { fetch: cutter.fetch });
    return { transport, cutter };
}

await main(['legacy', 'modern'], connect, { tasks });
