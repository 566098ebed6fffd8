// Checks of the asking servers of every SDK behind Shoal. They support both eras and both ways to ask.

import { randomUUID } from 'node:crypto';

import { Skip, expect, expectEqual, sleep, within } from './harness.js';
import { SAMPLED } from './peer.js';
import { textOf } from './session.js';

const COUNTER = 'asking://counter';
/** More steps than a check has time for. */
const LONG = 600;
const AT_ONCE_MS = 20_000;
const OUTCOME_UNKNOWN = 50002;

/** The checks in order; each gets a session, its peer and the known server. */
export const asking = {
    async call(session) {
        expectEqual(await session.text('echo', { text: 'hello' }), 'hello', 'text');
    },

    async progress(session) {
        const seen = [];
        const onprogress = ({ progress, total }) => seen.push([progress, total]);
        const text = await session.text('work', { steps: 3, label: 'progress' }, { onprogress });
        expectEqual(text, 'worked 3 steps', 'text');
        expectEqual(seen, [1, 2, 3].map(step => [step, 3]), 'progress');
    },

    async cancel(session, _peer, known) {
        const label = `cancel ${randomUUID()}`;
        const controller = new AbortController();
        const { signal } = controller;
        const ended = session.callTool('work', { steps: LONG, label }, { signal }).then(textOf, () => undefined);
        await working(known, label);
        controller.abort(new Error('cancelled by the check'));
        expectEqual(await ended, undefined, 'what the work ended with');
        await known.left(`cancelled ${label}`);
        expectEqual(await session.text('echo', { text: 'still here' }), 'still here', 'text');
    },

    async elicitation_by_request(session, peer) {
        await greeting(session, peer, 'greet');
    },

    async elicitation_by_result(session, peer) {
        await has(session, 'greet_required');
        await greeting(session, peer, 'greet_required');
    },

    async elicitation_as_the_era_has_it(session, peer) {
        await has(session, 'greet_resolved');
        peer.formAnswer = { action: 'accept', content: { name: 'Ada' } };
        expectEqual(await session.text('greet_resolved'), 'hello Ada', 'text');
    },

    async sampling(session) {
        expectEqual(await session.text('summarize', { text: 'a long story' }), `summary: ${SAMPLED}`, 'text');
    },

    async roots(session, peer) {
        expectEqual((await session.text('list_roots')).split('\n'), peer.roots, 'roots');
    },

    async subscription(session, peer) {
        peer.updated = [];
        const stop = await session.subscribe(COUNTER);
        const changes = await session.text('change');
        await peer.waitFor('the update', () => peer.updated.includes(COUNTER));
        await stop();
        const { text } = await session.read(COUNTER);
        expect(/^\d+$/.test(changes) && /^\d+$/.test(text), `odd text ${text}`);
    },

    async crash(session, _peer, known) {
        const label = `crash ${randomUUID()}`;
        const ended = session.callTool('work', { steps: LONG, label }).then(
            result => `the call ended with '${textOf(result)}'`,
            error => error.code,
        );
        await working(known, label);
        known.kill(`started ${label}`);
        expectEqual(await within(AT_ONCE_MS, 'the error', ended), OUTCOME_UNKNOWN, 'code');
        expectEqual(known.times(`started ${label}`), 1, 'starts');
        expectEqual(await session.text('echo', { text: 'back' }), 'back', 'text');
    },

    async crash_in_what_is_safe_to_repeat(session, _peer, known) {
        const label = `crash ${randomUUID()}`;
        const seen = [];
        const onprogress = ({ progress }) => seen.push(progress);
        const ended = session.text('work_safely', { steps: 40, label }, { onprogress });
        // The call may fail before the check waits for it.
        ended.catch(() => {});
        await working(known, label);
        known.kill(`started ${label}`);
        expectEqual(await ended, 'worked 40 steps', 'text');
        expectEqual(known.times(`started ${label}`), 2, 'starts');
        expectEqual(seen, [...new Set(seen)].sort((a, b) => a - b), 'progress, which must increase');
        expectEqual(await session.text('echo', { text: 'back' }), 'back', 'text');
    }
};

/** Waits until the server is in the middle of its work. */
async function working(known, label) {
    await known.left(`started ${label}`);
    // Time to report progress.
    await sleep(200);
}

async function has(session, tool) {
    const names = (await session.listTools()).map(({ name }) => name);
    if (!names.includes(tool)) throw new Skip('the SDK has no such thing');
}

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
