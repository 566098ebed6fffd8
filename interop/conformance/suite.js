// Runs the conformance suite's program and parses its output.

import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';

const PROGRAM = fileURLToPath(
    new URL('node_modules/@modelcontextprotocol/conformance/dist/index.js', import.meta.url)
);
/** The remark for scenarios that the suite does not implement. */
export const SKIPPED = 'the suite does not check it yet';

/** Runs the program to its end. */
export function run(...args) {
    const child = spawn(process.execPath, [PROGRAM, ...args], { stdio: ['ignore', 'pipe', 'pipe'] });
    let output = '';
    child.stdout.on('data', chunk => (output += chunk));
    child.stderr.on('data', chunk => (output += chunk));
    return new Promise((resolve, reject) => {
        child.on('error', reject);
        child.on('close', code => resolve({ code, output }));
    });
}

/** Why a scenario failed; undefined if it passed. */
export function verdict(checks) {
    const of = status => checks.filter(check => check.status === status);
    const told = check => `${check.id}: ${check.errorMessage ?? check.description}`.replaceAll('\n', ' | ');
    for (const warning of of('WARNING')) console.log(`   warning ${told(warning)}`);
    if (of('FAILURE').length > 0) return of('FAILURE').map(told).join('; ');
    if (checks.length > 0 && of('SKIPPED').length === checks.length) return SKIPPED;
    if (of('SUCCESS').length === 0) return 'nothing was checked';
    return undefined;
}
