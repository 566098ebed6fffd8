// The console: views, their refresh, the theme, and what happens when a node refuses.

import { get, keepToken } from './api.js';
import { byId, say } from './dom.js';
import { Calls } from './calls.js';
import { Errors } from './errors.js';
import { time } from './format.js';
import { Overview } from './overview.js';
import { Sessions } from './sessions.js';
import { Tools } from './tools.js';

const EVERY_MS = 2_000;
const READ_MS = 8_000;
const THEME = 'shoal-theme';
const THEMES = ['auto', 'light', 'dark'];

const tabs = [...document.querySelectorAll('[role="tab"]')];
const views = {
    overview: new Overview(), sessions: new Sessions(refresh), calls: new Calls(refresh), tools: new Tools(refresh), errors: new Errors(),
};
let present = 'overview';
let paused = false;
let timer = 0;
let turn = 0;
/// Until when what went wrong with a button stays to be read.
let readUntil = 0;

/// Refreshes the view that is shown, now and, unless paused, again after a while.
async function refresh() {
    clearTimeout(timer);
    turn += 1;
    const mine = turn;
    try {
        const status = get('../../status');
        await Promise.all([views[present].refresh(status), status.then(({ store }) => storeTold(store))]);
        if (mine === turn) fine();
    } catch (error) {
        if (mine === turn) trouble(error);
    }
    if (mine === turn && !paused && !document.hidden) timer = setTimeout(refresh, EVERY_MS);
}

function fine() {
    if (Date.now() >= readUntil) byId('trouble').hidden = true;
    byId('state').dataset.is = paused ? '' : 'good';
    // Not read out every two seconds.
    byId('state').setAttribute('aria-live', 'off');
    say(byId('state'), `${paused ? 'Paused, as of' : 'Up to date,'} ${time(Date.now())}`);
}

/// On every view: without its store the node refuses sessions, and much else still looks well.
function storeTold(store) {
    const why = store?.trouble;
    byId('store').hidden = !why;
    say(byId('store'), why ? `${why}. New sessions and journaled calls get 503 until the store is back.` : '');
}

function trouble(error) {
    if (error.status === 401) return login();
    byId('state').dataset.is = 'bad';
    say(byId('state'), 'Not up to date');
    byId('trouble').hidden = false;
    say(byId('trouble'), error.message);
}

function login() {
    paused = true;
    const dialog = byId('login');
    say(byId('state'), 'Locked');
    if (dialog.open) say(byId('login-wrong'), 'This is not the token.');
    else dialog.showModal();
    byId('token').value = '';
    byId('token').focus();
}

byId('login').addEventListener('cancel', (event) => event.preventDefault());
byId('login-form').addEventListener('submit', async (event) => {
    event.preventDefault();
    keepToken(byId('token').value.trim());
    paused = false;
    await refresh();
    if (!paused) byId('login').close();
});

function show(name, focus) {
    if (!(name in views)) return;
    present = name;
    for (const tab of tabs) {
        const selected = tab.getAttribute('aria-controls') === name;
        tab.setAttribute('aria-selected', String(selected));
        tab.tabIndex = selected ? 0 : -1;
        byId(tab.getAttribute('aria-controls')).hidden = !selected;
        if (selected && focus) tab.focus();
    }
    if (location.hash !== `#${name}`) history.replaceState(null, '', `#${name}`);
    refresh();
}

for (const tab of tabs) {
    tab.addEventListener('click', () => show(tab.getAttribute('aria-controls'), true));
    tab.addEventListener('keydown', (event) => {
        const at = tabs.indexOf(tab);
        const to = { ArrowLeft: at - 1, ArrowRight: at + 1, Home: 0, End: tabs.length - 1 }[event.key];
        if (to === undefined) return;
        event.preventDefault();
        show(tabs[(to + tabs.length) % tabs.length].getAttribute('aria-controls'), true);
    });
}
window.addEventListener('hashchange', () => show(location.hash.slice(1)));
document.addEventListener('visibilitychange', () => { if (!document.hidden && !paused) refresh(); });

byId('pause').addEventListener('click', () => {
    paused = !paused;
    byId('pause').setAttribute('aria-pressed', String(paused));
    refresh();
});

function theme(name) {
    if (name === 'auto') delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = name;
    say(byId('theme'), `Theme: ${name}`);
}

byId('theme').addEventListener('click', () => {
    const next = THEMES[(THEMES.indexOf(localStorage.getItem(THEME) ?? 'auto') + 1) % THEMES.length];
    localStorage.setItem(THEME, next);
    theme(next);
});
theme(localStorage.getItem(THEME) ?? 'auto');

// What a button does may fail, too.
window.addEventListener('unhandledrejection', (event) => {
    event.preventDefault();
    readUntil = Date.now() + READ_MS;
    trouble(event.reason);
});

show(location.hash.slice(1) in views ? location.hash.slice(1) : 'overview');
