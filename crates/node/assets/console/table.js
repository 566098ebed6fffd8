// Tables that are refreshed in place: rows keep their focus, and cells change only when their text does.

import { h, say } from './dom.js';

/// columns: [{ name, extra?, kind?: 'num' | 'clip' | 'wrap' | 'mono', cell: item => text | { text, title } | Element }]
/// options: { id, caption, key: item => string, empty, open?: item => void, action?: { name: item => string, run: item => void } }
export class Table {
    constructor(columns, options) {
        this.columns = columns;
        this.options = options;
        this.rows = new Map();
        this.body = h('tbody');
        const heads = columns.map((column) =>
            h('th', { scope: 'col', class: classes(column, column.kind === 'num' && 'num') }, column.name));
        if (options.action) heads.push(h('th', { scope: 'col', class: 'num' }, h('span', { class: 'hidden' }, 'Action')));
        this.table = h('table', { 'data-table': options.id }, h('caption', { class: 'hidden' }, options.caption),
            h('thead', {}, h('tr', {}, ...heads)), this.body);
        this.none = h('p', { class: 'none' }, 'Loading …');
        this.more = h('p', { class: 'more', hidden: true });
        this.element = h('div', {}, h('div', { class: 'scroll' }, this.table), this.none, this.more);
        this.table.hidden = true;
        if (options.open) this.body.addEventListener('keydown', (event) => this.#move(event));
    }

    /// Shows these items of `total`.
    update(items, total = items.length) {
        const kept = new Set();
        let at = this.body.firstElementChild;
        for (const item of items) {
            const key = this.options.key(item);
            kept.add(key);
            const row = this.rows.get(key) ?? this.#row(key);
            row.item = item;
            this.#fill(row, item);
            // Moving a row would take its focus away.
            if (row.element === at) at = at.nextElementSibling;
            else this.body.insertBefore(row.element, at);
        }
        for (const [key, row] of this.rows) {
            if (kept.has(key)) continue;
            this.#leave(row.element);
            row.element.remove();
            this.rows.delete(key);
        }
        this.#rove();
        this.table.hidden = items.length === 0;
        this.none.hidden = items.length > 0;
        say(this.none, this.options.empty);
        this.more.hidden = total <= items.length;
        say(this.more, `Showing ${items.length} of ${total}. Filter to see others.`);
    }

    /// Marks the row whose details are open.
    select(key) {
        for (const [of, row] of this.rows) {
            if (of === key) row.element.setAttribute('aria-selected', 'true');
            else row.element.removeAttribute('aria-selected');
        }
    }

    focus(key) {
        (this.rows.get(key)?.element ?? this.body.firstElementChild)?.focus();
    }

    #row(key) {
        const { open, action } = this.options;
        const cells = this.columns.map((column, at) => h(at === 0 ? 'th' : 'td', {
            scope: at === 0 ? 'row' : undefined,
            class: classes(column, column.kind),
        }));
        const row = { item: null, cells, element: h('tr', { class: open ? 'opens' : undefined }, ...cells) };
        if (open) {
            row.element.tabIndex = -1;
            row.element.addEventListener('click', () => open(row.item));
        }
        if (action) {
            row.button = h('button', { type: 'button', class: 'small danger' });
            row.button.addEventListener('click', (event) => {
                event.stopPropagation();
                action.run(row.item);
            });
            row.element.append(h('td', { class: 'act' }, row.button));
        }
        this.rows.set(key, row);
        return row;
    }

    #fill(row, item) {
        this.columns.forEach((column, at) => {
            const cell = row.cells[at];
            const shown = column.cell(item);
            if (shown instanceof Element) {
                if (cell.firstElementChild?.isEqualNode(shown)) return;
                cell.replaceChildren(shown);
                return;
            }
            const { text, title } = typeof shown === 'object' && shown !== null ? shown : { text: shown };
            say(cell, String(text ?? '–'));
            const hint = title ?? (column.kind === 'clip' ? String(text ?? '') : undefined);
            if (hint === undefined) cell.removeAttribute('title');
            else if (cell.title !== hint) cell.title = hint;
        });
        if (row.button) {
            const { name, short } = this.options.action;
            say(row.button, short(item));
            row.button.setAttribute('aria-label', name(item));
        }
    }

    /// Only one row is in the tab order; arrow keys move to the others.
    #rove() {
        if (!this.options.open) return;
        const rows = [...this.body.children];
        const present = rows.find((row) => row.tabIndex === 0);
        if (!present && rows[0]) rows[0].tabIndex = 0;
    }

    #leave(element) {
        if (!element.contains(document.activeElement)) return;
        const next = element.nextElementSibling ?? element.previousElementSibling;
        if (next && next.tabIndex !== undefined) this.#to(next);
    }

    #to(row) {
        for (const other of this.body.children) other.tabIndex = other === row ? 0 : -1;
        row.focus();
    }

    #move(event) {
        const row = event.target.closest('tr');
        if (!row || event.altKey || event.ctrlKey || event.metaKey) return;
        const onRow = event.target === row;
        const to = {
            ArrowDown: row.nextElementSibling,
            ArrowUp: row.previousElementSibling,
            Home: this.body.firstElementChild,
            End: this.body.lastElementChild,
        }[event.key];
        if (to) this.#to(to);
        else if (onRow && (event.key === 'Enter' || event.key === ' ')) row.click();
        else return;
        event.preventDefault();
    }
}

/// Extra columns are hidden while the details are open.
function classes({ extra }, kind) {
    return [kind, extra && 'extra'].filter(Boolean).join(' ') || undefined;
}
