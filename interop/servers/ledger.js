// Loaded before a server that is not changed (`node --import ledger.js SERVER`): writes each run of its tools `echo` and
// `get-sum` in a ledger, for `interop/composed`.

import { appendFileSync, existsSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';

import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';

const POLL_MS = 10;

/** The arguments of each tool: the key, and whether the run waits for the gate. */
const READ = {
    echo: ({ message }) => [message.replace('gated ', ''), message.startsWith('gated ')],
    'get-sum': ({ a, b }) => [a, b === 1]
};

const register = McpServer.prototype.registerTool;
McpServer.prototype.registerTool = function (name, config, handler) {
    const read = READ[name];
    return register.call(this, name, config, !read ? handler : async (args, extra) => {
        const [key, gated] = read(args);
        appendFileSync(process.env.LEDGER, `${key} ${process.pid} ${process.ppid}\n`);
        while (gated && !existsSync(process.env.GATE)) await sleep(POLL_MS);
        return handler(args, extra);
    });
};
