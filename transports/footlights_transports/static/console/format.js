// Numbers and names, as people read them.

const WHOLE = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });

export function count(number) {
    return WHOLE.format(number);
}

/** Milliseconds, with as many digits as matter. */
export function ms(milliseconds) {
    if (milliseconds === null || Number.isNaN(milliseconds)) return "–";
    if (milliseconds >= 10_000) return `${(milliseconds / 1000).toFixed(1)} s`;
    if (milliseconds >= 1_000) return `${(milliseconds / 1000).toFixed(2)} s`;
    if (milliseconds >= 100) return `${milliseconds.toFixed(0)} ms`;
    if (milliseconds >= 1) return `${milliseconds.toFixed(1)} ms`;
    return milliseconds === 0 ? "0 ms" : `${milliseconds.toFixed(2)} ms`;
}

export function bytes(number) {
    if (number === null) return "–";
    const units = ["B", "KB", "MB", "GB"];
    let unit = 0;
    let left = number;
    while (left >= 1000 && unit < 3) {
        left /= 1000;
        unit += 1;
    }
    return `${left.toFixed(unit && left < 100 ? 1 : 0)} ${units[unit]}`;
}

export function words(name) {
    return name.replaceAll("_", " ");
}

export function partName({ part, tool }) {
    return tool ? `tool ${tool}` : words(part);
}

export function short(value, limit = 120) {
    const text = JSON.stringify(value) ?? "nothing";
    return text.length > limit ? `${text.slice(0, limit)}…` : text;
}
