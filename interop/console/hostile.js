// A stdio server that puts scripts and markup in every place that the console shows.

import { createInterface } from 'node:readline';

const MARKUP = '<img src=x onerror="document.title=\'owned\'">';
const description = `${MARKUP} \u001b[31m`;
const schema = {
    type: 'object',
    description,
    properties: {
        [MARKUP]: { type: 'string', title: MARKUP, description, default: MARKUP },
        ['__proto__']: { type: 'string', description: 'a member like any other' },
        kind: { enum: [MARKUP, 'plain'] },
        nested: { $ref: '#/$defs/node' }
    },
    required: ['kind'],
    // Refers to itself.
    $defs: { node: { type: 'object', properties: { below: { $ref: '#/$defs/node' }, text: { type: 'string' } } } }
};
const tools = [
    { name: MARKUP, title: MARKUP, description, inputSchema: schema, annotations: { readOnlyHint: true, title: MARKUP } },
    { name: 'fails', description: 'Says that it failed.', inputSchema: { type: 'object' } }
];

function answer(method, params) {
    switch (method) {
        case 'initialize':
            return { protocolVersion: params.protocolVersion, capabilities: { tools: {} }, serverInfo: { name: MARKUP, version: '1' } };
        case 'tools/list':
            return { tools };
        case 'tools/call': {
            const texts = [MARKUP, JSON.stringify(params.arguments ?? {})].map(text => ({ type: 'text', text }));
            return { content: texts, isError: params.name === 'fails' };
        }
        default:
            return {};
    }
}

for await (const line of createInterface({ input: process.stdin })) {
    const { id, method, params } = JSON.parse(line);
    if (id !== undefined) console.log(JSON.stringify({ jsonrpc: '2.0', id, result: answer(method, params) }));
}
