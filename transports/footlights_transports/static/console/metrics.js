// Metrics of the server, as /metrics gives them, and percentiles between two readings.

/** Samples by name; a histogram has its buckets by their upper bound. */
export function parse(text) {
    const samples = new Map();
    for (const line of text.split("\n")) {
        if (!line || line.startsWith("#")) continue;
        const [, name, , labels = "", value] = /^(\w+)(\{(.*)\})? (\S+)/.exec(line) ?? [];
        if (name) samples.set(`${name}{${labels}}`, Number(value));
    }
    return samples;
}

export function value(samples, name) {
    return samples.get(`footlights_${name}{}`) ?? 0;
}

/** [label, value] for each sample of this name. */
export function labelled(samples, name) {
    const prefix = `footlights_${name}{`;
    return [...samples].filter(([key]) => key.startsWith(prefix)).map(([key, each]) => [/="(.*)"/.exec(key.slice(prefix.length))[1], each]);
}

function buckets(samples, name) {
    return labelled(samples, `${name}_bucket`).map(([bound, each]) => [bound === "+Inf" ? Infinity : Number(bound), each]);
}

/** How many were observed between two readings. */
export function observed(before, after, name) {
    return value(after, `${name}_count`) - value(before, `${name}_count`);
}

/** The percentile of what was observed between two readings, in milliseconds, within its bucket; null for nothing. */
export function percentile(before, after, name, share) {
    const earlier = new Map(buckets(before, name));
    const counts = buckets(after, name).map(([bound, each]) => [bound, each - (earlier.get(bound) ?? 0)]);
    const wanted = (counts.at(-1)?.[1] ?? 0) * share;
    if (!wanted) return null;
    let [low, below] = [0, 0];
    for (const [bound, each] of counts) {
        if (each >= wanted) {
            const high = bound === Infinity ? low : bound;
            return 1000 * (low + ((high - low) * (wanted - below)) / Math.max(1, each - below));
        }
        [low, below] = [bound, each];
    }
    return null;
}
