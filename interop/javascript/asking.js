// Checks against the asking servers of every SDK behind Shoal: they speak both eras, and ask in the way of either.

import { Skip, expectEqual } from './harness.js';
import { SAMPLED } from './peer.js';

export const asking = {
    async echo(session) {
        expectEqual(await session.text('echo', { text: 'hello' }), 'hello', 'text');
    },

    async elicit_by_request(session, peer) {
        await greeting(session, peer, 'greet');
    },

    async elicit_by_result(session, peer) {
        await greeting(session, peer, 'greet_required');
    },

    async elicit_as_the_era_has_it(session, peer) {
        const names = (await session.listTools()).map(tool => tool.name);
        if (!names.includes('greet_resolved')) throw new Skip('the SDK has no such thing');
        peer.formAnswer = { action: 'accept', content: { name: 'Ada' } };
        expectEqual(await session.text('greet_resolved'), 'hello Ada', 'text');
    },

    async sampling(session) {
        expectEqual(await session.text('summarize', { text: 'a long story' }), `summary: ${SAMPLED}`, 'text');
    },

    async roots(session, peer) {
        expectEqual((await session.text('list_roots')).split('\n'), peer.roots, 'roots');
    }
};

async function greeting(session, peer, tool) {
    for (let round = 0; round < 2; round += 1) {
        const before = peer.forms.length;
        peer.formAnswer = { action: 'accept', content: { name: 'Ada' } };
        expectEqual(await session.text(tool), 'hello Ada', 'text');
        peer.formAnswer = { action: 'decline' };
        expectEqual(await session.text(tool), 'nobody: decline', 'text');
        expectEqual(peer.forms.length, before + 2, 'questions');
    }
}
