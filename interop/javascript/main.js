// The command line that the programs share.

import { realpathSync } from 'node:fs';
import { pathToFileURL } from 'node:url';
import { parseArgs } from 'node:util';

import { asking } from './asking.js';
import { demo } from './demo.js';
import { everything } from './everything.js';
import { filesystem } from './filesystem.js';
import { Runner, expect, expectEqual, within } from './harness.js';
import { Known } from './known.js';
import { Peer, ROOTS } from './peer.js';

const VERSIONS = { legacy: '2025-11-25', modern: '2026-07-28' };
const CONNECT_MS = 20_000;
const CLOSE_MS = 10_000;

/**
 * Connects, runs the checks and exits.
 *
 * @param eras the eras that the SDK speaks
 * @param connect makes a session from `{ url, command, era, peer, expect }`
 * @param more checks that only this SDK has, by what is expected of the server; each is made from the options
 */
export async function main(eras, connect, more = {}) {
    const options = readOptions(eras, ['asking', 'demo', 'everything', 'filesystem', ...Object.keys(more)]);
    const { era } = options;
    const peer = new Peer(options.directory ? [pathToFileURL(options.directory).href] : ROOTS);
    const known = new Known(options.known);
    const runner = new Runner(options.only, options.cannot);
    let session;
    const connected = await runner.run('connect', async () => {
        session = await within(CONNECT_MS, 'connecting', connect({ ...options, peer }));
        expectEqual(session.version, VERSIONS[era], 'negotiated version');
        expect(session.capabilities?.tools, 'no tools capability');
    });
    if (connected) {
        session ??= await connect({ ...options, peer });
        const suites = {
            asking,
            demo,
            everything: everything(options['own-process']),
            filesystem: filesystem(options.directory)
        };
        const checks = suites[options.expect] ?? more[options.expect](options);
        for (const [name, check] of Object.entries(checks)) {
            await runner.run(name, () => check(session, peer, known));
        }
        await runner.run('close', () => within(CLOSE_MS, 'closing', session.close()));
    }
    process.exit(runner.failed > 0 ? 1 : 0);
}

function readOptions(eras, servers) {
    const { values, positionals } = parseArgs({
        allowPositionals: true,
        options: {
            url: { type: 'string' },
            era: { type: 'string', default: eras[0] },
            expect: { type: 'string', default: 'demo' },
            dir: { type: 'string' },
            'own-process': { type: 'boolean', default: false },
            known: { type: 'string' },
            only: { type: 'string', multiple: true, default: [] },
            cannot: { type: 'string', multiple: true, default: [] }
        }
    });
    const usage = problem => {
        console.error(
            `${problem}\nusage: client.js (--url URL | -- COMMAND…) --era ${eras.join('|')} ` +
                `[--expect ${servers.join('|')}] ` +
                '[--own-process] [--dir DIR] [--known DIR] [--only CHECK]… ' +
                "[--cannot 'CHECK|SEEN|WHY']…"
        );
        process.exit(2);
    };
    if (Boolean(values.url) === positionals.length > 0) usage('give either --url or a command');
    if (!eras.includes(values.era)) usage(`this SDK does not speak the ${values.era} era`);
    if (!servers.includes(values.expect)) usage('unknown --expect');
    if (['asking', 'everything'].includes(values.expect) && !values.known) usage(`--expect ${values.expect} needs --known`);
    if (values.expect === 'filesystem' && !values.dir) usage('--expect filesystem needs --dir');
    return {
        ...values,
        command: positionals,
        directory: values.dir && realpathSync(values.dir)
    };
}
