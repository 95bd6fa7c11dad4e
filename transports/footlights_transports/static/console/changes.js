// Changes of the world, and the decision of a commit.

import { h } from "./dom.js";
import { short, words } from "./format.js";

/** A list of JSON Patch operations; with `was`, the value before. */
export function changeList(changes) {
    const rows = changes.filter((each) => each.op !== "test").map((each) => changeLine(each));
    return rows.length ? h("ul", { class: "changes" }, rows) : h("p", { class: "muted" }, "Nothing changed.");
}

export function changeLine({ op, path, value, was, from }, limit = 120) {
    const place = h("a", { href: `#world?path=${encodeURIComponent(path)}`, class: "path" }, path || "(all)");
    const row = h("li", { class: `op-${op}` }, h("span", { class: "op" }, { add: "+", remove: "−", replace: "~" }[op] ?? op));
    row.append(place);
    if (was !== undefined) row.append(h("del", {}, short(was, limit)));
    if (value !== undefined) row.append(h("ins", {}, short(value, limit)));
    if (from !== undefined) row.append(h("span", { class: "muted" }, `from ${from}`));
    return row;
}

/** What decided: the outcome, the rules that refused, why. */
export function verdict({ outcome, issues = [], verdicts = [] }) {
    const refused = verdicts.filter((each) => each.codes.length);
    const lines = [
        ...refused.map((each) => `refused by the rule ${each.rule}: ${each.codes.map(words).join(", ")}`),
        ...issues.map((each) => each.message || words(each.code)),
    ];
    if (outcome === "ok" && verdicts.length) lines.push(`accepted by ${verdicts.map((each) => each.rule).join(", ")}`);
    return h("div", {}, badge(outcome), h("ul", { class: "reasons" }, [...new Set(lines)].map((each) => h("li", {}, each))));
}

export function badge(outcome) {
    return h("span", { class: `badge ${outcome === "ok" ? "true" : "bad"}` }, outcome === "ok" ? "✓ ok" : `✗ ${words(outcome)}`);
}
