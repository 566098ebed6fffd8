// Checks against `@modelcontextprotocol/server-filesystem` behind Shoal.

import { readFile } from 'node:fs/promises';
import path from 'node:path';

import { expect, expectAll, expectEqual } from './harness.js';
import { textOf } from './session.js';

/** The checks of a server whose `directory` holds `hello.txt` and `sub/`. */
export const filesystem = directory => ({
    async list_tools(session) {
        const wanted = ['list_directory', 'read_text_file', 'write_file', 'list_allowed_directories'];
        expectAll((await session.listTools()).map(tool => tool.name), wanted, 'tools');
    },

    async list_directory(session) {
        const text = await session.text('list_directory', { path: directory });
        expect(text.includes('[FILE] hello.txt') && text.includes('[DIR] sub'), `odd text ${text}`);
    },

    async read_file(session) {
        const file = path.join(directory, 'hello.txt');
        expectEqual(await session.text('read_text_file', { path: file }), await readFile(file, 'utf8'), 'text');
    },

    async write_file(session) {
        const file = path.join(directory, 'sub', 'javascript.txt');
        await session.text('write_file', { path: file, content: 'written\n' });
        expectEqual(await readFile(file, 'utf8'), 'written\n', 'text');
    },

    async outside(session) {
        const result = await session.callTool('read_text_file', { path: '/etc/hostname' });
        expect(result.isError, `the server gave away ${textOf(result)}`);
    }
});
