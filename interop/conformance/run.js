// Runs the MCP conformance suite against a server and prints a line for each scenario.
// By hand: node run.js --url http://127.0.0.1:PORT/mcp --requirements 2026-07-28

import { mkdtemp, readFile, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { parseArgs } from 'node:util';

import { SKIPPED, run, verdict } from './suite.js';

/** `server-SCENARIO-2026-01-02T03-04-05-678Z` */
const RESULT = /^server-(.+)-\d{4}-\d{2}-\d{2}T[\d-]+Z$/;

const { values } = parseArgs({
    options: {
        url: { type: 'string' },
        requirements: { type: 'string' },
        suite: { type: 'string' },
        'spec-version': { type: 'string' }
    }
});
if (!values.url || Boolean(values.requirements) === Boolean(values.suite)) {
    console.error('usage: run.js --url URL (--requirements REVISION | --suite SUITE [--spec-version REVISION])');
    process.exit(2);
}

const directory = await mkdtemp(path.join(tmpdir(), 'conformance-'));
let failed = 0;
try {
    const which = values.requirements ? ['--requirements', values.requirements] : ['--suite', values.suite];
    if (values['spec-version']) which.push('--spec-version', values['spec-version']);
    const { code, output } = await run('server', '--url', values.url, ...which, '-o', directory);
    failed = await judge(announced(output));
    // The suite knows a revision's required scenarios, so its failure must be a failure here.
    if (failed === 0 && code !== 0 && values.requirements) {
        console.log(`FAIL exit_code: the suite ended with ${code}`);
        failed += 1;
    }
} finally {
    await rm(directory, { recursive: true, force: true });
}
process.exit(failed > 0 ? 1 : 0);

/** The scenarios that the suite announced. */
function announced(output) {
    const scenarios = [...output.matchAll(/^=== Running scenario: (.+) ===$/gm)].map(match => match[1]);
    if (scenarios.length === 0) console.log(output);
    return scenarios;
}

/** Prints each scenario's result and returns how many failed. */
async function judge(scenarios) {
    const results = new Map();
    for (const name of await readdir(directory)) {
        const match = RESULT.exec(name);
        if (match) results.set(match[1], path.join(directory, name, 'checks.json'));
    }
    let failures = scenarios.length > 0 ? 0 : 1;
    if (failures > 0) console.log('FAIL suite: it ran no scenarios');
    for (const scenario of scenarios) {
        const file = results.get(scenario);
        const problem = file ? verdict(JSON.parse(await readFile(file, 'utf8'))) : 'it left no result';
        if (!problem) {
            console.log(`ok ${scenario}`);
        } else if (problem === SKIPPED) {
            console.log(`skip ${scenario}: ${problem}`);
        } else {
            failures += 1;
            console.log(`FAIL ${scenario}: ${problem}`);
        }
    }
    return failures;
}
