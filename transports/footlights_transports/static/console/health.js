// Health: latencies of the last minutes, models, tools, subscribers that are behind, memory, errors.

import { text } from "./api.js";
import { empty, failure, h } from "./dom.js";
import { bytes, count, ms, words } from "./format.js";
import { labelled, observed, parse, percentile, value } from "./metrics.js";
import { spark } from "./spark.js";
import { state, watch } from "./state.js";

const EVERY = 2_000;
const KEPT = 151;
const WINDOW = 5;
const LATENCIES = [
    ["turn_accept_seconds", "Accept"],
    ["turn_first_token_seconds", "First token"],
    ["turn_cancel_seconds", "Cancel"],
    ["turn_commit_seconds", "Commit"],
    ["event_loop_lag_seconds", "Loop lag"],
];

export function health(main) {
    const readings = [];
    const latencies = h("div", { class: "tiles" });
    const where = h("div", {});
    const gauges = h("dl", { class: "gauges" });
    const models = h("div", {});
    const behind = h("div", {});
    const errors = h("div", {});
    const problem = h("div", {});
    let timer = null;

    async function read() {
        timer = setTimeout(read, EVERY);
        try {
            readings.push(parse(await text("/metrics")));
            if (readings.length > KEPT) readings.shift();
            problem.replaceChildren();
            draw();
        } catch (error) {
            problem.replaceChildren(failure(error));
        }
    }

    function draw() {
        const last = readings.at(-1);
        latencies.replaceChildren(...LATENCIES.map(([name, title]) => tile(readings, name, title)));
        where.replaceChildren(slowParts(last));
        errors.replaceChildren(incidents(last));
        drawState();
    }

    function drawState() {
        const now = state.now;
        const last = readings.at(-1);
        if (!now || !last || !main.isConnected) return;
        gauges.replaceChildren(
            ...gauge("Sessions", value(last, "sessions"), now.limits.max_sessions),
            ...gauge("Open turns", now.open_turns, now.limits.max_open_turns),
            ...gauge("Tools running", value(last, "tools_running"), now.limits.max_running_tools),
            ...gauge("Commits waiting", value(last, "commits_waiting")),
            ...gauge("Subscribers", value(last, "subscribers")),
            ...pair("Memory", bytes(now.memory_bytes)),
            ...pair("Kept for resume", `${bytes(value(last, "bytes_retained"))} of ${bytes(now.limits.replay_bytes)}`),
        );
        models.replaceChildren(modelTable(now.models));
        behind.replaceChildren(behindTable(now.behind));
    }

    main.append(
        h("h1", { class: "hidden" }, "Health"),
        problem,
        card("Latency", latencies, "What the server measured while this screen is open, over at most five minutes. Percentiles within a bucket are estimated."),
        card("Where the time goes", where, "Seconds of all turns since the server began, by owner. They add up."),
        card("Now", gauges),
        card("Models", models),
        card("Subscribers that are behind", behind, "What they missed was declared to them. Nobody waits for them."),
        card("Errors by code", errors),
    );
    const unwatch = watch(drawState);
    read();
    return () => {
        clearTimeout(timer);
        unwatch();
    };
}

function card(title, body, note) {
    return h("section", { class: "card", "aria-label": title }, h("h2", {}, title), note ? h("p", { class: "muted" }, note) : null, body);
}

function tile(readings, name, title) {
    const [first, last] = [readings[0], readings.at(-1)];
    const seen = observed(first, last, name);
    const each = [0.5, 0.95, 0.99].map((share) => percentile(first, last, name, share));
    const line = readings.map((now, index) => percentile(readings[Math.max(0, index - WINDOW)], now, name, 0.99));
    return h(
        "div",
        { class: "tile" },
        h("h3", {}, title),
        h("p", { class: "big" }, ms(each[2]), h("small", {}, ` p99 of ${count(seen)}`)),
        h("p", { class: "muted" }, `p50 ${ms(each[0])} · p95 ${ms(each[1])}`),
        spark(line, `p99 of ${title} over time`),
    );
}

function slowParts(last) {
    const sums = labelled(last, "turn_part_seconds_sum").filter(([, sum]) => sum > 0);
    const whole = sums.reduce((sum, [, each]) => sum + each, 0);
    if (!whole) return empty("No turn yet", "Each turn is divided into parts with owners, when it is settled.");
    const bar = h("div", { class: "bar tall", role: "img", "aria-label": "Time of all turns by part" });
    for (const [part, sum] of sums) {
        const piece = h("i", { class: `part part-${part}`, title: `${words(part)}: ${ms(sum * 1000)}` });
        piece.style.flexGrow = String(sum);
        bar.append(piece);
    }
    const rows = [...sums].sort((a, b) => b[1] - a[1]);
    const list = rows.map(([part, sum]) => h("li", {}, h("i", { class: `part part-${part}` }), `${words(part)} `, h("b", {}, `${((100 * sum) / whole).toFixed(1)} %`), h("span", { class: "muted" }, ` ${ms(sum * 1000)}`)));
    return h("div", {}, bar, h("ul", { class: "shares" }, list));
}

function gauge(label, number, limit) {
    return pair(label, limit ? `${count(number)} of ${count(limit)}` : count(number));
}

function pair(label, shown) {
    return [h("div", {}, h("dt", {}, label), h("dd", {}, shown))];
}

function table(heads, rows) {
    const head = h("tr", {}, heads.map((each) => h("th", { scope: "col", class: each.startsWith(">") ? "number" : "" }, each.replace(">", ""))));
    return h("div", { class: "scroll" }, h("table", {}, h("thead", {}, head), h("tbody", {}, rows)));
}

function modelTable(models) {
    if (!models.length) return empty("No model", "The turns of this cast name workloads.");
    const rows = models.map((each) =>
        h(
            "tr",
            {},
            h("th", { scope: "row" }, each.model_id, each.remote ? h("span", { class: "muted" }, " remote") : null),
            h("td", {}, h("span", { class: `badge ${each.warm_state}` }, each.loading ? "loading" : each.warm_state)),
            h("td", { class: "number" }, each.slots === null ? "no limit" : `${each.rounds_running} of ${each.slots}`),
            h("td", { class: "number" }, count(each.rounds_waiting)),
            h("td", { class: "number" }, count(each.turns)),
        ),
    );
    return table(["model", "state", ">slots", ">waiting", ">turns"], rows);
}

function behindTable(behind) {
    if (!behind.length) return empty("Nobody is behind", "Every subscriber has taken all that there is.");
    const rows = behind.map((each) =>
        h(
            "tr",
            {},
            h("th", { scope: "row" }, `${each.session_id} #${each.subscriber}`),
            h("td", { class: "number" }, `${count(each.waiting)} (${bytes(each.bytes)})`),
            h("td", { class: "number" }, count(each.joined)),
            h("td", { class: "number" }, count(each.dropped + each.bounded_dropped)),
            h("td", {}, each.waiting ? "takes too little" : each.dropped || each.bounded_dropped ? "was behind" : ""),
        ),
    );
    return table(["subscriber", ">waiting", ">joined", ">dropped", "why"], rows);
}

function incidents(last) {
    const rows = labelled(last, "incidents_total").filter(([, number]) => number).sort((a, b) => b[1] - a[1]);
    const failed = labelled(last, "turns_total").filter(([outcome, number]) => number && outcome !== "ok");
    if (!rows.length && !failed.length) return empty("No errors", "Refusals, failures and interrupted turns are counted here.");
    const line = (kind) => ([name, number]) => h("tr", {}, h("th", { scope: "row" }, words(name)), h("td", {}, kind), h("td", { class: "number" }, count(number)));
    return table(["code", "of", ">count"], [...failed.map(line("turns")), ...rows.map(line("clients"))]);
}
