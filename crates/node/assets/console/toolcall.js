// A call of a tool: form, messages, questions, result.

import { call } from './api.js';
import { announce, confirm, h, say } from './dom.js';
import { Form, tellWrong } from './form.js';
import { duration } from './format.js';

/// Maximum characters of a shown text, and messages of a call.
const LONGEST = 100_000;
const MOST_MESSAGES = 200;
/// Maximum rounds of questions.
const MOST_ROUNDS = 20;
const IMAGES = ['image/png', 'image/jpeg', 'image/gif', 'image/webp'];

/// Calls the tool of this definition; calls `ended` after each call.
export class ToolCall {
    constructor(definition, { annotations, off, ended }) {
        this.name = definition.name;
        this.careful = annotations.read_only !== true && annotations.destructive !== false;
        this.ended = ended;
        this.running = null;
        this.form = new Form(definition.inputSchema ?? {}, 'Arguments');
        this.wrong = h('p', { class: 'wrong', role: 'alert' });
        this.start = h('button', { type: 'submit', class: 'main', 'data-does': 'call' }, 'Call');
        this.stop = h('button', { type: 'button', 'data-does': 'stop', hidden: true }, 'Stop');
        this.stop.addEventListener('click', () => this.close());
        this.progress = h('progress', { hidden: true, 'aria-label': 'Progress' });
        this.messages = h('ol', { class: 'messages' });
        this.question = h('div');
        this.outcome = h('div', { class: 'outcome', role: 'status', 'data-outcome': '' });
        const form = h('form', { novalidate: true }, this.form.element, this.wrong,
            h('div', { class: 'buttons' }, this.stop, this.start));
        form.addEventListener('submit', (event) => {
            event.preventDefault();
            this.#submit();
        });
        this.element = h('div', { class: 'toolcall' }, off ? h('p', { class: 'none' }, `${off}.`) : form,
            this.progress, this.messages, this.question, this.outcome);
    }

    /// Cancels the running call.
    close() {
        this.running?.abort();
    }

    async #submit() {
        if (this.running) return;
        say(this.wrong, '');
        let given;
        try {
            given = this.form.read();
        } catch (error) {
            return tellWrong(this.wrong, error);
        }
        if (this.careful && !await confirm(`Call ${this.name}?`,
            'This tool may change or delete data: it is not marked read-only or non-destructive.', 'Call anyway')) return;
        await this.#run(given);
    }

    async #run(given) {
        this.running = new AbortController();
        // A disabled button would lose the focus.
        this.start.setAttribute('aria-disabled', 'true');
        this.stop.hidden = false;
        this.messages.replaceChildren();
        this.outcome.replaceChildren();
        const began = performance.now();
        try {
            const response = await this.#rounds(given, this.running.signal);
            this.#show(response, performance.now() - began);
        } catch (error) {
            if (error.status === 401) throw error;
            const stopped = this.running.signal.aborted;
            this.#tell(stopped ? 'warn' : 'bad', stopped ? 'stopped' : 'no answer',
                stopped ? 'Shoal told the tool to stop. Its effects until then remain.' : error.message);
        } finally {
            this.running = null;
            this.start.removeAttribute('aria-disabled');
            if (this.#hasFocus(this.stop) || this.#hasFocus(this.question)) this.start.focus();
            this.stop.hidden = true;
            this.progress.hidden = true;
            this.question.replaceChildren();
            this.ended();
        }
    }

    /// Calls, and repeats the call with answers as long as the tool asks.
    async #rounds(given, signal) {
        const body = { arguments: given };
        for (let round = 0; round < MOST_ROUNDS; round += 1) {
            const response = await call(`tools/${encodeURIComponent(this.name)}/call`, body, signal, (message) => this.#hear(message));
            const { result } = response;
            if (result?.resultType !== 'input_required') return response;
            body.requestState = result.requestState;
            body.inputResponses = await this.#ask(result.inputRequests ?? {}, signal);
        }
        throw new Error(`The tool asked more than ${MOST_ROUNDS} times.`);
    }

    #hear({ method, params }) {
        if (method === 'notifications/progress') {
            this.progress.hidden = false;
            if (typeof params.total === 'number') this.progress.max = params.total;
            else this.progress.removeAttribute('max');
            if (typeof params.progress === 'number' && typeof params.total === 'number') this.progress.value = params.progress;
            const of = params.total === undefined ? '' : ` of ${params.total}`;
            this.#note(`${params.progress}${of}${params.message ? `: ${params.message}` : ''}`);
        } else if (method === 'notifications/message') {
            this.#note(`${params.level}: ${text(params.data)}`);
        }
    }

    #note(said) {
        this.messages.append(h('li', {}, cut(String(said), 1_000)));
        while (this.messages.children.length > MOST_MESSAGES) this.messages.firstElementChild.remove();
    }

    async #ask(requests, signal) {
        const answers = [];
        for (const [key, request] of Object.entries(requests)) {
            answers.push([key, await this.#askOne(request, signal)]);
        }
        // Also keeps questions with names such as `__proto__`.
        return Object.fromEntries(answers);
    }

    /// Shows a question; returns the answer.
    #askOne({ method, params }, signal) {
        if (method !== 'elicitation/create' || params?.mode === 'url') {
            throw new Error(`The tool asks for ${method}, which the console cannot answer.`);
        }
        const form = new Form(params.requestedSchema ?? {}, 'Answer');
        const wrong = h('p', { class: 'wrong', role: 'alert' });
        const button = (does, name, kind) => h('button', { type: does === 'accept' ? 'submit' : 'button', class: kind, 'data-does': does }, name);
        const [accept, decline, cancel] = [button('accept', 'Accept', 'main'), button('decline', 'Decline'), button('cancel', 'Cancel')];
        const asked = h('form', { novalidate: true, class: 'question', 'aria-label': 'The tool asks' },
            h('h3', {}, 'The tool asks'), h('p', {}, cut(String(params.message ?? ''), 4_000)), form.element, wrong,
            h('div', { class: 'buttons' }, cancel, decline, accept));
        this.question.replaceChildren(asked);
        (asked.querySelector('input, select, textarea') ?? accept).focus();
        announce('The tool asks something.');
        return new Promise((resolve, reject) => {
            const done = (answer) => {
                this.stop.focus();
                this.question.replaceChildren();
                resolve(answer);
            };
            signal.addEventListener('abort', () => reject(signal.reason), { once: true });
            decline.addEventListener('click', () => done({ action: 'decline' }));
            cancel.addEventListener('click', () => done({ action: 'cancel' }));
            asked.addEventListener('submit', (event) => {
                event.preventDefault();
                try {
                    done({ action: 'accept', content: form.read() });
                } catch (error) {
                    tellWrong(wrong, error);
                }
            });
        });
    }

    #hasFocus(element) {
        return element.contains(document.activeElement);
    }

    #show({ result, error }, took) {
        if (error) return this.#tell('bad', `error ${error.code}`, error.message, error.data);
        const failed = result.isError === true;
        this.#tell(failed ? 'bad' : 'good', failed ? 'failed' : 'done', `after ${duration(took)}`);
        const content = Array.isArray(result.content) ? result.content : [];
        this.outcome.append(...content.map(shownContent));
        if (result.structuredContent !== undefined) this.outcome.append(h('h3', {}, 'Structured'), pre(result.structuredContent));
    }

    #tell(kind, state, words, data) {
        this.outcome.dataset.outcome = state;
        this.outcome.replaceChildren(h('p', {}, h('span', { class: `tag ${kind}` }, state), ' ', cut(String(words), 4_000)));
        if (data !== undefined) this.outcome.append(pre(data));
    }
}

function shownContent(item) {
    if (item?.type === 'text') return pre(item.text);
    if (item?.type === 'image' && IMAGES.includes(item.mimeType)) {
        return h('img', { src: `data:${item.mimeType};base64,${item.data}`, alt: 'Image in the result' });
    }
    return pre(item);
}

function pre(value) {
    return h('pre', { tabindex: '0' }, cut(text(value), LONGEST));
}

function text(value) {
    return typeof value === 'string' ? value : JSON.stringify(value, null, 2) ?? '';
}

function cut(whole, longest) {
    return whole.length <= longest ? whole : `${whole.slice(0, longest)} … and ${whole.length - longest} characters more`;
}
