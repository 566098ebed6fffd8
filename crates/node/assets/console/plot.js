// Lines over up to fifteen minutes, drawn as SVG, with the same numbers as a table for screen readers.

import { h, s, say } from './dom.js';
import { time } from './format.js';

const STEP_S = 5;
const STEPS = 180;
/// The plot of a new node begins with this width and grows.
const LEAST_STEPS = 24;
const WIDTH = 1000;
const HEIGHT = 200;

/// series: [{ name, hue, of: point => number | null }]; show: number => text; `whole` if only whole numbers
/// make sense
export class Plot {
    constructor(id, title, series, show, { whole = false } = {}) {
        this.whole = whole;
        this.series = series;
        this.show = show;
        this.title = title;
        this.points = [];
        this.cursor = null;
        this.lines = s('g');
        this.losses = s('g');
        this.needle = s('line', { class: 'cursor', y1: 0, y2: HEIGHT, visibility: 'hidden' });
        const grid = [0, .5, 1].map((part) =>
            s('line', { class: 'grid', x1: 0, x2: WIDTH, y1: HEIGHT * part, y2: HEIGHT * part }));
        const svg = s('svg', { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: 'none', 'aria-hidden': 'true' },
            ...grid, this.losses, this.lines, this.needle);
        this.marks = [1, .5].map((part) => {
            const mark = h('span', { class: 'mark', 'aria-hidden': 'true' });
            mark.style.top = `${(1 - part) * 100}%`;
            // There is no room above the first line.
            if (part === 1) mark.style.transform = 'translateY(2px)';
            return { mark, part };
        });
        this.canvas = h('div', { class: 'canvas', role: 'img', tabindex: '0' }, svg, ...this.marks.map(({ mark }) => mark));
        this.readout = h('span', { class: 'readout' });
        this.from = h('span', {}, '15 min ago');
        this.legend = h('ul', { class: 'legend' });
        this.table = h('tbody');
        const heads = ['Time', ...series.map(({ name }) => name)].map((name, at) =>
            h('th', { scope: 'col', class: at ? 'num' : undefined }, name));
        const data = h('table', { 'data-plot': id }, h('caption', { class: 'hidden' }, title),
            h('thead', {}, h('tr', {}, ...heads)), this.table);
        this.details = h('details', {}, h('summary', {}, 'Numbers'),
            h('div', { class: 'scroll', tabindex: '0', role: 'region', 'aria-label': `${title}, numbers` }, data));
        this.element = h('figure', { class: 'panel' },
            h('figcaption', {}, h('b', {}, title), this.readout), this.canvas,
            h('div', { class: 'axis', 'aria-hidden': 'true' }, this.from, h('span', {}, 'now')),
            this.legend, this.details);
        this.canvas.addEventListener('pointermove', (event) => this.#point(event));
        this.canvas.addEventListener('pointerleave', () => this.#read(null));
        this.canvas.addEventListener('blur', () => this.#read(null));
        this.canvas.addEventListener('keydown', (event) => this.#key(event));
    }

    /// Points, and the times (in seconds since 1970) since which some node's points are missing.
    update(points, losses = []) {
        this.points = points;
        const newest = points.at(-1)?.at ?? Math.floor(Date.now() / 1000);
        const known = (newest - (points[0]?.at ?? newest)) / STEP_S + 1;
        this.span = (Math.min(STEPS, Math.max(LEAST_STEPS, known)) - 1) * STEP_S;
        this.begin = newest - this.span;
        say(this.from, `${Math.round(this.span / 60)} min ago`);
        const values = points.flatMap((point) => this.series.map(({ of }) => of(point) ?? 0));
        this.top = nice(Math.max(0, ...values), this.whole);
        for (const { mark, part } of this.marks) say(mark, this.show(this.top * part));
        this.lines.replaceChildren(...this.series.flatMap((series) => this.#line(series)));
        const within = losses.filter((at) => at >= this.begin && at <= newest);
        this.losses.replaceChildren(...within.map((at) => {
            const x = this.#x({ at });
            return s('line', { class: 'lost', x1: x, x2: x, y1: 0, y2: HEIGHT });
        }));
        this.#tabulate(points);
        this.#read(this.cursor);
    }

    /// One line for each stretch without a gap.
    #line({ of, hue }) {
        const stretches = [[]];
        let before = null;
        for (const point of this.points) {
            const value = of(point);
            const gap = before !== null && point.at - before > STEP_S;
            if (value === null || value === undefined || gap) stretches.push([]);
            if (value !== null && value !== undefined) stretches.at(-1).push([this.#x(point), this.#y(value)]);
            before = point.at;
        }
        return stretches.filter((stretch) => stretch.length).map((stretch) => {
            // A single point is a short dash.
            const ends = stretch.length > 1 ? stretch : [[stretch[0][0] - 8, stretch[0][1]], stretch[0]];
            const points = ends.map(([x, y]) => `${x.toFixed(1)},${y.toFixed(1)}`).join(' ');
            return s('polyline', { class: `hue-${hue}`, points });
        });
    }

    #x(point) {
        return (point.at - this.begin) / this.span * WIDTH;
    }

    #y(value) {
        return HEIGHT - value / this.top * HEIGHT;
    }

    /// Shows the numbers of a step: the newest, or the one under the pointer.
    #describe(point, when) {
        const all = this.series.map((series) => ({ ...series, text: point ? this.show(series.of(point)) : '–' }));
        const spoken = all.map(({ name, text }) => `${name} ${text}`).join(', ');
        this.canvas.setAttribute('aria-label', point ? `${this.title}, ${when}: ${spoken}` : `${this.title}: no numbers yet`);
        this.legend.replaceChildren(...all.map(({ name, hue, text }) =>
            h('li', { class: `hue-${hue}` }, h('span', {}, `${name} ${text}`))));
    }

    #tabulate(points) {
        const rows = [...points].reverse().map((point) => h('tr', { 'data-at': point.at },
            h('th', { scope: 'row' }, time(point.at * 1000)),
            ...this.series.map(({ of }) => h('td', { class: 'num' }, this.show(of(point))))));
        this.table.replaceChildren(...rows);
    }

    #point(event) {
        const box = this.canvas.getBoundingClientRect();
        const at = this.begin + (event.clientX - box.left) / box.width * this.span;
        const near = this.points.reduce((best, point) =>
            (best === null || Math.abs(point.at - at) < Math.abs(best - at) ? point.at : best), null);
        this.#read(near);
    }

    #key(event) {
        const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
        if (!by || !this.points.length) return;
        const present = this.points.findIndex((point) => point.at === this.cursor);
        const from = present < 0 ? this.points.length : present;
        const to = Math.min(this.points.length - 1, Math.max(0, from + by));
        this.#read(this.points[to].at);
        event.preventDefault();
    }

    /// Shows the numbers of one step.
    #read(at) {
        const point = this.points.find((point) => point.at === at);
        this.cursor = point ? at : null;
        this.needle.setAttribute('visibility', point ? 'visible' : 'hidden');
        const when = point ? time(point.at * 1000) : '';
        say(this.readout, when);
        if (!point) return this.#describe(this.points.at(-1), 'now');
        this.#describe(point, when);
        this.needle.setAttribute('x1', this.#x(point));
        this.needle.setAttribute('x2', this.#x(point));
    }
}

/// The next of 1, 2, 5, 10, …; with `whole`, the next whose half is whole too: 2, 4, 10, 20, …
function nice(value, whole) {
    if (value <= 0) return whole ? 2 : 1;
    const ten = 10 ** Math.floor(Math.log10(value));
    const steps = whole ? [1, 2, 4, 10] : [1, 2, 5, 10];
    return steps.map((step) => step * ten).find((step) => step >= value * .999 && (!whole || step % 2 === 0));
}
