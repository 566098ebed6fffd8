// The console: views, refresh, theme, and refusals of the node.

import { get, keepToken } from './api.js';
import { byId, say } from './dom.js';
import { Calls } from './calls.js';
import { Connect } from './connect.js';
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
    connect: new Connect(),
};
let present = 'overview';
/// Whether the page may choose the view. Until the user chooses, a node without a session shows how to
/// connect.
let unchosen = !(location.hash.slice(1) in views);
let paused = false;
let timer = 0;
let turn = 0;
/// Time until which the error of a button stays visible.
let readUntil = 0;

/// Refreshes the shown view now and, unless paused, again after a while.
async function refresh() {
    clearTimeout(timer);
    turn += 1;
    const mine = turn;
    try {
        const status = get('../../status');
        await Promise.all([views[present].refresh(status), status.then(({ store }) => storeTold(store))]);
        if (mine === turn) fine();
        if (mine === turn && unchosen) {
            unchosen = false;
            if (views.overview.isUnused()) show('connect');
        }
    } catch (error) {
        if (mine === turn) trouble(error);
    }
    if (mine === turn && !paused && !document.hidden) timer = setTimeout(refresh, EVERY_MS);
}

function fine() {
    if (Date.now() >= readUntil) byId('trouble').hidden = true;
    byId('state').dataset.is = paused ? '' : 'good';
    // Keeps screen readers from reading it every two seconds.
    byId('state').setAttribute('aria-live', 'off');
    say(byId('state'), `${paused ? 'Paused, as of' : 'Up to date,'} ${time(Date.now())}`);
}

/// Shows on every view that the store is unavailable, because most of the node's state looks well.
function storeTold(store) {
    const why = store?.trouble;
    byId('store').hidden = !why;
    say(byId('store'), why ? `${why}. Until the store is back, Shoal answers new sessions and journaled calls with 503.` : '');
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
    if (dialog.open) say(byId('login-wrong'), 'This node does not know this token.');
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

function choose(name, focus) {
    unchosen = false;
    show(name, focus);
}

for (const tab of tabs) {
    tab.addEventListener('click', () => choose(tab.getAttribute('aria-controls'), true));
    tab.addEventListener('keydown', (event) => {
        const at = tabs.indexOf(tab);
        const to = { ArrowLeft: at - 1, ArrowRight: at + 1, Home: 0, End: tabs.length - 1 }[event.key];
        if (to === undefined) return;
        event.preventDefault();
        choose(tabs[(to + tabs.length) % tabs.length].getAttribute('aria-controls'), true);
    });
}
window.addEventListener('hashchange', () => choose(location.hash.slice(1)));
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

// Shows the error of a button.
window.addEventListener('unhandledrejection', (event) => {
    event.preventDefault();
    readUntil = Date.now() + READ_MS;
    trouble(event.reason);
});

show(unchosen ? 'overview' : location.hash.slice(1));
