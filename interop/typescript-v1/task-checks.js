// Checks of tasks as 2025-11-25 has them, against the fixtures of the conformance suite (`shoal serve --conformance`). The SDK has all
// that a client of them needs: the client's handlers are asked while it waits for the result.

import { CallToolResultSchema } from '@modelcontextprotocol/sdk/types.js';

import { expect, expectEqual } from '../javascript/harness.js';
import { textOf } from '../javascript/session.js';

const RELATED = 'io.modelcontextprotocol/related-task';

/** Calls a tool as a task; returns all messages of the SDK about it. */
async function run({ client }, name, args = {}) {
    // The SDK requests a task if the list allows it for the tool.
    await client.listTools();
    const told = [];
    const stream = client.experimental.tasks.callToolStream({ name, arguments: args }, CallToolResultSchema);
    for await (const message of stream) told.push(message);
    const statuses = told.filter(({ type }) => type === 'taskStatus').map(({ task }) => task.status);
    expectEqual(told[0].type, 'taskCreated', 'the first that is told');
    return { id: told[0].task.taskId, statuses, last: told.at(-1) };
}

export const tasks = {
    async offered({ client }) {
        const offered = client.getServerCapabilities().tasks;
        expect(offered?.requests?.tools?.call, `offered: ${JSON.stringify(offered)}`);
    },

    async asks_while_it_runs(session, peer) {
        peer.formAnswer = { action: 'accept', content: { confirm: true } };
        const asked = peer.forms.length;
        const { id, statuses, last } = await run(session, 'confirm_delete', { filename: 'a.txt' });
        expect(statuses.includes('input_required'), `told: ${statuses}`);
        expectEqual(textOf(last.result), 'Deleted a.txt.', 'text');
        const questions = peer.forms.slice(asked);
        expectEqual(questions.map(({ message }) => message), ['Delete a.txt?'], 'questions');
        expectEqual(questions[0]._meta[RELATED], { taskId: id }, 'related task');
        const now = await session.client.experimental.tasks.getTask(id);
        expectEqual(now.status, 'completed', 'status');
    },

    async asks_two_questions_at_once(session, peer) {
        peer.formAnswer = { action: 'accept', content: { name: 'Ada', confirm: true } };
        const { last } = await run(session, 'multi_input');
        expectEqual(textOf(last.result), '2 of 2 questions were answered.', 'text');
    },

    async asks_by_its_result(session, peer) {
        peer.formAnswer = { action: 'accept', content: { name: 'Ada' } };
        const { last } = await run(session, 'test_tool_with_task');
        expectEqual(textOf(last.result), 'Worked for Ada.', 'text');
    },

    async a_task_that_fails_says_so(session) {
        const { id } = await run(session, 'failing_job');
        const now = await session.client.experimental.tasks.getTask(id);
        expectEqual(now.status, 'failed', 'status');
        const listed = await session.client.experimental.tasks.listTasks();
        expect(listed.tasks.some(({ taskId }) => taskId === id), 'it is not listed');
    }
};
