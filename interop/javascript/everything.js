// Checks against `@modelcontextprotocol/server-everything` behind Shoal.

import { Skip, expect, expectAll, expectEqual } from './harness.js';
import { SAMPLED } from './peer.js';
import { textOf } from './session.js';

const LONG = 'trigger-long-running-operation';
const DOCUMENT = 'demo://resource/dynamic/text/7';

/**
 * The checks in order; each gets a session and its peer.
 *
 * @param ownProcess whether the server's process is not shared
 */
export const everything = ownProcess => ({
    async list_tools(session) {
        // The server offers the last three only if the client declares the capabilities.
        const wanted = [
            'echo',
            'get-sum',
            'get-structured-content',
            LONG,
            'trigger-elicitation-request',
            'trigger-url-elicitation',
            'trigger-sampling-request'
        ];
        expectAll((await session.listTools()).map(tool => tool.name), wanted, 'tools');
    },

    async call(session) {
        expectEqual(await session.text('echo', { message: 'hello' }), 'Echo: hello', 'text');
    },

    async structured_content(session) {
        const result = await session.callTool('get-structured-content', { location: 'Chicago' });
        expectEqual(result.structuredContent?.temperature, 36, 'temperature');
    },

    async progress(session) {
        const seen = [];
        // Progress without a total is the SDK's own, also for questions: the server may ask for roots meanwhile.
        const onprogress = ({ progress, total }) => total && seen.push(progress);
        await session.text(LONG, { duration: 0.4, steps: 4 }, { onprogress });
        expectEqual(seen, [1, 2, 3, 4], 'progress');
    },

    async cancel(session) {
        const seen = [];
        const controller = new AbortController();
        const onprogress = ({ progress }) => {
            seen.push(progress);
            controller.abort(new Error('cancelled by the check'));
        };
        const options = { onprogress, signal: controller.signal };
        const ended = session.callTool(LONG, { duration: 6, steps: 12 }, options).then(textOf, () => undefined);
        expectEqual(await ended, undefined, 'what the operation ended with');
        expectEqual(await session.text('echo', { message: 'still here' }), 'Echo: still here', 'text');
        expectEqual(seen, [1], 'progress of what was cancelled');
    },

    async elicitation_form_accept(session, peer) {
        peer.formAnswer = { action: 'accept', content: { name: 'Ada' } };
        const text = await session.text('trigger-elicitation-request');
        expect(text.includes('- Name: Ada'), `odd text ${text}`);
    },

    async elicitation_form_decline(session, peer) {
        peer.formAnswer = { action: 'decline' };
        const text = await session.text('trigger-elicitation-request');
        expect(text.includes('declined'), `odd text ${text}`);
    },

    async elicitation_url(session, peer) {
        peer.urlAnswer = { action: 'accept' };
        const before = peer.urls.length;
        const url = 'https://example.com/sign-in';
        await session.text('trigger-url-elicitation', { url });
        expectEqual(peer.urls.length, before + 1, 'URL elicitations');
        expectEqual(peer.urls.at(-1).url, url, 'URL');
    },

    async sampling(session, peer) {
        const args = { prompt: 'a long story', maxTokens: 50 };
        const text = await session.text('trigger-sampling-request', args);
        expect(text.includes(SAMPLED), `odd text ${text}`);
        expect(JSON.stringify(peer.samples.at(-1)).includes('a long story'), 'the prompt lacks the text');
    },

    async roots(session, peer) {
        // The server keeps the roots of one client, so Shoal does not tell shared processes any roots.
        const names = (await session.listTools()).map(tool => tool.name);
        if (!names.includes('get-roots-list') && !ownProcess) throw new Skip("the server's processes are shared");
        const text = await session.text('get-roots-list');
        expect(text.includes(peer.roots[0]), `odd text ${text}`);
    },

    async task(session, peer) {
        // The server runs it only as a task, which takes four seconds.
        if (ownProcess) throw new Skip('shown with shared processes');
        peer.formAnswer = { action: 'accept', content: { interpretation: 'technical' } };
        const text = await session.text('simulate-research-query', { topic: 'shoals', ambiguous: true });
        expect(text.includes('# Research Report: shoals (technical)'), `odd text ${text}`);
    },

    async list_resources(session) {
        expect((await session.listResources()).length > 0, 'no resources');
    },

    async read_resource(session) {
        const [{ uri }] = await session.listResources();
        expectEqual((await session.read(uri)).uri, uri, 'URI');
    },

    async read_template(session) {
        const templates = (await session.listResourceTemplates()).map(template => template.uriTemplate);
        expectAll(templates, ['demo://resource/dynamic/text/{resourceId}'], 'templates');
        const { text } = await session.read(DOCUMENT);
        expect(text?.includes('7'), `odd text ${text}`);
    },

    async subscription(session, peer) {
        // The server sends an update at once and then every five seconds, until the next call.
        const stop = await session.subscribe(DOCUMENT);
        await session.text('toggle-subscriber-updates');
        try {
            await peer.waitFor('the update', () => peer.updated.includes(DOCUMENT));
        } finally {
            await stop();
            await session.text('toggle-subscriber-updates');
        }
    },

    async list_prompts(session) {
        const names = (await session.listPrompts()).map(prompt => prompt.name);
        expectAll(names, ['simple-prompt', 'args-prompt', 'completable-prompt'], 'prompts');
    },

    async get_prompt(session) {
        const prompt = await session.getPrompt('args-prompt', { city: 'Paris' });
        const { text } = prompt.messages[0].content;
        expect(text.includes('Paris'), `odd text ${text}`);
    },

    async completion(session) {
        const values = await session.completePrompt('completable-prompt', 'department', 'E');
        expectEqual(values, ['Engineering'], 'values');
    },

    async tool_error(session) {
        const result = await session.callTool('get-sum', { a: 'two', b: 40 });
        expect(result.isError, 'isError is not set');
        expect(textOf(result), 'no text');
    },

    async crash(session, _peer, known) {
        // The tool may be repeated, so it runs again and succeeds.
        let killed = false;
        const onprogress = () => {
            if (!killed) known.kill();
            killed = true;
        };
        const text = await session.text(LONG, { duration: 1, steps: 4 }, { onprogress });
        expect(text.includes('completed'), `odd text ${text}`);
        expectEqual(await session.text('echo', { message: 'back' }), 'Echo: back', 'text');
    }
});
