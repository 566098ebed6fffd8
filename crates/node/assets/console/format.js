// Numbers and times for people.

const whole = new Intl.NumberFormat('en');
const absolute = new Intl.DateTimeFormat('en-GB', { dateStyle: 'medium', timeStyle: 'medium' });
const clock = new Intl.DateTimeFormat('en-GB', { hour: '2-digit', minute: '2-digit', second: '2-digit' });

export function count(number) {
    return whole.format(number);
}

/// "3 calls", "1 call"
export function many(number, one, several = `${one}s`) {
    return `${count(number)} ${number === 1 ? one : several}`;
}

/// A duration in its largest unit.
export function duration(ms) {
    const s = ms / 1000;
    if (ms < 1000) return `${Math.round(ms)} ms`;
    if (s < 10) return `${s.toFixed(1)} s`;
    if (s < 100) return `${Math.floor(s)} s`;
    if (s < 6000) return `${Math.floor(s / 60)} min`;
    if (s < 172_800) return `${Math.floor(s / 3600)} h`;
    return `${Math.floor(s / 86_400)} d`;
}

/// "3 s ago", with the time as tooltip.
export function ago(at) {
    const ms = Math.max(0, Date.now() - at);
    return { text: ms < 1000 ? 'just now' : `${duration(ms)} ago`, title: absolute.format(at) };
}

/// The duration since a time, with the time as tooltip.
export function since(ms) {
    return { text: duration(ms), title: `since ${absolute.format(Date.now() - ms)}` };
}

export function time(at) {
    return clock.format(at);
}

export function latency(ms) {
    if (ms === null || ms === undefined) return '–';
    if (ms < 1) return `${short(ms, 2)} ms`;
    if (ms < 100) return `${short(ms, 1)} ms`;
    return ms < 600_000 ? (ms < 1000 ? duration(ms) : `${short(ms / 1000, 1)} s`) : duration(ms);
}

export function rate(perSecond) {
    if (perSecond < 1) return short(perSecond, 2);
    return perSecond < 10 ? short(perSecond, 1) : count(Math.round(perSecond));
}

function short(number, digits) {
    return String(Number(number.toFixed(digits)));
}
