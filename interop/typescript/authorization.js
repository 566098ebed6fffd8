// Authorizes with the official TypeScript SDK 2.x, as a user who clicks through everything, and reports what works.
// By hand: node authorization.js --url http://127.0.0.1:PORT/mcp --era modern --ttl 5 [--dpop]

import { parseArgs } from 'node:util';

import { Client, DpopSession, StreamableHTTPClientTransport, UnauthorizedError } from '@modelcontextprotocol/client';

import { Runner, expect, expectEqual, sleep } from '../javascript/harness.js';

const MODES = { legacy: 'legacy', modern: 'auto' };
// Nothing listens here, because the redirect is read and not followed.
const CALLBACK = 'http://127.0.0.1:9/callback';
const MOST_REDIRECTS = 10;

/** The SDK's storage, and a browser that follows redirects to the client's callback. */
class User {
    visits = 0;
    stored = [];
    #client;
    #verifier;
    #cookies = new Map();
    #calledBack;
    #key;

    /** The key of bound tokens, if they are bound. */
    dpop() {
        if (options.dpop) this.#key ??= DpopSession.create();
        return this.#key;
    }

    get redirectUrl() {
        return CALLBACK;
    }

    get clientMetadata() {
        return {
            client_name: 'interop-typescript',
            redirect_uris: [CALLBACK],
            grant_types: ['authorization_code', 'refresh_token'],
            response_types: ['code'],
            token_endpoint_auth_method: 'none',
            application_type: 'native'
        };
    }

    clientInformation() {
        return this.#client;
    }

    saveClientInformation(client) {
        this.#client = client;
    }

    tokens() {
        return this.stored.at(-1);
    }

    saveTokens(tokens) {
        this.stored.push(tokens);
    }

    saveCodeVerifier(verifier) {
        this.#verifier = verifier;
    }

    codeVerifier() {
        return this.#verifier;
    }

    async redirectToAuthorization(url) {
        this.visits += 1;
        for (let redirects = 0; redirects < MOST_REDIRECTS; redirects++) {
            const cookie = [...this.#cookies].map(([name, value]) => `${name}=${value}`).join('; ');
            const answer = await fetch(url, { redirect: 'manual', headers: cookie ? { cookie } : {} });
            for (const set of answer.headers.getSetCookie()) {
                const [name, value] = set.split(';')[0].split('=');
                if (value) this.#cookies.set(name, value);
                else this.#cookies.delete(name);
            }
            const location = answer.headers.get('location');
            expect(location, `${answer.status} at ${url}: ${(await answer.text()).slice(0, 300)}`);
            url = new URL(location, url);
            if (url.href.startsWith(CALLBACK)) {
                this.#calledBack = url.searchParams;
                return;
            }
        }
        throw new Error('too many redirects');
    }

    /** The parameters of the callback. */
    get calledBack() {
        return this.#calledBack;
    }
}

const { values: options } = parseArgs({
    options: {
        url: { type: 'string' },
        era: { type: 'string' },
        ttl: { type: 'string' },
        dpop: { type: 'boolean', default: false }
    }
});
const user = new User();
let client;
let transport;

function prepare() {
    transport = new StreamableHTTPClientTransport(new URL(options.url), { authProvider: user });
    client = new Client(
        { name: 'interop-typescript', version: '1.0.0' },
        { versionNegotiation: { mode: MODES[options.era] } }
    );
}

/** Repeats `action` after the user has authorized, as applications of this SDK do. */
async function authorized(action) {
    try {
        return await action();
    } catch (error) {
        if (!(error instanceof UnauthorizedError) && !(error?.cause instanceof UnauthorizedError)) throw error;
        await transport.finishAuth(user.calledBack);
        return action();
    }
}

async function call(name, args) {
    const result = await client.callTool({ name, arguments: args });
    expect(!result.isError, JSON.stringify(result));
    return result.content[0].text;
}

const runner = new Runner([]);
await runner.run('authorizes', async () => {
    await authorized(async () => {
        // Transports cannot be restarted.
        prepare();
        await client.connect(transport);
    });
    expectEqual(await call('echo', { text: 'hello' }), 'hello', 'answer');
    expectEqual(user.visits, 1, 'visits of the browser');
    expect(user.clientInformation(), 'the client did not register');
    expectEqual(user.tokens().scope, 'mcp', 'scope');
    expectEqual(user.tokens().token_type.toLowerCase(), options.dpop ? 'dpop' : 'bearer', 'kind of token');
});
await runner.run('refreshes', async () => {
    const before = user.stored.length;
    await sleep((Number(options.ttl) + 1) * 1000);
    expectEqual(await call('echo', { text: 'again' }), 'again', 'answer');
    expect(user.stored.length > before, 'the token was not refreshed');
    expectEqual(user.visits, 1, 'visits of the browser');
});
await runner.run('steps_up', async () => {
    const sum = await authorized(() => call('add', { a: 1, b: 2 }));
    expect(sum.includes('3'), `not the sum: ${sum}`);
    expectEqual(user.visits, 2, 'visits of the browser');
    const granted = user.tokens().scope.split(' ');
    expect(granted.includes('mcp') && granted.includes('math'), `granted: ${granted}`);
});
await client.close();
process.exit(runner.failed > 0 ? 1 : 0);
