// A test's knowledge of a server: its processes, and the lines that each has written.

import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';

import { expect, sleep } from './harness.js';

const ARRIVAL_MS = 20_000;

/** A server started by `known`, which gives each process a file in a directory. */
export class Known {
    #directory;

    constructor(directory) {
        this.#directory = directory;
    }

    /** How often this line was written. */
    times(line) {
        return this.#processes().flatMap(pid => this.#lines(pid).filter(left => left === line)).length;
    }

    /** Waits for this line. */
    async left(line) {
        const deadline = Date.now() + ARRIVAL_MS;
        while (this.times(line) === 0) {
            expect(Date.now() < deadline, `the server did not say '${line}' within ${ARRIVAL_MS} ms`);
            await sleep(20);
        }
    }

    /** Kills the processes that have written this line, or all. */
    kill(line) {
        const meant = this.#processes().filter(pid => line === undefined || this.#lines(pid).includes(line));
        expect(meant.map(pid => this.#kill(pid)).includes(true), 'there was nothing to kill');
    }

    #processes() {
        return readdirSync(this.#directory);
    }

    #lines(pid) {
        return readFileSync(join(this.#directory, pid), 'utf8').split('\n');
    }

    #kill(pid) {
        try {
            // The process id may have been reused.
            const environment = readFileSync(`/proc/${pid}/environ`, 'utf8').split('\0');
            if (!environment.includes(`INTEROP_RECORD=${join(this.#directory, pid)}`)) return false;
            return process.kill(Number(pid), 'SIGKILL');
        } catch {
            return false;
        }
    }
}
