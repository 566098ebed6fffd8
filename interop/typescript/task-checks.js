// Checks of tasks, against the fixtures of the conformance suite (`shoal serve --conformance`).

import { SdkErrorCode } from '@modelcontextprotocol/client';

import { expect, expectEqual, expectError, within } from '../javascript/harness.js';
import { textOf } from '../javascript/session.js';
import { IDENTIFIER, NewTasks, Tasks, isOver } from './tasks.js';

/** Timeout of notifications about a task: the server polls every ten seconds in any case. */
const ARRIVAL_MS = 15_000;

const INVALID_PARAMS = -32602;
const INTERNAL_ERROR = -32603;
const MISSING_CAPABILITY = -32021;

const questions = task => Object.keys(task.inputRequests ?? {});

/** The error of a call that becomes a task. */
const refusal = call =>
    call.then(
        result => {
            throw new Error(`no task, or the SDK takes tasks now: ${JSON.stringify(result)}`);
        },
        error => error
    );

/** @param another connects a client of its own, which declares the extension or not */
export function taskChecks(another) {
    const newTasks = new WeakMap();

    /** Calls a tool and returns the id of its task. */
    async function begin({ client }, name, args = {}) {
        if (!newTasks.has(client)) newTasks.set(client, new NewTasks(client.transport));
        const created = newTasks.get(client);
        created.last = undefined;
        const refused = await refusal(client.callTool({ name, arguments: args }));
        if (refused.code !== SdkErrorCode.UnsupportedResultType) throw refused;
        return created.last.taskId;
    }

    /** Calls a tool and returns its task at the end. */
    async function ended(session, name, args) {
        const id = await begin(session, name, args);
        return new Tasks(session.client).until(id);
    }

    return {
        async offered({ capabilities }) {
            expect(capabilities.extensions?.[IDENTIFIER], `offered: ${JSON.stringify(capabilities.extensions)}`);
        },

        async short_call_is_no_task(session) {
            expectEqual(await session.text('greet', { name: 'Ada' }), 'Hello, Ada!', 'text');
        },

        // Documents the SDK's present behaviour; change this when it supports tasks.
        async sdk_refuses_to_take_a_task({ client }) {
            const error = await refusal(client.callTool({ name: 'slow_compute', arguments: { seconds: 1 } }));
            expectEqual(error.code, SdkErrorCode.UnsupportedResultType, 'error');
            expectEqual(error.data, { resultType: 'task', method: 'tools/call' }, 'what it says, which has no id');
        },

        async sdk_hides_which_tasks_are_listened_to(session) {
            const id = await begin(session, 'slow_compute', { seconds: 1 });
            const subscription = await new Tasks(session.client).listen([id], () => {});
            await subscription.close();
            expectEqual(subscription.honoredFilter, {}, 'what was granted, as the SDK tells it');
        },

        async completes(session) {
            const task = await ended(session, 'slow_compute', { seconds: 1, label: 'sum' });
            expectEqual(task.status, 'completed', 'status');
            expectEqual(textOf(task.result), 'Computed "sum" in 1 s.', 'text');
        },

        async completes_with_is_error(session) {
            const task = await ended(session, 'failing_job');
            expectEqual([task.status, task.result.isError], ['completed', true], 'status and isError');
            expectEqual(textOf(task.result), 'The job failed.', 'text');
        },

        async fails_with_a_protocol_error(session) {
            const task = await ended(session, 'protocol_error_job');
            expectEqual([task.status, task.error.code], ['failed', INTERNAL_ERROR], 'status and code');
            expect(task.error.message.includes('The job is broken.'), `odd message ${task.error.message}`);
        },

        async is_cancelled(session) {
            const tasks = new Tasks(session.client);
            const id = await begin(session, 'slow_compute', { seconds: 60 });
            expectEqual((await tasks.get(id)).status, 'working', 'status');
            await tasks.cancel(id);
            const task = await tasks.until(id);
            expectEqual([task.status, task.result, task.error], ['cancelled', undefined, undefined], 'end');
        },

        async asks_while_it_runs(session, peer) {
            const tasks = new Tasks(session.client);
            peer.formAnswer = { action: 'accept', content: { confirm: true } };
            const id = await begin(session, 'confirm_delete', { filename: 'a.txt' });
            const asking = await tasks.until(id, task => task.status === 'input_required');
            const [[key, { method, params }]] = Object.entries(asking.inputRequests);
            expectEqual([method, params.message], ['elicitation/create', 'Delete a.txt?'], 'question');
            await tasks.update(id, { [key]: peer.onElicit(params) });
            const task = await tasks.until(id);
            expectEqual(textOf(task.result), 'Deleted a.txt.', 'text');
        },

        async questions_are_answered_one_by_one(session) {
            const tasks = new Tasks(session.client);
            const id = await begin(session, 'multi_input');
            const asking = await tasks.until(id, task => questions(task).length === 2);
            expectEqual(asking.status, 'input_required', 'status');
            const [first, second] = questions(asking);
            await tasks.update(id, { [first]: { action: 'accept', content: { name: 'Ada' } } });
            const left = await tasks.until(id, task => questions(task).length < 2);
            expectEqual([left.status, questions(left)], ['input_required', [second]], 'what is left');
            await tasks.update(id, { [second]: { action: 'decline' } });
            const task = await tasks.until(id);
            expectEqual(textOf(task.result), '1 of 2 questions were answered.', 'text');
        },

        // The SDK answers the first result with the client's handlers and calls again; the second call becomes the
        // task.
        async asks_before_it_is_a_task(session, peer) {
            peer.formAnswer = { action: 'accept', content: { name: 'Ada' } };
            const task = await ended(session, 'test_tool_with_task');
            expectEqual(textOf(task.result), 'Worked for Ada.', 'text');
        },

        async news_of_tasks(session) {
            const tasks = new Tasks(session.client);
            const id = await begin(session, 'confirm_delete', { filename: 'b.txt' });
            const told = [];
            const waiting = new Map();
            const status = wanted => within(ARRIVAL_MS, `news of ${wanted}`, new Promise(resolve => waiting.set(wanted, resolve)));
            // The tool asks after a second; the earlier notifications depend on when the stream was opened.
            const [asks, completes] = [status('input_required'), status('completed')];
            // A rejected promise that is no longer awaited must not fail anything else.
            for (const news of [asks, completes]) news.catch(() => {});
            const subscription = await tasks.listen([id, 'no-such-task'], task => {
                told.push(task);
                waiting.get(task.status)?.(task);
            });
            try {
                const [key] = questions(await asks);
                await tasks.update(id, { [key]: { action: 'decline' } });
                expectEqual(textOf((await completes).result), 'Kept b.txt.', 'text');
            } finally {
                await subscription.close();
            }
            expect(told.every(task => task.taskId === id), `told of others: ${JSON.stringify(told)}`);
        },

        async another_client_gets_the_result(session) {
            const id = await begin(session, 'slow_compute', { seconds: 1.5, label: 'later' });
            const other = await another(true);
            const task = await new Tasks(other).until(id, isOver);
            await other.close();
            expectEqual(textOf(task.result), 'Computed "later" in 1.5 s.', 'text');
        },

        async unknown_task({ client }) {
            await expectError(() => new Tasks(client).get('no-such-task'), INVALID_PARAMS);
        },

        async without_the_extension(session) {
            const id = await begin(session, 'slow_compute', { seconds: 1 });
            const other = await another(false);
            await expectError(() => new Tasks(other).get(id), MISSING_CAPABILITY);
            await expectError(() => other.callTool({ name: 'failing_job', arguments: {} }), MISSING_CAPABILITY);
            const plain = await other.callTool({ name: 'slow_compute', arguments: { seconds: 1, label: 'plain' } });
            await other.close();
            expectEqual(textOf(plain), 'Computed "plain" in 1 s.', 'text');
        }
    };
}
