// Drives a server with the MCP Inspector's command line and reports what works.
// By hand: node client.js --url http://127.0.0.1:PORT/mcp --era modern

import { execFile, spawn } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs, promisify } from 'node:util';

import { Runner, expect, expectAll, expectEqual } from '../javascript/harness.js';

const PROGRAM = fileURLToPath(
    new URL('node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js', import.meta.url)
);
const RUN_MS = 25_000;
/** The exit code of a call whose result is an error, and of a call of an unknown tool. */
const TOOL_FAILED = 5;

const { values } = parseArgs({
    options: {
        url: { type: 'string' },
        era: { type: 'string', default: 'legacy' },
        expect: { type: 'string', default: 'demo' },
        shoal: { type: 'string' },
        only: { type: 'string', multiple: true, default: [] }
    }
});
if (!values.url || !['legacy', 'modern'].includes(values.era) || values.expect !== 'demo') {
    console.error('usage: client.js --url URL --era legacy|modern [--expect demo] [--shoal PROGRAM] [--only CHECK]…');
    process.exit(2);
}

// The Inspector keeps a catalog of servers in the home directory; use another one.
const home = await mkdtemp(path.join(tmpdir(), 'inspector-'));

/** Runs the Inspector with `args` and returns its exit code, result and errors. */
function inspect(...args) {
    return run(values.url, '--protocol-era', values.era, ...args);
}

function run(...args) {
    const all = [PROGRAM, '--cli', '--format', 'json', '--quiet', ...args];
    const child = spawn(process.execPath, all, {
        env: { ...process.env, HOME: home },
        stdio: ['ignore', 'pipe', 'pipe'],
        timeout: RUN_MS,
        killSignal: 'SIGKILL'
    });
    let [out, complaint] = ['', ''];
    child.stdout.on('data', chunk => (out += chunk));
    child.stderr.on('data', chunk => (complaint += chunk));
    return new Promise((resolve, reject) => {
        child.on('error', reject);
        child.on('close', (code, signal) => {
            if (signal) return reject(new Error(`the Inspector was ended by ${signal}: ${complaint}`));
            try {
                resolve({ code, complaint, result: out ? JSON.parse(out).result : undefined });
            } catch (error) {
                reject(new Error(`not JSON: ${out}`, { cause: error }));
            }
        });
    });
}

/** Runs the Inspector, which must succeed, and returns the result. */
async function result(...args) {
    const { code, complaint, result } = await inspect(...args);
    expect(code === 0, `exit code ${code}: ${complaint}`);
    return result;
}

const checks = {
    async list_tools() {
        const { tools } = await result('--method', 'tools/list');
        expectAll(tools.map(tool => tool.name), ['echo', 'add', 'long_job', 'book_table', 'fail'], 'tools');
    },

    async echo() {
        const { content } = await result('--method', 'tools/call', '--tool-name', 'echo', '--tool-arg', 'text=hello');
        expectEqual(content[0].text, 'hello', 'text');
    },

    async structured_content() {
        const { structuredContent } = await result(
            ...['--method', 'tools/call', '--tool-name', 'add', '--tool-arg', 'a=2', 'b=40']
        );
        expectEqual(structuredContent, { sum: 42 }, 'structured content');
    },

    async list_resources() {
        const { resources } = await result('--method', 'resources/list');
        expectAll(resources.map(resource => resource.uri), ['demo://readme', 'demo://counter'], 'resources');
    },

    async list_templates() {
        const { resourceTemplates } = await result('--method', 'resources/templates/list');
        expectAll(resourceTemplates.map(template => template.uriTemplate), ['demo://greeting/{name}'], 'templates');
    },

    async read_resource() {
        const { contents } = await result('--method', 'resources/read', '--uri', 'demo://readme');
        expect(contents[0].text.includes('demo'), `odd text ${contents[0].text}`);
    },

    async read_template() {
        const { contents } = await result('--method', 'resources/read', '--uri', 'demo://greeting/Ada');
        expect(contents[0].text.includes('Ada'), `odd text ${contents[0].text}`);
    },

    async list_prompts() {
        const { prompts } = await result('--method', 'prompts/list');
        expectAll(prompts.map(prompt => prompt.name), ['greet', 'code_review'], 'prompts');
    },

    async get_prompt() {
        const { messages } = await result(
            ...['--method', 'prompts/get', '--prompt-name', 'greet', '--prompt-args', 'name=Ada']
        );
        expect(messages[0].content.text.includes('Ada'), `odd text ${messages[0].content.text}`);
    },

    async tool_error() {
        const { code, result } = await inspect(
            ...['--method', 'tools/call', '--tool-name', 'fail', '--tool-arg', 'message=broken']
        );
        expectEqual(code, TOOL_FAILED, 'exit code');
        expect(result.isError && result.content[0].text.includes('broken'), 'odd result');
    },

    async unknown_tool() {
        const { code } = await inspect('--method', 'tools/call', '--tool-name', 'no_such_tool');
        expectEqual(code, TOOL_FAILED, 'exit code');
    }
};

/** The tools of a server configured from the output of `shoal client-config`. */
async function configured(...flags) {
    const { stdout } = await promisify(execFile)(values.shoal, ['client-config', 'inspector', '--url', values.url, ...flags]);
    const file = path.join(home, 'configured.json');
    await writeFile(file, stdout);
    const { code, complaint, result } = await run('--config', file, '--server', 'shoal', '--method', 'tools/list');
    expect(code === 0, `exit code ${code}: ${complaint}`);
    expectAll(result.tools.map(tool => tool.name), ['echo'], 'tools');
}

if (values.shoal) {
    checks.configured_by_url = () => configured();
    checks.configured_by_stdio = () => configured('--stdio');
}

const runner = new Runner(values.only);
try {
    for (const [name, check] of Object.entries(checks)) await runner.run(name, check);
} finally {
    await rm(home, { recursive: true, force: true });
}
process.exit(runner.failed > 0 ? 1 : 0);
