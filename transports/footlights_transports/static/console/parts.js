// Parts of a turn's time: as one bar, and as a waterfall whose rows add up.

import { h } from "./dom.js";
import { ms, partName } from "./format.js";

export function total(parts) {
    return parts.reduce((sum, each) => sum + each.took_us, 0) / 1000;
}

/** One bar, as wide as its share of `widest` milliseconds. */
export function bar(parts, widest) {
    const whole = total(parts);
    const row = h("span", { class: "bar", role: "img" });
    row.setAttribute("aria-label", parts.map((each) => `${partName(each)} ${ms(each.took_us / 1000)}`).join(", "));
    row.style.width = `${Math.max(2, widest ? (100 * whole) / widest : 100)}%`;
    for (const each of parts.filter((part) => part.took_us > 0)) {
        const piece = h("i", { class: `part part-${each.part}`, title: `${partName(each)}: ${ms(each.took_us / 1000)}` });
        piece.style.flexGrow = String(each.took_us);
        row.append(piece);
    }
    return row;
}

/** A row for each part, in order: where it begins, how long it took. */
export function waterfall(parts) {
    const whole = total(parts) || 1;
    const longest = Math.max(...parts.map((each) => each.took_us));
    let begun = 0;
    const rows = parts.map((each) => {
        const took = each.took_us / 1000;
        const piece = h("i", { class: `part part-${each.part}` });
        piece.style.marginLeft = `${(100 * begun) / whole}%`;
        piece.style.width = `max(2px, ${(100 * took) / whole}%)`;
        begun += took;
        const name = h("th", { scope: "row" }, partName(each));
        const line = h("tr", { class: each.took_us === longest ? "longest" : "" }, name);
        line.append(h("td", { class: "lane" }, piece), h("td", { class: "number" }, ms(took)));
        return line;
    });
    const sum = h(
        "tr",
        {},
        h("th", { scope: "row" }, "adds up to"),
        h("td", { class: "muted" }, "accepted → committed"),
        h("td", { class: "number" }, ms(begun)),
    );
    return h("table", { class: "waterfall" }, h("tbody", {}, rows), h("tfoot", {}, sum));
}
