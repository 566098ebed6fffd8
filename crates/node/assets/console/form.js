// Forms made of JSON Schema. Values that no form can express are typed as JSON; a schema's texts are shown as
// text.

import { h, say } from './dom.js';

/// Deeper values are typed as JSON, because anyone may have written the schema.
const DEEPEST = 5;
const MOST_FIELDS = 200;

let made = 0;

/// The typed text is not a valid value.
export class Invalid extends Error {
    constructor(message, control) {
        super(message);
        this.control = control;
    }
}

/// A form for a value of `schema`, with the same value as JSON beside it.
export class Form {
    constructor(schema, name) {
        const context = { root: schema, left: MOST_FIELDS };
        const root = resolved(schema, context);
        this.fields = isObject(root) ? members(root, context, 0) : null;
        this.form = h('div', { class: 'fields' }, ...(this.fields ?? []).map(({ element }) => element));
        if (this.fields?.length === 0) this.form.append(h('p', { class: 'quiet' }, 'This tool takes no arguments.'));
        this.json = asJson(name, '{}');
        this.asJson = !this.fields;
        this.toggle = h('button', { type: 'button', class: 'small', 'data-does': 'as-json', 'aria-pressed': String(this.asJson) }, 'As JSON');
        this.toggle.addEventListener('click', () => this.#turn());
        this.element = h('div', {}, this.form, this.json.element,
            this.fields ? h('div', { class: 'buttons' }, this.toggle) : null);
        this.#show();
    }

    /// Returns the value; throws `Invalid`.
    read() {
        return this.asJson ? this.json.read() ?? {} : collect(this.fields);
    }

    #turn() {
        if (!this.asJson) {
            try {
                this.json.control.value = JSON.stringify(collect(this.fields), null, 2);
            } catch {
                // Incomplete JSON is typed anew.
            }
        }
        this.asJson = !this.asJson;
        this.toggle.setAttribute('aria-pressed', String(this.asJson));
        this.#show();
    }

    #show() {
        this.form.hidden = this.asJson;
        this.json.element.hidden = !this.asJson;
    }
}

/// A schema with references inside the document resolved, and without the choice of null.
export function resolved(schema, context, depth = 0) {
    if (!isMap(schema) || depth > DEEPEST) return {};
    if (typeof schema.$ref === 'string') {
        const { $ref, ...rest } = schema;
        return { ...resolved(at(context.root, $ref), context, depth + 1), ...rest };
    }
    const choices = schema.anyOf ?? schema.oneOf;
    if (Array.isArray(choices)) {
        const some = choices.filter((choice) => choice?.type !== 'null');
        if (some.length === 1) {
            const { anyOf, oneOf, ...rest } = schema;
            return { ...resolved(some[0], context, depth + 1), ...rest };
        }
    }
    return schema;
}

/// The target of the reference `#/…`.
function at(root, reference) {
    if (!reference.startsWith('#')) return {};
    return reference.slice(1).split('/').filter(Boolean).reduce((part, name) => {
        const key = decodePart(name);
        return part !== null && typeof part === 'object' && Object.hasOwn(part, key) ? part[key] : {};
    }, root);
}

function decodePart(name) {
    try {
        return decodeURIComponent(name).replaceAll('~1', '/').replaceAll('~0', '~');
    } catch {
        return name;
    }
}

/// The first type other than null.
export function typeOf(schema) {
    const types = [schema.type].flat().filter((type) => typeof type === 'string' && type !== 'null');
    return types.length > 1 ? undefined : types[0] ?? (isMap(schema.properties) ? 'object' : undefined);
}

/// The allowed values as [{ value, text }]; undefined if other values are allowed.
export function choices(schema) {
    if (Object.hasOwn(schema, 'const')) return [{ value: schema.const, text: shown(schema.const) }];
    if (Array.isArray(schema.enum)) {
        const names = Array.isArray(schema.enumNames) ? schema.enumNames : [];
        return schema.enum.filter((value) => value !== null)
            .map((value, at) => ({ value, text: String(names[at] ?? shown(value)) }));
    }
    const some = schema.oneOf ?? schema.anyOf;
    const constant = (choice) => isMap(choice) && Object.hasOwn(choice, 'const');
    if (!Array.isArray(some) || !some.length || !some.every(constant)) return undefined;
    return some.map((choice) => ({ value: choice.const, text: String(choice.title ?? shown(choice.const)) }));
}

export function isMap(value) {
    return value !== null && typeof value === 'object' && !Array.isArray(value);
}

function isObject(schema) {
    return typeOf(schema) === 'object' && isMap(schema.properties ?? {}) && !schema.allOf && !schema.anyOf && !schema.oneOf;
}

function shown(value) {
    return typeof value === 'string' ? value : JSON.stringify(value);
}

/// A field for each member of an object: [{ name, element, read }].
function members(schema, context, depth) {
    const required = Array.isArray(schema.required) ? schema.required : [];
    const fields = [];
    for (const [name, given] of Object.entries(schema.properties ?? {})) {
        if (context.left <= 0) {
            fields.push({ element: h('p', { class: 'quiet' }, 'There are more members: give them as JSON.'), read: () => undefined });
            break;
        }
        context.left -= 1;
        fields.push({ name, ...field(name, resolved(given, context), required.includes(name), context, depth + 1) });
    }
    return fields;
}

/// Makes an object of the fields; empty ones are left out.
function collect(fields) {
    const said = fields.map(({ name, read }) => [name, read()]).filter(([, value]) => value !== undefined);
    // Also keeps members with names such as `__proto__`.
    return Object.fromEntries(said);
}

function field(name, schema, required, context, depth) {
    const some = choices(schema);
    if (some) return choice(name, schema, required, some);
    const type = typeOf(schema);
    if (type === 'object' && depth < DEEPEST && isObject(schema) && Object.keys(schema.properties ?? {}).length) {
        return group(name, schema, required, context, depth);
    }
    if (type === 'array' && depth < DEEPEST && isMap(schema.items)) return list(name, schema, required, context, depth);
    if (type === 'boolean') {
        return choice(name, schema, required, [true, false].map((value) => ({ value, text: String(value) })));
    }
    if (type === 'string' || type === 'number' || type === 'integer') return line(name, schema, required, type);
    return labelled(name, schema, required, asJson(name, ''));
}

function line(name, schema, required, type) {
    const number = type !== 'string';
    const kind = { email: 'email', uri: 'url', date: 'date' }[schema.format] ?? 'text';
    const control = h('input', {
        type: number ? 'number' : kind, step: number ? (type === 'integer' ? 1 : 'any') : undefined,
        min: bound(schema.minimum), max: bound(schema.maximum), maxlength: bound(schema.maxLength), autocomplete: 'off', spellcheck: 'false',
    });
    if (schema.default !== undefined && typeof schema.default !== 'object') control.value = schema.default;
    const read = () => {
        if (!control.validity.valid) throw new Invalid(`${name}: ${control.validationMessage}`, control);
        if (number) expectExact(control.value, name, control);
        if (control.value !== '') return number ? Number(control.value) : control.value;
        if (!required) return undefined;
        // An empty text is a value.
        if (number || schema.minLength > 0) throw new Invalid(`${name} is needed.`, control);
        return '';
    };
    return labelled(name, schema, required, { control, read });
}

/// A schema's limit, if it is a number.
function bound(limit) {
    return typeof limit === 'number' ? limit : undefined;
}

/// Numbers of this page have 53 bits; a longer one would reach the tool changed.
function expectExact(text, name, control) {
    const outside = text.replaceAll(/"(?:[^"\\]|\\.)*"/g, '""');
    const long = outside.match(/(?<![\d.eE])-?\d+(?![\d.eE])/g)?.find((digits) => !Number.isSafeInteger(Number(digits)));
    if (long) throw new Invalid(`${name}: ${long} has more digits than this page can pass on; use shoal call.`, control);
}

function choice(name, schema, required, some) {
    const preset = some.findIndex(({ value }) => value === schema.default);
    const options = some.map(({ text }, at) => h('option', { value: at }, text));
    const none = h('option', { value: '' }, required ? 'choose …' : '–');
    const control = h('select', {}, none, ...options);
    if (preset >= 0) control.value = String(preset);
    else if (required && some.length === 1) control.value = '0';
    const read = () => {
        if (control.value !== '') return some[Number(control.value)].value;
        if (required) throw new Invalid(`${name} is needed.`, control);
        return undefined;
    };
    return labelled(name, schema, required, { control, read });
}

function group(name, schema, required, context, depth) {
    const fields = members(schema, context, depth);
    const element = h('fieldset', {}, h('legend', {}, title(name, schema, required)), note(schema), ...fields.map((it) => it.element));
    return { element, read: () => (required ? collect(fields) : whole(fields)) };
}

/// An optional object: left out if all its fields are empty, even required ones.
function whole(fields) {
    try {
        const said = collect(fields);
        return Object.keys(said).length ? said : undefined;
    } catch (wrong) {
        const says = ({ read }) => {
            try {
                return read() !== undefined;
            } catch (error) {
                return error.control?.value !== '';
            }
        };
        if (fields.some(says)) throw wrong;
        return undefined;
    }
}

function list(name, schema, required, context, depth) {
    const items = [];
    const rows = h('div', { class: 'fields' });
    const add = h('button', { type: 'button', class: 'small' }, 'Add');
    add.setAttribute('aria-label', `Add to ${name}`);
    const { root } = context;
    const insert = () => {
        if (items.length >= MOST_FIELDS) return;
        const own = { root, left: MOST_FIELDS };
        const item = field(`${name} ${items.length + 1}`, resolved(schema.items, own), true, own, depth + 1);
        const drop = h('button', { type: 'button', class: 'small' }, 'Remove');
        const row = h('div', { class: 'item' }, item.element, drop);
        items.push(item);
        rows.append(row);
        drop.addEventListener('click', () => {
            items.splice(items.indexOf(item), 1);
            row.remove();
            add.focus();
        });
    };
    add.addEventListener('click', () => {
        insert();
        rows.lastElementChild?.querySelector('input, select, textarea')?.focus();
    });
    const element = h('fieldset', {}, h('legend', {}, title(name, schema, required)), note(schema), rows, add);
    const read = () => (items.length || required ? items.map((item) => item.read()) : undefined);
    return { element, read };
}

/// Any value, as JSON.
function asJson(name, text) {
    const control = h('textarea', { rows: 4, spellcheck: 'false', 'aria-label': `${name}, as JSON`, class: 'mono' });
    control.value = text;
    const read = () => {
        if (control.value.trim() === '') return undefined;
        expectExact(control.value, name, control);
        try {
            return JSON.parse(control.value);
        } catch (error) {
            throw new Invalid(`${name}: ${error.message}`, control);
        }
    };
    return { element: h('div', { class: 'field' }, control), control, read };
}

function labelled(name, schema, required, { control, read }) {
    made += 1;
    control.id = `field-${made}`;
    const told = note(schema);
    if (told) {
        told.id = `note-${made}`;
        control.setAttribute('aria-describedby', told.id);
    }
    const reading = () => {
        const value = read();
        if (value === undefined && required) throw new Invalid(`${name} is needed.`, control);
        return value;
    };
    const element = h('div', { class: 'field' }, h('label', { for: control.id }, title(name, schema, required)), control, told);
    return { element, read: reading };
}

function title(name, schema, required) {
    const called = typeof schema.title === 'string' && schema.title !== name ? ` (${schema.title})` : '';
    return `${name}${called}${required ? ' *' : ''}`;
}

function note(schema) {
    return typeof schema.description === 'string' ? h('p', { class: 'quiet' }, schema.description) : null;
}

/// Shows an error and focuses its field.
export function tellWrong(element, error) {
    if (!(error instanceof Invalid)) throw error;
    say(element, error.message);
    error.control?.focus();
}
