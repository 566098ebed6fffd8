// A JSON Schema for people: one row for each member.

import { h } from './dom.js';
import { choices, isMap, resolved, typeOf } from './form.js';

const DEEPEST = 4;
const MOST_ROWS = 300;
const MOST_CHOICES = 12;

/// The members of a schema, including nested ones.
export function schemaTable(schema, caption) {
    const rows = [];
    describe(schema, { root: schema }, 0, rows);
    if (!rows.length) return h('p', { class: 'none' }, 'None.');
    const heads = ['Name', 'Type', 'Meaning'].map((name) => h('th', { scope: 'col' }, name));
    return h('div', { class: 'scroll' }, h('table', { 'data-table': caption.toLowerCase() }, h('caption', { class: 'hidden' }, caption),
        h('thead', {}, h('tr', {}, ...heads)), h('tbody', {}, ...rows)));
}

function describe(given, context, depth, rows) {
    const schema = resolved(given, context);
    const properties = isMap(schema.properties) ? schema.properties : {};
    const required = Array.isArray(schema.required) ? schema.required : [];
    for (const [name, member] of Object.entries(properties)) {
        if (rows.length >= MOST_ROWS) return;
        const own = resolved(member, context);
        const indent = '\u2003'.repeat(depth);
        rows.push(h('tr', {},
            h('th', { scope: 'row', class: 'mono' }, `${indent}${name}${required.includes(name) ? ' *' : ''}`),
            h('td', {}, kind(own, context)),
            h('td', { class: 'wrap' }, meaning(own))));
        const below = typeOf(own) === 'array' && isMap(own.items) ? own.items : own;
        if (depth < DEEPEST) describe(below, context, depth + 1, rows);
    }
}

function kind(schema, context, depth = 0) {
    const type = typeOf(schema);
    if (type === 'array' && depth < DEEPEST) return `list of ${isMap(schema.items) ? kind(resolved(schema.items, context), context, depth + 1) : 'anything'}`;
    return [type ?? (choices(schema) ? 'choice' : 'any'), schema.format].filter((it) => typeof it === 'string').join(', ');
}

function meaning(schema) {
    const some = choices(schema);
    const texts = some?.slice(0, MOST_CHOICES).map(({ text }) => text);
    const bound = (name, text) => (schema[name] === undefined ? null : `${text} ${JSON.stringify(schema[name])}`);
    const facts = [
        typeof schema.description === 'string' ? schema.description : null,
        texts && `one of: ${texts.join(', ')}${some.length > texts.length ? ', …' : ''}`,
        bound('minimum', 'at least'), bound('maximum', 'at most'), bound('minLength', 'at least as long as'),
        bound('maxLength', 'at most as long as'), bound('pattern', 'pattern'), bound('default', 'default'),
    ];
    return facts.filter(Boolean).join('; ');
}
