// Checks against Shoal's demo pool.

import { Skip, expect, expectAll, expectEqual, expectError, sleep } from './harness.js';
import { SAMPLED } from './peer.js';
import { textOf } from './session.js';

const TOOLS = [
    'echo',
    'add',
    'long_job',
    'book_table',
    'connect_account',
    'summarize',
    'list_roots',
    'increment_counter',
    'toggle_bonus_tool',
    'write_log',
    'fail'
];
const COUNTER = 'demo://counter';
const INVALID_PARAMS = -32602;
/** How long to listen for a message that must not come. */
const QUIET_MS = 300;

async function counter(session) {
    return Number((await session.read(COUNTER)).text.replaceAll(/[^-\d]/g, ''));
}

/** The checks in order; each gets a session and its peer. */
export const demo = {
    async list_tools(session) {
        const names = (await session.listTools()).map(tool => tool.name);
        expectAll(names, TOOLS, 'tools');
        expectEqual(new Set(names).size, names.length, 'distinct tool names');
    },

    async echo(session) {
        expectEqual(await session.text('echo', { text: 'héllo 🌊' }), 'héllo 🌊', 'text');
    },

    async structured_content(session) {
        const result = await session.callTool('add', { a: 2, b: 40 });
        expectEqual(result.structuredContent, { sum: 42 }, 'structured content');
    },

    async progress(session) {
        const seen = [];
        const onprogress = ({ progress, total }) => seen.push([progress, total]);
        const text = await session.text('long_job', { steps: 5, interval_ms: 20 }, { onprogress });
        expectEqual(text, 'done after 5 steps', 'text');
        expectEqual(seen, [1, 2, 3, 4, 5].map(step => [step, 5]), 'progress');
    },

    async sampling(session, peer) {
        expectEqual(await session.text('summarize', { text: 'a long story' }), `summary: ${SAMPLED}`, 'text');
        expect(JSON.stringify(peer.samples.at(-1)).includes('a long story'), 'the prompt lacks the text');
    },

    async elicit_form_accept(session, peer) {
        peer.formAnswer = { action: 'accept', content: { guests: 4, date: '2026-08-01' } };
        const text = await session.text('book_table', { restaurant: 'Chez Nous' });
        expectEqual(text, 'booked Chez Nous for 4 on 2026-08-01', 'text');
        const fields = Object.keys(peer.forms.at(-1).requestedSchema.properties);
        expectEqual(fields.sort(), ['date', 'guests'], "the form's fields");
    },

    async elicit_form_decline(session, peer) {
        peer.formAnswer = { action: 'decline' };
        const text = await session.text('book_table', { restaurant: 'Chez Nous' });
        expectEqual(text, 'not booked: declined', 'text');
    },

    async elicit_form_cancel(session, peer) {
        peer.formAnswer = { action: 'cancel' };
        const text = await session.text('book_table', { restaurant: 'Chez Nous' });
        expectEqual(text, 'not booked: cancelled', 'text');
    },

    async elicit_url(session, peer) {
        peer.urlAnswer = { action: 'accept' };
        const before = peer.urls.length;
        await session.text('connect_account', { service: 'calendar' });
        expectEqual(peer.urls.length, before + 1, 'URL elicitations');
        expect(peer.urls.at(-1).url.includes('calendar'), `odd URL ${peer.urls.at(-1).url}`);
    },

    async roots(session, peer) {
        expectEqual((await session.text('list_roots')).split('\n'), peer.roots, 'roots');
    },

    async list_resources(session) {
        const uris = (await session.listResources()).map(resource => resource.uri);
        expectAll(uris, ['demo://readme', COUNTER, 'demo://logo'], 'resources');
    },

    async read_resource(session) {
        const { text } = await session.read('demo://readme');
        expect(text?.includes('demo'), `odd text ${text}`);
    },

    async read_blob(session) {
        const { blob, mimeType } = await session.read('demo://logo');
        expectEqual(mimeType, 'image/png', 'type');
        expectEqual(Buffer.from(blob, 'base64').toString('latin1', 1, 4), 'PNG', 'signature');
    },

    async read_template(session) {
        const templates = (await session.listResourceTemplates()).map(template => template.uriTemplate);
        expectAll(templates, ['demo://greeting/{name}'], 'templates');
        const { text } = await session.read('demo://greeting/Ada');
        expect(text?.includes('Ada'), `odd text ${text}`);
    },

    async unknown_resource(session) {
        await expectError(() => session.read('demo://nowhere'), session.resourceNotFound);
    },

    async subscription(session, peer) {
        const before = await counter(session);
        peer.updated = [];
        const stop = await session.subscribe(COUNTER);
        await session.text('increment_counter');
        await peer.waitFor('the update', () => peer.updated.includes(COUNTER));
        await stop();
        expectEqual(await counter(session), before + 1, 'counter');
    },

    async unsubscribed(session, peer) {
        peer.updated = [];
        await session.text('increment_counter');
        await sleep(QUIET_MS);
        expectEqual(peer.updated, [], 'updates after unsubscribing');
    },

    async tools_list_changed(session, peer) {
        const before = (await session.listTools()).map(tool => tool.name);
        const stop = await session.watchTools();
        const seen = peer.toolListChanges;
        await session.text('toggle_bonus_tool');
        try {
            await peer.waitFor('the change', () => peer.toolListChanges > seen);
            const after = (await session.listTools()).map(tool => tool.name);
            expectEqual(Math.abs(after.length - before.length), 1, 'tools that came or went');
        } finally {
            await stop();
            await session.text('toggle_bonus_tool');
        }
    },

    async list_prompts(session) {
        const names = (await session.listPrompts()).map(prompt => prompt.name);
        expectAll(names, ['greet', 'code_review'], 'prompts');
    },

    async get_prompt(session) {
        const prompt = await session.getPrompt('greet', { name: 'Ada', language: 'French' });
        const { text } = prompt.messages[0].content;
        expect(text.includes('Ada') && text.includes('French'), `odd text ${text}`);
    },

    async completion(session) {
        const values = await session.completePrompt('greet', 'language', 'G');
        expectAll(values, ['German'], 'values');
        expect(!values.includes('French'), 'the prefix was ignored');
    },

    async logging(session, peer) {
        if (!session.modern) await session.setLevel('info');
        peer.logs = [];
        const least = { logLevel: 'info' };
        await session.text('write_log', { level: 'debug', message: 'too quiet' }, least);
        await session.text('write_log', { level: 'warning', message: 'loud enough' }, least);
        await peer.waitFor('the message', () => peer.logs.length > 0);
        const got = peer.logs.map(({ level, data }) => [level, data]);
        expectEqual(got, [['warning', 'loud enough']], 'messages');
    },

    async cancel(session) {
        const { signal } = scheduled(300);
        let ended;
        try {
            await session.callTool('long_job', { steps: 1000, interval_ms: 100 }, { signal });
            ended = 'the job ended before it was cancelled';
        } catch (error) {
            ended = signal.aborted ? undefined : error.message;
        }
        expect(!ended, ended);
        expectEqual(await session.text('echo', { text: 'still here' }), 'still here', 'text');
    },

    async resume(session) {
        if (session.modern) throw new Skip('2026-07-28 has no resumable streams');
        if (!session.cutter) throw new Skip('this transport has no resumable streams');
        const seen = [];
        const onprogress = ({ progress }) => {
            seen.push(progress);
            if (progress === 3) session.cutter.cut();
        };
        const text = await session.text('long_job', { steps: 12, interval_ms: 100 }, { onprogress });
        expectEqual(text, 'done after 12 steps', 'text');
        expectEqual(seen, [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12], 'progress');
    },

    async tool_error(session) {
        const result = await session.callTool('fail', { message: 'it broke' });
        expect(result.isError, 'isError is not set');
        expect(textOf(result).includes('it broke'), `odd text ${textOf(result)}`);
    },

    async bad_arguments(session) {
        const result = await session.callTool('add', { a: 'two', b: 40 });
        expect(result.isError, 'isError is not set');
    },

    async unknown_tool(session) {
        await expectError(() => session.callTool('no_such_tool', {}), INVALID_PARAMS);
    },

    async concurrent_calls(session) {
        const texts = Array.from({ length: 20 }, (_, number) => `call ${number}`);
        const answers = await Promise.all(texts.map(text => session.text('echo', { text })));
        expectEqual(answers, texts, 'answers');
    },

    async ping(session) {
        if (session.modern) throw new Skip('2026-07-28 has no ping');
        await session.client.ping();
    }
};

/** A controller that aborts by itself. */
function scheduled(ms) {
    const controller = new AbortController();
    setTimeout(() => controller.abort(new Error('cancelled by the check')), ms);
    return controller;
}
