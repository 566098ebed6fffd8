// The client's side of a conversation: answers questions, records notifications.

const ARRIVAL_MS = 10_000;

export const SAMPLED = 'a sampled text';
export const ROOTS = ['file:///workspace/one', 'file:///workspace/two'];

/** The client's capabilities, the same in both SDKs. */
export const CAPABILITIES = {
    sampling: {},
    elicitation: { form: {}, url: {} },
    roots: { listChanged: true }
};

/** Gives scripted answers, and records all questions and notifications. */
export class Peer {
    formAnswer = { action: 'cancel' };
    urlAnswer = { action: 'cancel' };
    forms = [];
    urls = [];
    samples = [];
    logs = [];
    updated = [];
    toolListChanges = 0;
    #waiting = new Set();

    constructor(roots) {
        this.roots = roots;
    }

    onElicit(params) {
        if (params.mode === 'url') {
            this.urls.push(params);
            return this.urlAnswer;
        }
        this.forms.push(params);
        return this.formAnswer;
    }

    onSample(params) {
        this.samples.push(params);
        return { role: 'assistant', model: 'scripted', content: { type: 'text', text: SAMPLED } };
    }

    onListRoots() {
        return { roots: this.roots.map(uri => ({ uri })) };
    }

    onLog(params) {
        this.logs.push(params);
        this.#wake();
    }

    onUpdated(params) {
        this.updated.push(params.uri);
        this.#wake();
    }

    onToolListChanged() {
        this.toolListChanges += 1;
        this.#wake();
    }

    /** Waits until a notification makes `arrived` true. */
    async waitFor(what, arrived) {
        const deadline = Date.now() + ARRIVAL_MS;
        while (!arrived()) {
            const left = deadline - Date.now();
            if (left <= 0) throw new Error(`${what} did not arrive within ${ARRIVAL_MS} ms`);
            await new Promise(resolve => {
                const timer = setTimeout(resolve, left);
                this.#waiting.add(() => (clearTimeout(timer), resolve()));
            });
        }
    }

    #wake() {
        for (const resolve of this.#waiting) resolve();
        this.#waiting.clear();
    }
}
