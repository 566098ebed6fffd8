// Runs the conformance suite's scenarios for clients against Shoal as a client of the suite's servers (client.js), and prints a line for each.
// By hand: node run-client.js --shoal SHOAL [--only SCENARIO]

import { mkdtemp, readFile, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

import { run, verdict } from './suite.js';

/** Maximum concurrent scenarios. */
const AT_ONCE = 2;
/** The scenarios that apply to Shoal, each with its revisions; empty if the suite knows only one. */
const APPLIES = {
    initialize: ['2025-11-25'],
    tools_call: ['2025-11-25', '2026-07-28'],
    'elicitation-sep1034-client-defaults': [undefined],
    'sse-retry': [undefined],
    'request-metadata': [undefined],
    'sep-2322-client-request-state': [undefined],
    'http-standard-headers': [undefined],
    'http-custom-headers': [undefined],
    'http-invalid-tool-headers': [undefined],
    'json-schema-ref-no-deref': [undefined],
    'json-schema-2020-12-preservation': ['2025-11-25', '2026-07-28'],
    'auth/client-credentials-jwt': [undefined],
    'auth/client-credentials-basic': [undefined],
    'auth/resource-mismatch': [undefined],
    'auth/metadata-issuer-mismatch': [undefined]
};
/** Why the others do not apply. */
const USER = 'it needs a user who logs in at the server; Shoal has clients, whose tokens it passes on or exchanges';
const IDENTITY = 'Shoal has no identity of its own to trade besides client credentials';
const DPOP = 'Shoal requests bearer tokens only';
const HOST = 'the host of a model reads skills; Shoal passes them on';
const DOES_NOT_APPLY = [
    [/^auth\/(enterprise-managed-authorization|wif-jwt-bearer)$/, IDENTITY],
    [/^auth\/dpop/, DPOP],
    [/^auth\//, USER],
    [/^sep-2640-/, HOST]
];

const { values } = parseArgs({ options: { shoal: { type: 'string' }, only: { type: 'string' } } });
if (!values.shoal) {
    console.error('usage: run-client.js --shoal SHOAL [--only SCENARIO]');
    process.exit(2);
}
const driver = fileURLToPath(new URL('client.js', import.meta.url));
const command = `${process.execPath} ${driver} --shoal ${values.shoal}`;
const directory = await mkdtemp(path.join(tmpdir(), 'conformance-'));
let failed = 0;
try {
    const runs = [];
    for (const scenario of await known()) {
        if (values.only && scenario !== values.only) continue;
        const [, reason] = DOES_NOT_APPLY.find(([pattern]) => pattern.test(scenario)) ?? [];
        if (APPLIES[scenario]) {
            for (const revision of APPLIES[scenario]) runs.push([scenario, revision]);
        } else if (reason) {
            console.log(`skip ${scenario}: ${reason}`);
        } else {
            report(scenario, 'run-client.js does not say whether it applies');
        }
    }
    if (runs.length === 0) report('suite', 'it ran no scenarios');
    const next = runs.entries();
    await Promise.all(Array.from({ length: AT_ONCE }, () => work(next)));
} finally {
    await rm(directory, { recursive: true, force: true });
}
process.exit(failed > 0 ? 1 : 0);

/** The suite's scenarios for clients. */
async function known() {
    const { output } = await run('list', '--client');
    return [...output.matchAll(/^ +- (\S+)/gm)].map(match => match[1]);
}

async function work(next) {
    for (const [number, [scenario, revision]] of next) {
        const into = path.join(directory, `${number}`);
        const version = revision ? ['--spec-version', revision] : [];
        const { output } = await run('client', '--command', command, '--scenario', scenario, ...version, '-o', into);
        const checks = await results(into);
        const problem = checks ? verdict(checks) : `it left no result: ${output}`;
        // A client may end with an error where it should refuse the server's answer.
        const refuses = /mismatch|invalid/.test(scenario);
        const broke = refuses ? undefined : /Client (exited with code|timed out)[\s\S]*/.exec(output)?.[0];
        report(revision ? `${scenario} ${revision}` : scenario, problem ?? broke);
        if (values.only) console.log(output);
    }
}

/** The checks of the scenario in a results directory. */
async function results(into) {
    const files = await readdir(into, { recursive: true }).catch(() => []);
    const file = files.find(name => path.basename(name) === 'checks.json');
    return file && JSON.parse(await readFile(path.join(into, file), 'utf8'));
}

function report(name, problem) {
    if (!problem) return console.log(`ok ${name}`);
    failed += 1;
    console.log(`FAIL ${name}: ${problem.replaceAll('\n', ' | ').slice(0, 1500)}`);
}
