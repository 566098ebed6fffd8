// Uses the operators' console in a headless Chromium, by keyboard alone, and reports what works.
// By hand: shoal serve --demo &
//          node run.js --url http://127.0.0.1:8080/mcp --admin http://127.0.0.1:8081 --screenshots /tmp/console

import { mkdirSync } from 'node:fs';
import path from 'node:path';
import { parseArgs } from 'node:util';

import { chromium } from 'playwright-core';

import { Runner, expect, expectEqual } from '../javascript/harness.js';
import { Session, modern } from './mcp.js';
import { SOON, hasFocus, openView, rows, sayYes, tabBackTo, tabTo, until } from './page.js';

const HOSTILE = '<img src=x onerror="document.title=\'owned\'">';
const TRACE = '0af7651916cd43dd8448eb211c80319c';
const SIZES = { wide: { width: 1280, height: 900 }, narrow: { width: 390, height: 844 } };
const CANCELLED = -32800;

const { values } = parseArgs({
    options: {
        url: { type: 'string' },
        admin: { type: 'string' },
        token: { type: 'string' },
        screenshots: { type: 'string' },
        chromium: { type: 'string', default: '/usr/bin/chromium' },
        only: { type: 'string', multiple: true, default: [] }
    }
});
if (!values.url || !values.admin) {
    console.error('usage: run.js --url URL --admin URL [--token TOKEN] [--screenshots DIR] [--chromium PROGRAM]');
    process.exit(2);
}
if (values.screenshots) mkdirSync(values.screenshots, { recursive: true });

const runner = new Runner(values.only);
const browser = await chromium.launch({ executablePath: values.chromium, args: ['--no-sandbox'] });
const context = await browser.newContext({ viewport: SIZES.wide, colorScheme: 'light' });
const page = await context.newPage();
page.setDefaultTimeout(SOON);

/** Errors of the page, which must not occur. */
const wrong = [];
page.on('pageerror', error => wrong.push(`error: ${error.message}`));
page.on('console', message => {
    // The checks with a token cause the browser's messages about refused requests.
    const refusal = message.text().includes('401');
    if (message.type() === 'error' && !refusal) wrong.push(`console: ${message.text()}`);
});
page.on('request', request => {
    if (!request.url().startsWith(values.admin.replace(/\/$/, '')) && !request.url().startsWith('data:')) {
        wrong.push(`request to ${request.url()}`);
    }
});

async function shoot(name) {
    if (values.screenshots) {
        await page.screenshot({ path: path.join(values.screenshots, `${name}.png`), fullPage: true });
    }
}

async function withoutToken() {
    await runner.run('a-node-without-sessions-shows-how-to-connect', async () => {
        await page.goto(new URL('/', values.admin).href);
        await until('the endpoint is shown', async () => (await page.locator('#endpoint').textContent()) === values.url);
        const shown = await page.locator('#connect .clients .panel').evaluateAll(panels =>
            panels.map(panel => [panel.querySelector('h2').textContent, panel.querySelector('pre').textContent]));
        expectEqual(shown.map(([name]) => name),
            ['Claude Code', 'Claude Desktop', 'Cursor', 'Visual Studio Code', 'MCP Inspector'], 'the clients');
        const [server] = Object.values(JSON.parse(shown[0][1]).mcpServers);
        const session = await Session.open(server.url, 'pasted-configuration');
        expectEqual((await session.send({ id: 1, method: 'ping' })).status, 200, 'the status by the endpoint of the snippet');
        await session.close();
        await tabTo(page, '#connect .clients button');
        await page.keyboard.press('Enter');
        await until('the button says what it did', async () =>
            ['Copied', 'Selected'].includes(await page.locator('#connect .clients button').first().textContent()));
        await shootEverywhere('connect');
    });

    const victim = await Session.open(values.url, HOSTILE);
    const other = await Session.open(values.url, 'steady-client');
    await page.goto('about:blank');
    await page.goto(new URL('/', values.admin).href);

    await runner.run('the-address-leads-to-the-page', async () => {
        await page.waitForURL('**/console/*');
        await until('the node is ready', async () => (await rows(page, 'nodes'))[0]?.[1].startsWith('ready'));
        const pools = (await rows(page, 'workers')).filter(row => row[0] === 'demo');
        expectEqual(pools.length, 1, 'workers of the demo pool');
    });

    let slow;
    await runner.run('a-slow-call-is-seen-and-cancelled', async () => {
        slow = other.call(1, 'long_job', { steps: 600, interval_ms: 1000 });
        await openView(page, 'calls');
        await until('the call is shown', async () => (await rows(page, 'calls')).some(row => row[0] === 'long_job'));
        const [call] = await rows(page, 'calls');
        expectEqual([call[1], call[2], call[6], call[7]], ['tools/call', 'running', 'legacy', 'journaled'], 'the call');
        expect(call[4].startsWith('demo@'), `its worker is ${call[4]}`);
        await tabTo(page, '#calls button[aria-label^="Cancel long_job"]');
        await page.keyboard.press('Enter');
        await sayYes(page);
        const response = await slow;
        expectEqual(response.error?.code, CANCELLED, 'what the client got');
        await until('the call is gone', async () => (await rows(page, 'calls')).length === 0);
    });

    await runner.run('a-modern-call-is-seen-and-cancelled', async () => {
        const asked = modern(values.url, 2, 'long_job', { steps: 600, interval_ms: 1000 });
        await until('the call is shown', async () => (await rows(page, 'calls')).some(row => row[6] === 'modern'));
        await shootEverywhere('calls');
        await tabTo(page, '#calls button[aria-label^="Cancel long_job"]');
        await page.keyboard.press('Enter');
        await sayYes(page);
        expectEqual((await asked).error?.code, CANCELLED, 'what the client got');
    });

    await runner.run('what-a-client-chose-is-shown-as-text', async () => {
        await openView(page, 'sessions');
        await until('both sessions are shown', async () => (await rows(page, 'sessions')).length === 2);
        const clients = (await rows(page, 'sessions')).map(row => row[0]);
        expect(clients.includes(`${HOSTILE} 1.0`), `the clients are ${clients}`);
        expectEqual(await page.locator('#sessions img').count(), 0, 'images');
        expectEqual(await page.title(), 'Shoal console', 'the title');
    });

    await runner.run('a-session-is-found-and-ended-by-keyboard', async () => {
        await openView(page, 'sessions');
        await tabTo(page, '#filter');
        await page.keyboard.type('ONERROR');
        await until('one session is left', async () => (await rows(page, 'sessions')).length === 1);
        await tabTo(page, '#sessions tbody tr');
        await page.keyboard.press('Enter');
        await page.locator('#sessions .detail:not([hidden])').waitFor();
        const detail = await page.locator('#sessions .detail').textContent();
        for (const part of [victim.id, HOSTILE, '2025-11-25', 'info']) {
            expect(detail.includes(part), `${part} is not in ${detail}`);
        }
        await shootEverywhere('sessions');
        await page.keyboard.press('Escape');
        expect(await hasFocus(page, '#sessions tbody tr'), 'the focus does not return to the row');
        await tabTo(page, '#sessions tbody button');
        await page.keyboard.press('Enter');
        await sayYes(page);
        await until('the session is gone', async () => (await rows(page, 'sessions')).length === 0);
        expect(await page.getByText('No session matches.').isVisible(), 'nothing says so');
        expectEqual((await victim.send({ id: 9, method: 'ping' })).status, 404, 'the status of its next request');
        expectEqual((await other.send({ id: 9, method: 'ping' })).status, 200, 'the status of the other session');
        await page.locator('#filter').focus();
        await page.keyboard.press('Control+A');
        await page.keyboard.press('Delete');
        await until('the other is shown again', async () => (await rows(page, 'sessions')).length === 1);
    });

    await runner.run('the-arrow-keys-move-between-rows', async () => {
        await Session.open(values.url, 'another-client');
        await until('two sessions are shown', async () => (await rows(page, 'sessions')).length === 2);
        const present = () => page.evaluate(() => [...document.activeElement.parentElement.children].indexOf(document.activeElement));
        await page.locator('#filter').focus();
        await tabTo(page, '#sessions tbody tr');
        await page.keyboard.press('Home');
        expectEqual(await present(), 0, 'the row after Home');
        await page.keyboard.press('ArrowDown');
        expectEqual(await present(), 1, 'the row after the arrow');
    });

    await runner.run('an-error-is-shown-with-its-trace', async () => {
        await other.call(3, 'no_such_tool', {}, { traceparent: `00-${TRACE}-b7ad6b7169203331-01` });
        await openView(page, 'errors');
        const found = await until('the error is shown', async () =>
            (await rows(page, 'errors')).find(row => row[2] === 'no_such_tool'));
        expectEqual([found[1], found[4], found[6]], ['-32602', 'tools/call', TRACE], 'the error');
        await shootEverywhere('errors');
    });

    await runner.run('tools-are-shown-with-their-calls', async () => {
        await other.call(5, 'echo', { text: 'hello' });
        await openView(page, 'tools');
        const echo = await until('the call is counted', async () =>
            (await rows(page, 'tools')).find(row => row[0] === 'echo' && Number(row[4]) > 0));
        expect(echo[1].length > 10, `its description is ${echo[1]}`);
        expectEqual([echo[2], echo[7]], ['demo', '0 (0 %)'], 'the row');
        expect(echo[3].startsWith('read-only'), `its annotations are ${echo[3]}`);
        expect(/ m?s$/.test(echo[6]), `its p95 is ${echo[6]}`);
    });

    await runner.run('a-tool-is-called-with-a-form', async () => {
        await openTool('add');
        await tabTo(page, '#tools .toolcall input');
        await page.keyboard.type('40');
        await page.keyboard.press('Tab');
        await page.keyboard.type('2');
        await page.keyboard.press('Enter');
        expect((await outcome('done')).includes('42'), 'the sum is not shown');
        const schema = await rows(page, 'arguments');
        expect(schema.length === 2 && schema.every(row => row[0].endsWith(' *')), `the schema is ${schema}`);
        // A form cannot express this, so type JSON.
        await tabBackTo(page, '#tools [data-does="as-json"]');
        await page.keyboard.press('Enter');
        const text = page.locator('#tools .toolcall textarea');
        expect((await text.inputValue()).includes('40'), 'what was typed is lost');
        await text.fill('{"a": 1, ');
        await page.locator('#tools [data-does="call"]').press('Enter');
        await until('it says what is wrong', async () => (await page.locator('#tools .toolcall .wrong').first().textContent()) !== '');
        // JavaScript's numbers would change this one.
        await text.fill('{"a": 9007199254740993, "b": 2, "text": "9007199254740993"}');
        await page.locator('#tools [data-does="call"]').press('Enter');
        await until('it says which number is too long', async () =>
            (await page.locator('#tools .toolcall .wrong').first().textContent()).includes('9007199254740993 has more digits'));
        await text.fill('{"a": 1, "b": "two"}');
        await page.locator('#tools [data-does="call"]').press('Enter');
        await outcome('failed');
        await shootEverywhere('tools');
        await page.keyboard.press('Escape');
        expect(await hasFocus(page, '#tools tbody tr'), 'the focus does not return to the row');
    });

    await runner.run('progress-is-shown-and-a-call-stopped', async () => {
        await openTool('long_job');
        await page.locator('#tools .toolcall').getByLabel(/^steps/).fill('600');
        await page.locator('#tools .toolcall').getByLabel(/^interval_ms/).fill('50');
        await page.locator('#tools [data-does="call"]').press('Enter');
        await until('progress is told', async () => (await page.locator('#tools .messages li').count()) > 2);
        expectEqual(await page.locator('#tools progress').getAttribute('max'), '600', 'the whole');
        await page.locator('#tools [data-does="stop"]').press('Enter');
        await outcome('stopped');
        await openView(page, 'calls');
        await until('the call is gone', async () => (await rows(page, 'calls')).length === 0);
    });

    await runner.run('a-question-is-answered', async () => {
        for (const [answer, told] of [['accept', '4'], ['decline', 'decline'], ['cancel', 'cancel']]) {
            await openTool('book_table');
            await page.locator('#tools .toolcall').getByLabel(/^restaurant/).fill('Noma');
            await page.locator('#tools [data-does="call"]').press('Enter');
            const question = page.locator('#tools .question');
            await question.waitFor();
            expect((await question.textContent()).includes('Noma'), 'the question is not shown');
            if (answer === 'accept') {
                await question.locator('[data-does="accept"]').press('Enter');
                await until('it says what is needed', async () => (await question.locator('.wrong').textContent()) !== '');
                await question.getByLabel(/^guests/).fill('4');
                await question.getByLabel(/^date/).fill('Friday');
                await shootEverywhere('question');
            }
            await question.locator(`[data-does="${answer}"]`).press('Enter');
            const end = await until('it has ended', async () => {
                const said = await page.locator('#tools .outcome').textContent();
                return said !== '' && said;
            });
            expect(end.toLowerCase().includes(told), `after ${answer} it says ${end}`);
            await page.keyboard.press('Escape');
        }
    });

    await runner.run('what-a-server-says-is-shown-as-text', async () => {
        await openTool(HOSTILE);
        const fields = page.locator('#tools .toolcall');
        await fields.locator('select').first().selectOption(HOSTILE);
        await fields.getByLabel(/^__proto__/).fill('kept');
        await fields.locator('[data-does="call"]').press('Enter');
        const said = await outcome('done');
        expect(said.includes(HOSTILE), `it says ${said}`);
        expect(said.includes('"__proto__":"kept"'), `its arguments were ${said}`);
        await page.locator('#tools .detail details').evaluate(details => { details.open = true; });
        await shootEverywhere('hostile');
        await openTool('fails');
        await page.locator('#tools [data-does="call"]').press('Enter');
        // The tool is not marked as safe.
        await sayYes(page);
        expect((await outcome('failed')).includes(HOSTILE), 'what it says is not shown');
        await openView(page, 'errors');
        const failure = await until('the failure is shown', async () => (await rows(page, 'errors')).find(row => row[2] === 'fails'));
        expectEqual([failure[1], failure[3], failure[4]], ['tool', HOSTILE, 'tools/call'], 'the failure');
        expectEqual(await page.locator('main img').count(), 0, 'images');
        expectEqual(await page.title(), 'Shoal console', 'the title');
    });

    await runner.run('the-plots-have-their-numbers-in-a-table', async () => {
        await openView(page, 'overview');
        const answered = async () => {
            await other.call(4, 'echo', { text: 'hello' });
            const cells = await page.locator('[data-plot="requests"] tbody tr td:nth-child(2)').allTextContents();
            return cells.some(cell => Number(cell) > 0);
        };
        await until('requests are counted', answered);
        const said = await page.locator('.canvas').first().getAttribute('aria-label');
        expect(/^Requests per second, now: ok [\d.]+/.test(said), `the plot says ${said}`);
        const latency = await page.locator('[data-plot="latency"] tbody tr td:nth-child(2)').allTextContents();
        expect(latency.some(cell => cell.endsWith(' ms') || cell.endsWith(' s')), `latencies are ${latency}`);
        await tabTo(page, '.canvas');
        await page.keyboard.press('ArrowLeft');
        const read = await page.locator('.canvas').first().getAttribute('aria-label');
        expect(/^Requests per second, \d\d:\d\d:\d\d: ok /.test(read), `the arrow reads ${read}`);
    });

    await runner.run('the-overview-counts-what-works', async () => {
        const figure = name => page.locator('.figures div', { hasText: name }).locator('dd').textContent();
        const all = (await rows(page, 'workers')).length;
        await until('all workers count', async () => (await figure('Workers')) === String(all));
        await answering('**/api/overview', overview => {
            Object.assign(overview.pools[0].workers[0], { ready: false, detail: 'its server has ended' });
        });
        await until('a broken one does not', async () => (await figure('Workers')) === `${all - 1} of ${all}`);
        await page.unrouteAll({ behavior: 'ignoreErrors' });
        expect(!(await page.getByRole('heading', { name: 'Names that two pools claim' }).isVisible()), 'an empty section is shown');
        for (const marks of await page.locator('.canvas').evaluateAll(all => all.map(canvas =>
            [...canvas.querySelectorAll('.mark')].map(mark => mark.textContent)))) {
            expectEqual(new Set(marks).size, 2, `different marks among ${marks}`);
        }
    });

    await runner.run('every-view-says-that-the-store-is-away', async () => {
        const banner = page.locator('#store');
        expect(!(await banner.isVisible()), 'the store is said to be away');
        await answering('**/status', status => {
            status.store.trouble = 'Redis is away: connection refused';
        });
        await answering('**/api/overview', overview => {
            overview.nodes[0].store_trouble = 'Redis is away: connection refused';
        });
        await until('its node is marked', async () => (await rows(page, 'nodes'))[0]?.[1].startsWith('store away'));
        for (const view of ['sessions', 'calls', 'tools', 'errors', 'connect', 'overview']) {
            await openView(page, view);
            await until(`${view} says so`, async () => /connection refused.*503/.test(await banner.textContent()));
            expect(await banner.isVisible(), `${view} hides it`);
        }
        await shootEverywhere('store-away');
        await page.unrouteAll({ behavior: 'ignoreErrors' });
        await until('it is over', async () => !(await banner.isVisible()));
    });

    await runner.run('a-session-counts-the-streams-that-its-client-reads', async () => {
        const reader = await Session.open(values.url, 'reading-client');
        const before = await streamsOf('reading-client');
        expectEqual(before, '0', 'streams of a client that reads none');
        const stop = await reader.listen();
        await until('the stream counts', async () => (await streamsOf('reading-client')) === '1');
        const call = reader.call(7, 'long_job', { steps: 30, interval_ms: 500 }, {}, stop.signal).catch(() => undefined);
        await until('both count', async () => (await streamsOf('reading-client')) === '2');
        stop.abort();
        await call;
        await until('none is read', async () => (await streamsOf('reading-client')) === '0');
        await openView(page, 'overview');
    });

    await runner.run('the-theme-is-switched', async () => {
        await page.reload();
        await until('the node is shown', async () => (await rows(page, 'nodes')).length > 0);
        const ground = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
        const system = await ground();
        await page.emulateMedia({ colorScheme: 'dark' });
        const dark = await ground();
        expect(system !== dark, 'the page does not follow the system');
        await tabTo(page, '#theme');
        await page.keyboard.press('Enter');
        expectEqual(await ground(), system, 'the ground of the light theme');
        await page.emulateMedia({ colorScheme: 'light' });
        await page.keyboard.press('Enter');
        expectEqual(await ground(), dark, 'the ground of the dark theme');
        await page.keyboard.press('Enter');
        expectEqual(await ground(), system, 'the ground of the system again');
    });

    await runner.run('nothing-is-wider-than-a-narrow-screen', async () => {
        for (const view of ['overview', 'sessions', 'calls', 'tools', 'errors', 'connect']) {
            await openView(page, view);
            await page.setViewportSize(SIZES.narrow);
            // A table that continues beyond the edge has a shadow there.
            const cut = await page.locator(`#${view} .scroll:visible`).evaluateAll(all => all
                .filter(scroll => scroll.scrollWidth > scroll.clientWidth)
                .every(scroll => getComputedStyle(scroll).backgroundImage.split('linear-gradient').length === 5));
            expect(cut, `a table of ${view} is cut without a sign`);
            const [inner, scroll] = await page.evaluate(() => [innerWidth, document.documentElement.scrollWidth]);
            expect(scroll <= inner, `${view} is ${scroll} px wide in ${inner}`);
            await page.setViewportSize(SIZES.wide);
        }
        await openView(page, 'overview');
        await shootEverywhere('overview');
    });

    await runner.run('the-refresh-is-paused', async () => {
        await tabTo(page, '#pause');
        await page.keyboard.press('Enter');
        await until('the page says so', async () => (await page.locator('#state').textContent()).startsWith('Paused'));
        const before = await page.locator('#state').textContent();
        await Session.open(values.url, 'unseen-client');
        // Longer than two refreshes take.
        await page.waitForTimeout(5_000);
        expectEqual(await page.locator('#state').textContent(), before, 'the state');
        await page.keyboard.press('Enter');
        await until('it goes on', async () => (await page.locator('#state').textContent()).startsWith('Up to date'));
    });
}

/** Changes the node's answers to the page. */
function answering(path, change) {
    return page.route(path, async route => {
        const answer = await route.fetch();
        const body = await answer.json();
        change(body);
        await route.fulfill({ response: answer, json: body });
    });
}

/** The streams in the row of a client's session. */
async function streamsOf(client) {
    await openView(page, 'sessions');
    const row = await until('its session is shown', async () =>
        (await rows(page, 'sessions')).find(row => row[0].startsWith(client)));
    return row[8];
}

/** Opens a tool by its name. */
async function openTool(name) {
    await openView(page, 'tools');
    await page.locator('#tool-filter').fill(name);
    await until('it alone is shown', async () => {
        const shown = await rows(page, 'tools');
        return shown.length > 0 && shown.every(row => row[0].includes(name));
    });
    await page.locator('#tools tbody tr').filter({ has: page.getByRole('rowheader', { name, exact: true }) }).press('Enter');
    await until('its details are shown', async () => (await page.locator('#tools .detail h2').textContent()) === name);
}

/** The result of a call that has ended in this state. */
async function outcome(state) {
    const element = page.locator(`#tools .outcome[data-outcome="${state}"]`);
    await element.waitFor({ timeout: SOON });
    return element.textContent();
}

async function withToken() {
    await page.goto(new URL('/console/#overview', values.admin).href);
    await runner.run('the-token-is-asked-for', async () => {
        await page.locator('#login[open]').waitFor();
        expect(await hasFocus(page, '#token'), 'the field has not got the focus');
        await page.keyboard.type('not-the-right-one');
        await page.keyboard.press('Enter');
        await until('the page says so', async () => (await page.locator('#login-wrong').textContent()) !== '');
        await shootEverywhere('login');
        await page.keyboard.type(values.token);
        await page.keyboard.press('Enter');
        await until('the node is shown', async () => (await rows(page, 'nodes')).length > 0);
        expectEqual(await page.locator('#login[open]').count(), 0, 'open dialogs');
    });
    await runner.run('the-token-is-kept-for-the-tab-alone', async () => {
        await page.reload();
        await until('the node is shown', async () => (await rows(page, 'nodes')).length > 0);
        expectEqual(await page.evaluate(() => localStorage.length + document.cookie.length), 0, 'what is kept elsewhere');
        const second = await context.newPage();
        await second.goto(new URL('/console/', values.admin).href);
        await second.locator('#login[open]').waitFor({ timeout: SOON });
        await second.close();
    });
    await runner.run('names-that-two-pools-claim-are-shown', async () => {
        const claimed = async () => (await rows(page, 'conflicts')).find(row => row[1] === 'echo');
        const row = await until('a name is shown', claimed);
        expectEqual(row, ['tool', 'echo', 'demo', 'twin'], 'the row');
    });
}

/** One picture for each theme and width. */
async function shootEverywhere(name) {
    if (!values.screenshots) return;
    for (const [size, viewport] of Object.entries(SIZES)) {
        await page.setViewportSize(viewport);
        for (const colorScheme of ['light', 'dark']) {
            await page.emulateMedia({ colorScheme });
            await shoot(`${name}-${size}-${colorScheme}`);
        }
    }
    await page.setViewportSize(SIZES.wide);
    await page.emulateMedia({ colorScheme: 'light' });
}

try {
    await (values.token ? withToken() : withoutToken());
    await runner.run('the-page-does-nothing-that-it-must-not', async () => {
        expectEqual(wrong, [], 'what it did');
    });
} finally {
    await browser.close();
}
process.exit(runner.failed > 0 ? 1 : 0);
