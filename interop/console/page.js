// The console's page, used with the keyboard only.

import { expect } from '../javascript/harness.js';

/** Timeout of anything on the page. */
export const SOON = 15_000;
const MOST_TABS = 60;

/** Presses Tab until the element `selector` has the focus. */
export function tabTo(page, selector) {
    return press(page, 'Tab', selector);
}

/** The same with Shift+Tab. */
export function tabBackTo(page, selector) {
    return press(page, 'Shift+Tab', selector);
}

async function press(page, key, selector) {
    for (let pressed = 0; pressed < MOST_TABS; pressed += 1) {
        await page.keyboard.press(key);
        if (await hasFocus(page, selector)) return;
    }
    const present = await page.evaluate(() => document.activeElement?.outerHTML.slice(0, 200));
    throw new Error(`Tab does not reach ${selector}; the focus is on ${present}`);
}

export function hasFocus(page, selector) {
    return page.evaluate(selector => document.activeElement?.matches(selector) ?? false, selector);
}

/** Opens a view with the arrow keys of the tab list. */
export async function openView(page, name) {
    await page.locator('[role="tab"][aria-selected="true"]').focus();
    for (let pressed = 0; pressed < 5; pressed += 1) {
        if (await hasFocus(page, `#tab-${name}`)) return;
        await page.keyboard.press('ArrowRight');
    }
    expect(await hasFocus(page, `#tab-${name}`), `the arrow keys do not reach ${name}`);
}

/** Confirms a question; the safe answer must have had the focus. */
export async function sayYes(page) {
    await page.locator('#confirm[open]').waitFor({ timeout: SOON });
    expect(await hasFocus(page, '#confirm-no'), 'the safe answer has not got the focus');
    await page.keyboard.press('Tab');
    expect(await hasFocus(page, '#confirm-yes'), 'Tab does not lead to the other answer');
    await page.keyboard.press('Enter');
    await page.locator('#confirm[open]').waitFor({ state: 'detached', timeout: SOON }).catch(() => {});
}

/** The rows of a table, each as the texts of its cells. */
export function rows(page, table) {
    return page.locator(`[data-table="${table}"] tbody tr`).evaluateAll(rows =>
        rows.map(row => [...row.cells].map(cell => cell.textContent)));
}

/** Waits until the result of `look` is right. */
export async function until(what, look) {
    const late = Date.now() + SOON;
    for (;;) {
        const found = await look();
        if (found) return found;
        if (Date.now() > late) throw new Error(`waited in vain until ${what}`);
        await new Promise(resolve => setTimeout(resolve, 100));
    }
}
