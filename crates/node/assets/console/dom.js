// Makes elements. Inserts contents as text and not as markup, because anyone may have written them.

const SVG = 'http://www.w3.org/2000/svg';

/// Makes an element with attributes and children; other children become text.
export function h(tag, attributes = {}, ...children) {
    return fill(document.createElement(tag), attributes, children);
}

/// The same for SVG.
export function s(tag, attributes = {}, ...children) {
    return fill(document.createElementNS(SVG, tag), attributes, children);
}

function fill(element, attributes, children) {
    for (const [name, value] of Object.entries(attributes)) {
        if (value === true) element.setAttribute(name, '');
        else if (value !== false && value !== undefined && value !== null) element.setAttribute(name, value);
    }
    const shown = children.filter((child) => child !== null && child !== undefined);
    element.append(...shown.map((child) => (typeof child === 'string' ? plain(child) : child)));
    return element;
}

/// Removes invisible characters: control characters, and those that change the text's direction.
function plain(text) {
    return text.replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200b-\u200f\u202a-\u202e\u2066-\u2069\ufeff]/g, '');
}

/// Sets a text if it differs, so that screen readers read only changes.
export function say(element, text) {
    const shown = plain(text);
    if (element.textContent !== shown) element.textContent = shown;
}

export function byId(id) {
    return document.getElementById(id);
}

/// Announces a text to screen readers.
export function announce(text) {
    byId('said').textContent = text;
}

/// Asks before an action that cannot be undone, and returns whether to do it. The safe answer has the focus.
export function confirm(title, text, yes, no = 'Cancel') {
    const dialog = byId('confirm');
    say(byId('confirm-title'), title);
    say(byId('confirm-text'), text);
    say(byId('confirm-yes'), yes);
    say(byId('confirm-no'), no);
    dialog.returnValue = 'no';
    dialog.showModal();
    byId('confirm-no').focus();
    return new Promise((resolve) => {
        dialog.addEventListener('close', () => resolve(dialog.returnValue === 'yes'), { once: true });
    });
}
