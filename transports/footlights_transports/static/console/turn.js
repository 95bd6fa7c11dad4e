// One turn: where its time went, what was decided, every event, and what each subscriber got.

import { get } from "./api.js";
import { changeList, verdict } from "./changes.js";
import { button, failure, h, said } from "./dom.js";
import { count, ms, short, words } from "./format.js";
import { waterfall } from "./parts.js";
import { state } from "./state.js";

const AGAIN = 700;

export async function showTurn(place, sessionId, turnId, close) {
    const head = h("div", { class: "toolbar" }, h("h2", {}, turnId, " ", h("span", { class: "muted" }, sessionId)), button("Close", close));
    const body = h("div", { class: "detail-body" }, h("p", { class: "muted" }, "Loading …"));
    place.replaceChildren(head, body);
    place.dataset.turn = `${sessionId} ${turnId}`;
    try {
        const path = `/console/turns/${encodeURIComponent(sessionId)}/${encodeURIComponent(turnId)}`;
        const turn = await get(path);
        if (place.dataset.turn !== `${sessionId} ${turnId}`) return;
        body.replaceChildren(...sections(sessionId, turnId, turn));
        if (!turn.record && turn.events.length) setTimeout(() => again(place, sessionId, turnId, close), AGAIN);
    } catch (error) {
        body.replaceChildren(failure(error));
    }
}

function again(place, sessionId, turnId, close) {
    const isShown = place.isConnected && !place.hidden && place.dataset.turn === `${sessionId} ${turnId}`;
    if (isShown) showTurn(place, sessionId, turnId, close);
}

function sections(sessionId, turnId, { own, events, summary, record }) {
    const settled = state.settled.find((each) => each.turn_id === turnId && each.session_id === sessionId);
    return [
        h("section", { class: "tall" }, h("h3", {}, "Where the time went"), time(summary, record)),
        h("section", {}, h("h3", {}, "What became true"), truth(record)),
        h("section", {}, h("h3", {}, "Who got what"), subscribers(settled)),
        h(
            "section",
            { class: "wide" },
            h("h3", {}, "Every event"),
            own ? null : h("p", { class: "muted" }, "The session is another user's: its words are dots."),
            eventTable(events),
        ),
    ];
}

function time(summary, record) {
    if (summary) return waterfall(summary.parts);
    return h("p", { class: "muted" }, record ? "The turn is no longer in memory: the ledger keeps its commit, and not its time." : "The turn is not settled yet.");
}

function truth(record) {
    if (!record) return h("p", { class: "muted" }, "Nothing yet. What people see of it is not binding.");
    const chain = h("p", { class: "muted" }, h("code", {}, record.commit_id), record.previous ? ` after ${record.previous.slice(0, 12)}…` : " the session's first");
    const asked = record.intents.map((each) => h("li", {}, `${words(each.type)}: ${each.ref}`));
    return h("div", {}, verdict(record), changeList(record.changes), asked.length ? h("details", {}, h("summary", {}, "asked for"), h("ul", {}, asked)) : null, chain);
}

function subscribers(settled) {
    if (!settled) return h("p", { class: "muted" }, "Recorded only for turns that settle while this page is open.");
    if (!settled.subscribers.length) return h("p", { class: "muted" }, "Nobody followed the session when the turn settled.");
    const heads = ["", "not taken yet", "joined", "dropped", "bounded dropped"].map((each) => h("th", { scope: "col" }, each));
    const rows = settled.subscribers.map((each, index) =>
        h("tr", {}, h("th", { scope: "row" }, `subscriber ${index + 1}`), ...["waiting", "joined", "dropped", "bounded_dropped"].map((name) => h("td", { class: "number" }, count(each[name])))),
    );
    return h(
        "div",
        {},
        h("div", { class: "scroll" }, h("table", {}, h("thead", {}, h("tr", {}, heads)), h("tbody", {}, rows))),
        h("p", { class: "muted" }, "Counted since each subscriber came, up to the commit. A joined token lost no text; every gap was declared."),
    );
}

function eventTable(events) {
    if (!events.length) return h("p", { class: "muted" }, "The events are no longer in memory.");
    const began = events[0].mono_ts_ms;
    const rows = events.map((each) =>
        h(
            "tr",
            {},
            h("td", { class: "number" }, count(each.seq)),
            h("td", { class: "number" }, ms(each.mono_ts_ms - began)),
            h("td", {}, words(each.event_type)),
            h("td", { class: "payload" }, said(short(each.payload, 240))),
        ),
    );
    const heads = ["seq", "after", "event", "payload"].map((each) => h("th", { scope: "col" }, each));
    return h("div", { class: "scroll", tabIndex: 0, role: "region", "aria-label": "Events" }, h("table", { class: "events" }, h("thead", {}, h("tr", {}, heads)), h("tbody", {}, rows)));
}
