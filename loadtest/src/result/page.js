"use strict";
const { comparison, results } = JSON.parse(document.getElementById("data").textContent);
const COLORS = ["#2a7fd0", "#d2691e", "#2e9e63", "#a04fb5", "#a08000", "#c8487a"];
// The position of the last quantile. Each nine has the same width.
const LAST_NINE = 4.6;
const HEADLINES = 8;

// Sets text, never markup, so that nothing of a result becomes markup.
function add(parent, tag, text = "", kind = "") {
  const element = parent.appendChild(document.createElement(tag));
  element.textContent = text;
  element.className = kind;
  return element;
}

function short(value) {
  if (!Number.isFinite(value)) return "–";
  const size = Math.abs(value);
  const digits = Number.isInteger(value) ? 0 : [100, 10, 1, 0.1].filter((most) => size < most).length;
  return value.toLocaleString("en", { minimumFractionDigits: digits, maximumFractionDigits: digits }).replaceAll(",", "\u202f");
}

function time(us) {
  if (us >= 1e6) return `${short(us / 1e6)} s`;
  return us >= 1e3 ? `${short(us / 1e3)} ms` : `${short(us)} µs`;
}

function quantile(at) {
  return { 0: "min", 1: "max" }[at] ?? `p${Number((at * 100).toPrecision(6))}`;
}

function folded(parent, summary, head, rows) {
  const details = add(parent, "details");
  add(details, "summary", summary);
  table(details, "", head, rows);
}

function table(parent, caption, head, rows) {
  const element = add(parent, "table");
  add(element, "caption", caption);
  const names = add(element, "tr");
  head.forEach((name) => add(names, "th", name).scope = "col");
  for (const row of rows) {
    const line = add(element, "tr");
    row.forEach((cell, at) => add(line, at ? "td" : "th", cell, /(better|worse)$/.exec(cell)?.[0]));
  }
}

function plot(parent, title, lines, { x, xText, y, yText, log, tail, marks = [] }) {
  const figure = add(parent, "figure");
  add(figure, "figcaption", title);
  const place = (at) => tail ? Math.min(-Math.log10(1 - at), LAST_NINE) : at;
  const columns = uPlot.join(lines.map(({ points }) => {
    const shown = points.filter(([, value]) => value !== null && (!log || value > 0));
    return [shown.map(([at]) => place(at)), shown.map(([, value]) => value)];
  }));
  const axis = (more) => ({ stroke: "gray", grid: { stroke: "#8884" }, ticks: { stroke: "#8884" }, size: 64, ...more });
  const nines = [0, 0.5, 0.9, 0.99, 0.999, 0.9999, 1];
  const series = lines.map(({ name }, at) => ({
    label: name, width: 2, spanGaps: true, stroke: COLORS[at % COLORS.length],
    value: (_, value) => value === null ? "–" : yText(value),
  }));
  const ticks = tail ? { splits: nines.map(place), values: () => nines.map(xText) } : {};
  new uPlot({
    width: Math.max(300, figure.clientWidth - 30),
    height: 280,
    scales: { x: { time: false }, y: { distr: log ? 3 : 1, range: log ? undefined : (_, __, most) => [0, (most || 1) * 1.1] } },
    axes: [axis({ label: x, size: 40, ...ticks }), axis({ label: y, values: (_, all) => all.map((value) => value === null ? "" : yText(value)) })],
    series: [{ label: x, value: (_, at) => at === null ? "–" : tail ? "" : xText(at) }, ...series],
    hooks: { draw: [({ ctx, bbox, valToPos }) => marks.forEach(({ at_s }) => ctx.fillRect(valToPos(at_s, "x", true), bbox.top, 1, bbox.height))] },
  }, columns, figure);
  for (const { at_s, what } of marks) add(figure, "p", `${short(at_s)} s: ${what}`, "soft");
  const places = [...new Set(lines.flatMap(({ points }) => points.map(([at]) => at)))].sort((one, other) => one - other);
  const known = lines.map(({ points }) => new Map(points));
  const rows = places.map((at) => [xText(at), ...known.map((values) => values.has(at) ? yText(values.get(at)) : "–")]);
  folded(figure, "Values as a table", [x, ...lines.map(({ name }) => name)], rows);
}

function percentiles(parent, title, latencies) {
  const lines = latencies.map(({ name, count, quantiles_us }) => ({ name: `${name} (${count})`, points: quantiles_us }));
  plot(parent, title, lines, { x: "percentile", xText: quantile, y: "latency", yText: time, log: true, tail: true });
}

function measured({ latencies }) {
  return latencies.filter(({ count }) => count > 0);
}

function judged(parent, { violations, verdicts }) {
  const list = add(parent, "ul", "", "list");
  if (violations.length === 0) add(list, "li", "All verified: no answer was wrong, none was missing", "good");
  for (const { what, count, example } of violations) add(list, "li", `Violation: ${what}, ${count} times, first: ${example}`, "bad");
  for (const { what, held } of verdicts) {
    const [kind, word] = held === null ? ["", "Not decided"] : held ? ["good", "Held"] : ["bad", "Not held"];
    add(list, "li", `${word}: ${what}`, kind);
  }
}

function figures(parent, outcome) {
  const cards = add(parent, "ul", "", "cards");
  const card = (value, name) => {
    const item = add(cards, "li");
    add(item, "b", value);
    add(item, "span", name, "soft");
  };
  for (const { name, quantiles_us } of measured(outcome).slice(0, 1)) {
    for (const [at, us] of quantiles_us) if ([0.5, 0.99, 0.999].includes(at)) card(time(us), `${name}, ${quantile(at)}`);
  }
  // Figures that can be better or worse come first, because readers look for them.
  const first = outcome.figures.filter(({ better }) => better !== "neither");
  for (const { name, value, unit } of first.slice(0, HEADLINES)) card(`${short(value)} ${unit}`, name);
  const all = first.concat(outcome.figures.filter(({ better }) => better === "neither"));
  const rows = all.map(({ name, value, unit, better }) => [name, short(value), unit, better === "neither" ? "" : `${better} is better`]);
  folded(parent, "All figures", ["figure", "value", "unit", ""], rows);
}

function series(parent, { series, marks }) {
  const drawn = series.filter(({ points }) => points.length > 0);
  for (const unit of new Set(drawn.map(({ unit }) => unit))) {
    const lines = drawn.filter((line) => line.unit === unit);
    const values = lines.flatMap(({ points }) => points.map(([, value]) => value)).filter((value) => value > 0);
    const log = ["µs", "ms", "s"].includes(unit) && Math.max(...values) / Math.min(...values) > 20;
    const title = lines.length === 1 ? lines[0].name : `Over time, in ${unit || "numbers"}`;
    plot(parent, title, lines, { x: "seconds since the run began", xText: short, y: unit, yText: short, log, marks });
  }
}

function show({ name, outcome }) {
  const section = add(main, "section");
  add(section, "h2", name);
  add(section, "p", `${outcome.scenario}: ${outcome.title} (${short(outcome.seconds)} s)`, "soft");
  judged(section, outcome);
  figures(section, outcome);
  const plots = add(section, "div", "", "plots");
  const latencies = measured(outcome);
  for (let at = 0; at < latencies.length; at += COLORS.length) {
    percentiles(plots, "Latency by percentile", latencies.slice(at, at + COLORS.length));
  }
  series(plots, outcome);
  folded(section, "What it was asked to do", ["option", "value"], Object.entries(outcome.parameters).map(([option, value]) => [`--${option}`, value]));
}

const main = document.querySelector("main");
const names = results.map(({ name }) => name);
document.title = `${comparison ? "Comparison" : "Load test"}: ${names.join(", ")}`;
add(main, "h1", document.title);
if (comparison) {
  table(main, "Side by side", comparison.lines[0], comparison.lines.slice(1));
  const list = add(main, "ul", "", "list");
  for (const [name, values] of comparison.differing) add(list, "li", `Not alike: ${name}: ${values.join(" | ")}`);
}
const firsts = results.flatMap(({ name, outcome }) => measured(outcome).slice(0, 1).map((latency) => ({ ...latency, name })));
if (firsts.length > 1) percentiles(add(main, "div", "", "plots"), "First latency of each result, by percentile", firsts);
results.forEach(show);
