// What the checks need from a connected client, as far as both SDKs agree.

import { expect } from './harness.js';

/** A connected client. Each SDK's session adds the parts that differ. */
export class Session {
    /** @param cutter cuts the HTTP streams that are open, or undefined if there are none */
    constructor(client, peer, era, cutter) {
        this.client = client;
        this.peer = peer;
        this.modern = era === 'modern';
        this.cutter = cutter;
    }

    /** The error code for an unknown resource, as the SDK reports it. */
    get resourceNotFound() {
        return this.modern ? -32602 : -32002;
    }

    get capabilities() {
        return this.client.getServerCapabilities();
    }

    callTool(name, args, options) {
        return this.client.callTool({ name, arguments: args }, options);
    }

    /** Calls a tool that must not fail, and returns its text. */
    async text(name, args = {}, options = undefined) {
        const result = await this.callTool(name, args, options);
        expect(!result.isError, `${name} failed: ${textOf(result)}`);
        return textOf(result);
    }

    async read(uri) {
        const { contents } = await this.client.readResource({ uri });
        return contents[0];
    }

    getPrompt(name, args) {
        return this.client.getPrompt({ name, arguments: args });
    }

    async completePrompt(prompt, name, value) {
        const ref = { type: 'ref/prompt', name: prompt };
        const { completion } = await this.client.complete({ ref, argument: { name, value } });
        return completion.values;
    }

    setLevel(level) {
        return this.client.setLoggingLevel(level);
    }

    /** Subscribes to a resource until the returned function is called. */
    async subscribe(uri) {
        await this.client.subscribeResource({ uri });
        return () => this.client.unsubscribeResource({ uri });
    }

    /** Subscribes to the list of tools until the returned function is called. */
    async watchTools() {
        return () => {};
    }
}

/** The text blocks of a result. */
export function textOf(result) {
    return result.content
        .filter(block => block.type === 'text')
        .map(block => block.text)
        .join('\n');
}

/**
 * Makes a connected client handle one message at a time. The SDKs handle a notification after a response that was read
 * with it, and drop progress that is handled after its response. From a pipe or an event stream, both may be read at once.
 */
export function takeOneByOne(transport) {
    const take = transport.onmessage;
    let before = Promise.resolve();
    transport.onmessage = (message, extra) => {
        const turn = () => new Promise(resolve => setImmediate(resolve));
        before = before.then(turn).then(() => take(message, extra));
    };
}

/** Lets a check break connections of a transport that uses its `fetch`. */
export class Cutter {
    #open = new AbortController();

    fetch = (url, init = {}) => {
        const signal = init.signal ? AbortSignal.any([init.signal, this.#open.signal]) : this.#open.signal;
        return fetch(url, { ...init, signal });
    };

    cut() {
        this.#open.abort();
        this.#open = new AbortController();
    }
}
