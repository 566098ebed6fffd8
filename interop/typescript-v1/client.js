// Drives a server with the official TypeScript SDK 1.x, which most clients are built on today.
// By hand: node client.js --url http://127.0.0.1:PORT/mcp, or …/sse for the 2024-11-05 transport

import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { SSEClientTransport } from '@modelcontextprotocol/sdk/client/sse.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import {
    CreateMessageRequestSchema,
    ElicitRequestSchema,
    ListRootsRequestSchema,
    LoggingMessageNotificationSchema,
    ResourceUpdatedNotificationSchema,
    ToolListChangedNotificationSchema
} from '@modelcontextprotocol/sdk/types.js';

import { main } from '../javascript/main.js';
import { CAPABILITIES } from '../javascript/peer.js';
import { Cutter, Session, takeOneByOne } from '../javascript/session.js';
import { tasks } from './task-checks.js';

const MAX_PAGES = 50;

class SdkSession extends Session {
    callTool(name, args, options) {
        return this.client.callTool({ name, arguments: args }, undefined, options);
    }

    listTools() {
        return allPages(cursor => this.client.listTools({ cursor }), 'tools');
    }

    listResources() {
        return allPages(cursor => this.client.listResources({ cursor }), 'resources');
    }

    listResourceTemplates() {
        return allPages(cursor => this.client.listResourceTemplates({ cursor }), 'resourceTemplates');
    }

    listPrompts() {
        return allPages(cursor => this.client.listPrompts({ cursor }), 'prompts');
    }

    async close() {
        await this.client.transport.terminateSession?.();
        await this.client.close();
    }
}

async function allPages(list, key) {
    const all = [];
    let cursor;
    for (let page = 0; page < MAX_PAGES; page += 1) {
        const result = await list(cursor);
        all.push(...result[key]);
        cursor = result.nextCursor;
        if (cursor === undefined) return all;
    }
    throw new Error(`the listing does not end after ${MAX_PAGES} pages`);
}

async function connect({ url, command, era, peer }) {
    const client = new Client(
        { name: 'interop-typescript-v1', version: '1.0.0' },
        { capabilities: CAPABILITIES }
    );
    client.setRequestHandler(ElicitRequestSchema, request => peer.onElicit(request.params));
    client.setRequestHandler(CreateMessageRequestSchema, request => peer.onSample(request.params));
    client.setRequestHandler(ListRootsRequestSchema, () => peer.onListRoots());
    client.setNotificationHandler(LoggingMessageNotificationSchema, ({ params }) => peer.onLog(params));
    client.setNotificationHandler(ResourceUpdatedNotificationSchema, ({ params }) => peer.onUpdated(params));
    client.setNotificationHandler(ToolListChangedNotificationSchema, () => peer.onToolListChanged());
    const { transport, cutter } = transportTo(url, command);
    const session = new SdkSession(client, peer, era, cutter);
    // The SDK tells only transports the version.
    const setProtocolVersion = transport.setProtocolVersion?.bind(transport);
    transport.setProtocolVersion = version => {
        session.version = version;
        setProtocolVersion?.(version);
    };
    await client.connect(transport);
    if (!url || url.endsWith('/sse')) takeOneByOne(transport);
    return session;
}

function transportTo(url, command) {
    if (!url) return { transport: new StdioClientTransport({ command: command[0], args: command.slice(1) }) };
    if (url.endsWith('/sse')) return { transport: new SSEClientTransport(new URL(url)) };
    const cutter = new Cutter();
    const transport = new StreamableHTTPClientTransport(new URL(url), { fetch: cutter.fetch });
    return { transport, cutter };
}

await main(['legacy'], connect, { tasks: () => tasks });
