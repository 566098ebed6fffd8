// Runs named checks in order and prints a line for each.

/** Timeout of one check. */
const CHECK_MS = 30_000;

/** The SDK, the transport or the era does not support the check. */
export class Skip extends Error {}

/** Fails the check unless `condition` holds. */
export function expect(condition, message) {
    if (!condition) throw new Error(message);
}

/** Fails the check unless both look the same as JSON. */
export function expectEqual(actual, expected, what) {
    const [got, wanted] = [JSON.stringify(actual), JSON.stringify(expected)];
    expect(got === wanted, `${what}: expected ${wanted}, got ${got}`);
}

/** Fails the check unless every one of `wanted` is among `names`. */
export function expectAll(names, wanted, what) {
    const missing = wanted.filter(name => !names.includes(name));
    expect(missing.length === 0, `missing ${what}: ${missing.join(', ')}`);
}

/** Fails the check unless `action` fails with the JSON-RPC error `code`. */
export async function expectError(action, code) {
    try {
        await action();
    } catch (error) {
        expect(error.code === code, `expected error ${code}, got ${error.code}: ${error.message}`);
        return;
    }
    throw new Error(`expected error ${code}, but it succeeded`);
}

/** Rejects unless `promise` settles within `ms`. */
export async function within(ms, what, promise) {
    let timer;
    const late = new Promise((_, reject) => {
        timer = setTimeout(() => reject(new Error(`${what} took more than ${ms} ms`)), ms);
    });
    try {
        return await Promise.race([promise, late]);
    } finally {
        clearTimeout(timer);
    }
}

export const sleep = ms => new Promise(resolve => setTimeout(resolve, ms));

/** Counts the checks' results. */
export class Runner {
    failed = 0;
    #only;
    #cannot;

    constructor(only, cannot = []) {
        this.#only = only;
        this.#cannot = new Map(cannot.map(each => each.split('|')).map(([name, seen, why]) => [name, { seen, why }]));
    }

    /** Runs one check; false if it failed. */
    async run(name, check) {
        if (this.#only.length > 0 && !this.#only.includes(name)) return true;
        const cannot = this.#cannot.get(name);
        const why = cannot && `${cannot.why} (tried; seen: "${cannot.seen}")`;
        try {
            await within(CHECK_MS, 'the check', check());
        } catch (error) {
            if (cannot && `${error?.message ?? error}`.includes(cannot.seen)) console.log(`skip ${name}: ${why}`);
            else if (error instanceof Skip) console.log(`skip ${name}: ${error.message}`);
            else return this.#fail(name, error);
            return true;
        }
        if (cannot) return this.#fail(name, new Error(`it works, although: ${why}`));
        console.log(`ok ${name}`);
        return true;
    }

    #fail(name, error) {
        this.failed += 1;
        const cause = error?.cause ? ` (${error.cause.message ?? error.cause})` : '';
        console.log(`FAIL ${name}: ${error?.message ?? error}${cause}`.replaceAll('\n', ' | '));
        if (process.env.INTEROP_TRACE) console.error(error);
        return false;
    }
}
