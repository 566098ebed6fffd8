// What a test knows of a server besides what it says: its processes, and the lines that each leaves.

import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';

import { expect, sleep } from './harness.js';

const ARRIVAL_MS = 20_000;

/** A server that was started by `known`, which gives each process a file in a directory. */
export class Known {
    #directory;

    constructor(directory) {
        this.#directory = directory;
    }

    /** How often this line was left. */
    times(line) {
        return this.#processes().flatMap(pid => this.#lines(pid).filter(left => left === line)).length;
    }

    /** Waits until this line is left. */
    async left(line) {
        const deadline = Date.now() + ARRIVAL_MS;
        while (this.times(line) === 0) {
            expect(Date.now() < deadline, `the server did not say '${line}' within ${ARRIVAL_MS} ms`);
            await sleep(20);
        }
    }

    /** Kills the processes that have left this line, or all. */
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
            // Its number may be another program's by now.
            const environment = readFileSync(`/proc/${pid}/environ`, 'utf8').split('\0');
            if (!environment.includes(`INTEROP_RECORD=${join(this.#directory, pid)}`)) return false;
            return process.kill(Number(pid), 'SIGKILL');
        } catch {
            return false;
        }
    }
}
