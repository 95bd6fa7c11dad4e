// Turns: what people see beside what became true, and between them the line at commit_final.

import { get } from "./api.js";
import { badge, changeLine } from "./changes.js";
import { button, empty, h } from "./dom.js";
import { count, ms, words } from "./format.js";
import { bar, total } from "./parts.js";
import { state, watch } from "./state.js";
import { showTurn } from "./turn.js";

const SHOWN = 60;
const LINES = 3;
const GLANCE = 1_000;

const records = new Map();
let asked = 0;

/** Records of the newest commits, for the turns that are shown. */
async function remember(settled) {
    const isMissing = settled.some((each) => !records.has(key(each)));
    if (!isMissing || Date.now() - asked < GLANCE) return;
    asked = Date.now();
    const { commits } = await get("/console/commits").catch(() => ({ commits: [] }));
    for (const each of commits) records.set(key(each), each);
    for (const each of [...records.keys()].slice(0, Math.max(0, records.size - 1_000))) records.delete(each);
}

function key({ session_id: session, turn_id: turn }) {
    return `${session} ${turn}`;
}

export function turns(main, query) {
    const rows = h("ol", { class: "rows" });
    const detail = h("section", { class: "card detail", "aria-label": "One turn", hidden: true });
    const filter = h("select", { "aria-label": "Which turns" });
    for (const [value, label] of [["", "all turns"], ["bad", "only what failed"], ["slow", "slowest first"]]) {
        filter.append(h("option", { value }, label));
    }
    const pause = button("Pause", () => {
        isPaused = !isPaused;
        pause.textContent = isPaused ? "Go on" : "Pause";
        pause.setAttribute("aria-pressed", String(isPaused));
        draw();
    });
    const drawn = new Map();
    let isPaused = false;

    function draw() {
        if (isPaused || !state.now) return;
        const settled = chosen(filter.value).slice(0, SHOWN);
        remember(settled);
        const open = filter.value ? [] : state.now.turns.slice(0, SHOWN);
        const widest = Math.max(1, ...[...open, ...settled].map((each) => total(each.parts)));
        const shown = [...open, ...settled].map((each) => [key(each), place(each, widest)]);
        for (const each of [...drawn.keys()]) if (!shown.some(([name]) => name === each)) drawn.delete(each);
        const lines = shown.map(([, line]) => line);
        if (!lines.length) lines.push(h("li", {}, empty("No turn since this page was opened", "Turns appear here while they happen.")));
        if (lines.length !== rows.children.length || lines.some((each, index) => rows.children[index] !== each)) {
            rows.replaceChildren(...lines);
        }
    }

    /** The row of a turn. It stays the same element, so that it can be clicked and keeps the focus. */
    function place(turn, widest) {
        const line = drawn.get(key(turn)) ?? row(turn, open_);
        const seen = `${turn.state} ${total(turn.parts)} ${widest} ${records.has(key(turn))}`;
        if (line.dataset.seen !== seen) update(line, turn, widest);
        line.dataset.seen = seen;
        drawn.set(key(turn), line);
        return line;
    }

    function open_(sessionId, turnId) {
        history.replaceState(null, "", `#turns?session=${encodeURIComponent(sessionId)}&turn=${encodeURIComponent(turnId)}`);
        detail.hidden = false;
        showTurn(detail, sessionId, turnId, close);
        detail.scrollIntoView({ block: "nearest" });
    }

    function close() {
        detail.hidden = true;
        history.replaceState(null, "", "#turns");
    }

    filter.addEventListener("change", draw);
    main.append(
        h("div", { class: "toolbar" }, h("h1", {}, "Turns"), filter, pause),
        detail,
        h(
            "section",
            { class: "card planes", "aria-label": "Turns" },
            h("div", { class: "plane-heads" }, h("h2", { class: "seen" }, "What people see"), h("h2", { class: "true" }, "What became true")),
            rows,
            h("p", { class: "legend" }, legend()),
        ),
    );
    const unwatch = watch(draw);
    draw();
    if (query.get("turn")) open_(query.get("session"), query.get("turn"));
    return unwatch;
}

function chosen(filter) {
    if (filter === "bad") return state.settled.filter((each) => each.commit_outcome !== "ok");
    if (filter === "slow") return [...state.settled].sort((a, b) => total(b.parts) - total(a.parts));
    return state.settled;
}

function row(turn, open) {
    const left = h(
        "button",
        { type: "button", class: "span", onclick: () => open(turn.session_id, turn.turn_id) },
        h("span", { class: "who" }, h("b", {}, turn.turn_id), " ", h("span", { class: "muted" }, turn.session_id)),
        h("span", { class: "track" }),
        h("span", { class: "number" }),
    );
    return h("li", {}, left, h("div", { class: "outcome" }));
}

function update(line, turn, widest) {
    const took = ms(total(turn.parts));
    line.className = turn.state ? "live" : "";
    line.querySelector(".track").replaceChildren(bar(turn.parts, widest));
    line.querySelector(".number").textContent = turn.state ? `${words(turn.state)} · ${took}` : took;
    const right = turn.state ? [h("span", { class: "muted" }, "not yet true")] : decided(turn).filter(Boolean);
    line.querySelector(".outcome").replaceChildren(...right);
}

function decided(turn) {
    const record = records.get(key(turn));
    const refused = (record?.verdicts ?? []).filter((each) => each.codes.length);
    const rules = refused.map((each) => `rule ${each.rule}: ${each.codes.map(words).join(", ")}`).join("; ");
    const why = rules || turn.issues.map((each) => each.message || words(each.code)).join(" ");
    const changes = (record?.changes ?? []).filter((each) => each.op !== "test");
    const missed = turn.subscribers.reduce((sum, each) => sum + each.dropped + each.bounded_dropped, 0);
    return [
        badge(turn.commit_outcome),
        " ",
        h("span", { class: "why" }, why || (record && !changes.length ? "nothing changed" : "")),
        changes.length ? h("ul", { class: "changes" }, changes.slice(0, LINES).map((each) => changeLine(each, 48))) : null,
        changes.length > LINES ? h("span", { class: "muted" }, `and ${count(changes.length - LINES)} more`) : null,
        missed ? h("span", { class: "muted" }, ` · ${count(missed)} events missed in its session, declared`) : null,
    ];
}

function legend() {
    const owners = { queue: "waits", load: "model loads", first_token: "model thinks", speaking: "speaks", tool: "tool", judge: "judged", write: "written" };
    return Object.entries(owners).map(([part, label]) => h("span", {}, h("i", { class: `part part-${part}` }), label));
}
