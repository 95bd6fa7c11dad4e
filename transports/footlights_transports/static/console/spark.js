// A small line over time. A gap is a time without a value.

import { svg } from "./dom.js";

const WIDTH = 240;
const HEIGHT = 48;

export function spark(values, label) {
    const most = Math.max(...values.map((each) => each ?? 0), 1e-9);
    const lines = [];
    let points = [];
    values.forEach((each, index) => {
        if (each === null) {
            points = [];
            return;
        }
        if (!points.length) lines.push(points);
        points.push(`${((index / Math.max(1, values.length - 1)) * WIDTH).toFixed(1)},${(HEIGHT - 3 - (each / most) * (HEIGHT - 6)).toFixed(1)}`);
    });
    const shape = svg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, class: "spark", role: "img", "aria-label": label, preserveAspectRatio: "none" });
    shape.append(svg("line", { x1: 0, x2: WIDTH, y1: HEIGHT - 2.5, y2: HEIGHT - 2.5, class: "axis" }));
    for (const each of lines) {
        const shown = each.length === 1 ? [each[0], each[0].replace(/^[\d.]+/, (x) => String(Number(x) + 2))] : each;
        shape.append(svg("polyline", { points: shown.join(" ") }));
    }
    return shape;
}
