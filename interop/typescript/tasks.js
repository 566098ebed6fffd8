// The extension io.modelcontextprotocol/tasks, as far as a client of the TypeScript SDK can have it.
//
// The SDK 2.4 gives these means, and each is used here:
//
// * `capabilities.extensions` declares the extension with each request.
// * `request` sends `tasks/get`, `tasks/update` and `tasks/cancel` if it is given a schema of the result, and repeats the
//   task's id in the header `Mcp-Name`.
// * `listen` passes `taskIds` on as it is, and `setNotificationHandler` takes `notifications/tasks` with a schema.
//
// It lacks the rest:
//
// * No call can become a task: an answer with `resultType: "task"` is refused before any schema or handler is asked, and the
//   error does not say the task's id. `NewTasks` reads it from the transport, beside the SDK.
// * What `listen` was granted is told without `taskIds`.
// * A question of a task cannot be given to the client's own handlers, so that the application answers it.
// * Its types named `Task…` are those of 2025-11-25. Results and the waiting for their end are written here.

import { fromJsonSchema } from '@modelcontextprotocol/client';

import { sleep } from '../javascript/harness.js';

export const IDENTIFIER = 'io.modelcontextprotocol/tasks';

/** The poll interval if the server names none. */
const PAUSE_MS = 200;

const TASK = fromJsonSchema({
    type: 'object',
    properties: {
        taskId: { type: 'string' },
        status: { enum: ['working', 'input_required', 'completed', 'failed', 'cancelled'] },
        createdAt: { type: 'string' },
        lastUpdatedAt: { type: 'string' },
        pollIntervalMs: { type: 'integer' },
        inputRequests: { type: 'object' },
        result: { type: 'object' },
        error: { type: 'object', required: ['code', 'message'] }
    },
    required: ['taskId', 'status', 'createdAt', 'lastUpdatedAt']
});
const NOTHING = fromJsonSchema({ type: 'object' });

export const isOver = ({ status }) => ['completed', 'failed', 'cancelled'].includes(status);

/** Waits for the server's poll interval. */
export const pause = ({ pollIntervalMs }) => sleep(pollIntervalMs ?? PAUSE_MS);

/** The last call's task, read from a connected client's transport. */
export class NewTasks {
    last;

    constructor(transport) {
        const { onmessage } = transport;
        transport.onmessage = (message, extra) => {
            if (message.result?.resultType === 'task') this.last = message.result;
            onmessage(message, extra);
        };
    }
}

/** The requests about tasks. */
export class Tasks {
    #client;

    constructor(client) {
        this.#client = client;
    }

    get(taskId) {
        return this.#client.request({ method: 'tasks/get', params: { taskId } }, TASK);
    }

    update(taskId, inputResponses) {
        return this.#client.request({ method: 'tasks/update', params: { taskId, inputResponses } }, NOTHING);
    }

    cancel(taskId) {
        return this.#client.request({ method: 'tasks/cancel', params: { taskId } }, NOTHING);
    }

    /** The task as soon as `arrived` accepts it, or at its end. */
    async until(taskId, arrived = isOver) {
        for (;;) {
            const task = await this.get(taskId);
            if (arrived(task) || isOver(task)) return task;
            await pause(task);
        }
    }

    /** Calls `told` with each notified task, until the returned subscription is closed. */
    listen(taskIds, told) {
        this.#client.setNotificationHandler('notifications/tasks', { params: TASK }, told);
        return this.#client.listen({ taskIds });
    }
}
