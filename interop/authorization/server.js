// A real authorization server for tests: oidc-provider, with dynamic registration, PKCE, resource indicators and refresh tokens.
// Whoever comes is the user `alice` and consents to everything, by redirects alone.
//
// node server.js --resource URL [--scopes 'SCOPE …'] [--ttl SECONDS] [--opaque] [--port PORT] prints "authorization: URL".

import { createServer } from 'node:http';
import { parseArgs } from 'node:util';

import Provider from 'oidc-provider';

const { values: options } = parseArgs({
    options: {
        resource: { type: 'string' },
        scopes: { type: 'string', default: 'mcp math' },
        ttl: { type: 'string', default: '600' },
        opaque: { type: 'boolean', default: false },
        port: { type: 'string', default: '0' }
    }
});
const SCOPES = options.scopes.split(' ');

// The issuer's URL contains the port, so listen first.
let handle;
const server = createServer((request, response) => handle(request, response));
await new Promise(resolve => server.listen(Number(options.port), '127.0.0.1', resolve));
const issuer = `http://127.0.0.1:${server.address().port}`;

const provider = new Provider(issuer, {
    // For Shoal's introspection.
    clients: [
        {
            client_id: 'shoal',
            client_secret: 'open sesame',
            grant_types: [],
            response_types: [],
            redirect_uris: [],
            token_endpoint_auth_method: 'client_secret_basic'
        }
    ],
    scopes: ['openid', 'offline_access', ...SCOPES],
    // A client registers the scopes that it knows then, but may be granted more later.
    extraClientMetadata: {
        properties: ['any_scope'],
        validator: (_context, _key, _value, metadata) => {
            delete metadata.scope;
        }
    },
    clientDefaults: { token_endpoint_auth_method: 'none' },
    features: {
        devInteractions: { enabled: false },
        registration: { enabled: true },
        introspection: { enabled: true, allowedPolicy: (_context, client) => client.clientId === 'shoal' },
        dPoP: { enabled: true },
        resourceIndicators: {
            enabled: true,
            getResourceServerInfo: (_context, resource) => {
                if (resource !== options.resource) throw new Error(`no tokens for ${resource}`);
                return {
                    scope: SCOPES.join(' '),
                    audience: resource,
                    accessTokenTTL: Number(options.ttl),
                    accessTokenFormat: options.opaque ? 'opaque' : 'jwt',
                    jwt: { sign: { alg: 'RS256' } }
                };
            }
        }
    },
    issueRefreshToken: (_context, client) => client.grantTypeAllowed('refresh_token'),
    findAccount: (_context, accountId) => ({ accountId, claims: () => ({ sub: accountId }) }),
    interactions: { url: (_context, interaction) => `/consent/${interaction.uid}` }
});

const callback = provider.callback();
handle = async (request, response) => {
    if (!request.url.startsWith('/consent/')) return callback(request, response);
    try {
        await consent(request, response);
    } catch (error) {
        response.writeHead(500).end(String(error));
    }
};

async function consent(request, response) {
    const { prompt, params, grantId } = await provider.interactionDetails(request, response);
    if (prompt.name === 'login') {
        const login = { accountId: 'alice' };
        return provider.interactionFinished(request, response, { login }, { mergeWithLastSubmission: false });
    }
    const accountId = 'alice';
    const known = grantId && (await provider.Grant.find(grantId));
    const grant = known || new provider.Grant({ accountId, clientId: params.client_id });
    if (prompt.details.missingOIDCScope) grant.addOIDCScope(prompt.details.missingOIDCScope.join(' '));
    for (const [resource, scopes] of Object.entries(prompt.details.missingResourceScopes ?? {})) {
        grant.addResourceScope(resource, scopes.join(' '));
    }
    const result = { consent: { grantId: await grant.save() } };
    return provider.interactionFinished(request, response, result, { mergeWithLastSubmission: true });
}

console.log(`authorization: ${issuer}`);
