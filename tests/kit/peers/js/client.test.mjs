// The client against a server that breaks its promises, its connections, or both.
import assert from "node:assert/strict";
import { test } from "node:test";

import * as footlights from "../../../../transports/footlights_transports/static/footlights.js";
import { FakeClock, FakeServer, event, turn } from "./fake_server.mjs";

const { ALL_SEEN, ConnectionLost, FootlightsError, LawBroken, connect } = footlights;

const coded = (code) => (error) => error instanceof FootlightsError && error.code === code;

/** A client, and the server's end of its first connection. */
async function met(options = {}) {
    const server = new FakeServer();
    const clock = new FakeClock();
    const opening = connect("ws://here", { WebSocket: server.WebSocket, backoff: () => 0, timers: clock, ...options });
    const line = await server.line();
    return { server, clock, line, client: await opening };
}

/** The same, with a stream of the session "s". */
async function followed(options = {}, how = {}) {
    const { server, clock, line, client } = await met(options);
    const session = client.session("s");
    const subscribing = session.subscribe(how);
    const asked = await line.done("subscribe");
    return { server, clock, line, client, session, asked, stream: await subscribing };
}

async function take(stream, count) {
    const events = [];
    while (events.length < count) {
        const { done, value } = await stream.next();
        assert.equal(done, false);
        events.push(value);
    }
    return events;
}

/** A `backoff` that never waits, and remembers what it was asked. */
function remembered(pauses) {
    return (attempt) => (pauses.push(attempt), 0);
}

/** Once the timers that were set so far have fired. */
const timersFired = () => new Promise((resolve) => setTimeout(resolve, 1));

const seqs = (events) => events.map(({ turn_id, seq }) => `${turn_id}:${seq}`);

// -- to connect

test("the public names are these", () => {
    assert.deepEqual(Object.keys(footlights).sort(), [
        "ALL_SEEN",
        "ConnectionLost",
        "FootlightsError",
        "LawBroken",
        "connect",
    ]);
});

test("a url needs no path, and says whether batches are wanted", async () => {
    const { line } = await met();
    assert.equal(line.url, "ws://here/v1");
    assert.deepEqual(line.offered, ["footlights.v1"]);
    const { line: other } = await met({ batch: true, token: "a-token" });
    assert.equal(other.url, "ws://here/v1?batch=1");
    assert.deepEqual(other.offered, ["footlights.v1", "bearer.a-token"]);
});

test("a path that is named is kept", async () => {
    const server = new FakeServer();
    const opening = connect("wss://here/game/v1", { WebSocket: server.WebSocket });
    assert.equal((await server.line()).url, "wss://here/game/v1");
    await (await opening).close();
});

test("a token that cannot be carried is refused, and not quoted", async () => {
    const server = new FakeServer();
    await assert.rejects(
        connect("ws://here", { WebSocket: server.WebSocket, token: "a secret" }),
        (error) => error.code === "invalid_command" && !error.message.includes("secret"),
    );
});

test("where there is no WebSocket, one is asked for", async () => {
    await assert.rejects(connect("ws://here", { WebSocket: null }), coded("invalid_command"));
});

test("a first connection that fails is not tried again", async () => {
    const server = new FakeServer();
    server.plan = ["refused"];
    await assert.rejects(connect("ws://here", { WebSocket: server.WebSocket }), ConnectionLost);
});

test("a server that speaks something else is left", async () => {
    const server = new FakeServer();
    server.plan = ["footlights.v9"];
    await assert.rejects(connect("ws://here", { WebSocket: server.WebSocket }), coded("unsupported_version"));
    assert.equal((await server.line()).wasLeft, true);
});

// -- the laws

const UNLAWFUL = {
    accepted_first: [event("token_delta", 0)],
    accepted_once: [event("turn_accepted", 0), event("turn_accepted", 1)],
    seq_first: [event("token_delta", 3)],
    seq_increasing: [event("turn_accepted", 0), event("token_delta", 1), event("token_delta", 1)],
    seq_gap: [event("turn_accepted", 0), event("token_delta", 3, { gap: [1, 1] })],
    range_exact: [event("turn_accepted", 0), event("token_delta", 1, { gap: [0, 0] })],
    range_must_deliver: [event("turn_accepted", 0), event("turn_final", 1), event("commit_final", 4, { gap: [2, 3] })],
    one_terminal: [event("turn_accepted", 0), event("turn_final", 1), event("turn_final", 2)],
    terminal_silence: [event("turn_accepted", 0), event("turn_final", 1), event("token_delta", 2)],
    commit_silence: [...turn("t"), event("token_delta", 4)],
    envelope: [event("turn_accepted", 0), event("token_delta", "1")],
};

const ALSO_UNLAWFUL = [
    ["one_terminal", [event("turn_accepted", 0), event("commit_final", 1)]],
    ["accepted_once", [event("turn_accepted", 0), event("turn_final", 1), event("turn_accepted", 2)]],
    ["seq_gap", [event("turn_accepted", 0), event("token_delta", 5)]],
    ["seq_gap", [event("turn_accepted", 0), event("token_delta", 5, { gap: [2, 4] })]],
    ["range_exact", [event("turn_accepted", 0), event("token_delta", 5, { gap: [1, 5] })]],
    ["range_exact", [event("turn_accepted", 0), event("token_delta", 5, { gap: [3, 2] })]],
    ["seq_gap", [event("turn_accepted", 0), event("turn_interrupted", 1_000_000_000)]],
    ["one_terminal", [event("turn_accepted", 0), event("commit_final", ALL_SEEN, { gap: [1, 1_000_000_000] })]],
    ["one_terminal", [event("commit_final", ALL_SEEN, { gap: [0, 1_000_000_000] })]],
    [
        "one_terminal",
        [
            event("turn_accepted", 0),
            event("turn_final", 1),
            event("turn_final", 1_000_000_000, { gap: [2, 999_999_999] }),
        ],
    ],
    ["envelope", [event("turn_accepted", 0), withRanges(event("token_delta", 1), 5)]],
    ["envelope", [event("turn_accepted", 0), withRanges(event("token_delta", 1), [null])]],
    ["envelope", [event("turn_accepted", 0), withRanges(event("token_delta", 5), [{}])]],
    ["envelope", [event("turn_accepted", 0), withRanges(event("token_delta", 5), [{ start_seq: 1 }])]],
    ["envelope", [event("turn_accepted", 0), withRanges(event("token_delta", 5), [{ end_seq: 4 }])]],
];

function withRanges(it, ranges) {
    return { ...it, payload: { ...it.payload, dropped_seq_ranges: ranges } };
}

for (const [law, events] of [...Object.entries(UNLAWFUL), ...ALSO_UNLAWFUL]) {
    test(`what breaks ${law} is not handed on: ${seqs(events)}`, async () => {
        const { line, stream } = await followed();
        for (const each of events) line.send(each);
        await take(stream, events.length - 1);
        await assert.rejects(
            stream.next(),
            (error) => error instanceof LawBroken && error.code === "law_broken" && error.law === law,
        );
        await assert.rejects(stream.next(), LawBroken);
    });
}

test("declared gaps are lawful, and can be seen", async () => {
    const { line, stream } = await followed();
    const events = [event("turn_accepted", 0), event("token_delta", 4, { gap: [1, 3] }), event("turn_final", 5)];
    for (const each of events) line.send(each);
    assert.deepEqual(await take(stream, 3), events);
    assert.deepEqual(stream.cursor, { t: 5 });
    assert.deepEqual(stream.terminalSeen, ["t"]);
});

test("after a restart the end of a turn may come from far above", async () => {
    for (const after of [null, { t: 3 }, { t: -1 }]) {
        const { line, stream } = await followed({}, { after });
        const gap = [(after?.t ?? -1) + 1, 999_999_999];
        line.send(event("turn_interrupted", 1_000_000_000, { gap }));
        line.send(event("commit_final", ALL_SEEN));
        await take(stream, 2);
        assert.deepEqual(stream.cursor, { t: ALL_SEEN });
    }
});

test("an end that only the ledger knows says that the words are forgotten", async () => {
    const { line, stream } = await followed();
    line.send(event("turn_accepted", 0));
    line.send(event("token_delta", 1));
    const forgotten = event("turn_final", 1_000_000_000, { gap: [2, 999_999_999] });
    Object.assign(forgotten.payload, { text: "", text_forgotten: true });
    line.send(forgotten);
    assert.deepEqual((await take(stream, 3))[2], forgotten);
    assert.deepEqual([stream.cursor, stream.terminalSeen], [{ t: 1_000_000_000 }, ["t"]]);
    line.send(event("commit_final", ALL_SEEN));
    await take(stream, 1);
    assert.deepEqual([stream.cursor, stream.terminalSeen], [{ t: ALL_SEEN }, []]);
});

test("who had seen the end of a turn is not told it again", async () => {
    const { line, stream, asked } = await followed({}, { after: { t: 3 }, terminalSeen: ["t"] });
    assert.deepEqual([asked.after, asked.terminal_seen], [{ t: 3 }, ["t"]]);
    line.send(event("turn_interrupted", 1_000_000_000, { gap: [4, 999_999_999] }));
    await assert.rejects(stream.next(), (error) => error.law === "one_terminal" && error.turnId === "t");
});

test("an event of a session without a stream is ignored", async () => {
    const { line, stream } = await followed();
    line.send(event("turn_accepted", 0, { session_id: "another" }));
    line.send({ notice: "ended", session_id: "another" });
    line.send({ something: "of a later version" });
    line.send({ reply: 99, ok: true, result: {} });
    line.send([event("turn_accepted", 0), event("token_delta", 1)]);
    line.sendRaw(new TextEncoder().encode(JSON.stringify(event("token_delta", 2))).buffer);
    assert.deepEqual(seqs(await take(stream, 3)), ["t:0", "t:1", "t:2"]);
});

// -- streams

test("a stream ends when the session did, after everything was taken", async () => {
    const { line, stream } = await followed();
    for (const each of turn("t")) line.send(each);
    line.send({ notice: "ended", session_id: "s" });
    const events = [];
    for await (const each of stream) events.push(each);
    assert.equal(events.length, 4);
    assert.deepEqual(await stream.next(), { done: true, value: undefined });
});

test("events go to those who wait, in order", async () => {
    const { line, stream } = await followed();
    const both = Promise.all([stream.next(), stream.next()]);
    for (const each of turn("t").slice(0, 2)) line.send(each);
    assert.deepEqual((await both).map(({ value }) => value.seq), [0, 1]);
});

test("until a commit, and no further", async () => {
    const { line, stream } = await followed();
    for (const each of [...turn("t"), ...turn("u")]) line.send(each);
    const events = [];
    for await (const each of stream.untilCommit("t")) events.push(each);
    for await (const each of stream.untilCommit("t")) events.push(each);
    assert.deepEqual(seqs(events), ["t:0", "t:1", "t:2", "t:3"]);
    assert.deepEqual(stream.cursor, { t: ALL_SEEN });
    line.send({ notice: "ended", session_id: "s" });
    for await (const each of stream) events.push(each);
    assert.equal(events.length, 8);
});

test("until the commit of an unknown turn is refused", async () => {
    const { line, stream } = await followed();
    for (const each of [...turn("t"), turn("u")[0]]) line.send(each);
    await assert.rejects(stream.untilCommit("never").next(), coded("unknown_turn"));
    assert.equal((await stream.untilCommit("u").next()).value.turn_id, "t");
});

test("until the commit of a turn of a cursor, or of one that was begun here before the stream", async () => {
    const { line, client } = await met();
    const session = client.session("s");
    const beginning = session.beginTurn("Hello?");
    await line.done("begin_turn", { turn_id: "t" });
    await beginning;
    const subscribing = session.subscribe({ after: { u: 3 } });
    await line.done("subscribe");
    const stream = await subscribing;
    line.send(event("turn_final", 1_000_000_000, { turn_id: "u", gap: [4, 999_999_999] }));
    line.send(event("commit_final", ALL_SEEN, { turn_id: "u" }));
    for (const each of turn("t")) line.send(each);
    const events = [];
    for await (const each of stream.untilCommit("u")) events.push(each);
    for await (const each of stream.untilCommit("t")) events.push(each);
    assert.deepEqual(seqs(events), ["u:1000000000", `u:${ALL_SEEN}`, "t:0", "t:1", "t:2", "t:3"]);
});

test("a turn that was begun here and committed long ago is not waited for", async () => {
    const { line, session, stream } = await followed({ maxWaiting: 10_000 });
    const beginning = session.beginTurn("Hello?");
    for (const each of turn("first")) line.send(each);
    await line.done("begin_turn", { turn_id: "first" });
    await beginning;
    for await (const each of stream.untilCommit("first")) assert.equal(each.turn_id, "first");
    for await (const each of stream.untilCommit("first")) assert.fail(each.event_type);
    for (let number = 0; number < 1_024; number++) for (const each of turn(`u${number}`)) line.send(each);
    await take(stream, 4_096);
    await assert.rejects(stream.untilCommit("first").next(), coded("unknown_turn"));
});

test("of the turns that were begun here, the oldest are forgotten", async () => {
    const { line, client } = await met();
    const session = client.session("s");
    for (let number = 0; number < 1_025; number++) {
        const beginning = session.beginTurn("Hello?");
        await line.done("begin_turn", { turn_id: `t${number}` });
        await beginning;
    }
    const subscribing = session.subscribe();
    await line.done("subscribe");
    const stream = await subscribing;
    await assert.rejects(stream.untilCommit("t0").next(), coded("unknown_turn"));
    line.send({ notice: "ended", session_id: "s" });
    assert.equal((await stream.untilCommit("t1").next()).done, true);
});

test("one client follows a session once", async () => {
    const { session } = await followed();
    await assert.rejects(session.subscribe(), coded("invalid_command"));
});

test("a first subscription that is refused fails, and can be tried again", async () => {
    const { line, client } = await met();
    const session = client.session("s");
    for (const code of ["unknown_session", "internal", "session_closed"]) {
        const subscribing = session.subscribe();
        await line.refuse("subscribe", code);
        await assert.rejects(subscribing, coded(code));
    }
});

test("who left a stream gets a new one on a new connection", async () => {
    const { server, line, session, stream } = await followed();
    line.send(event("turn_accepted", 0));
    for await (const each of stream) {
        assert.equal(each.seq, 0);
        break;
    }
    line.send(event("token_delta", 1));
    assert.equal((await stream.next()).done, true);
    const subscribing = session.subscribe({ after: stream.cursor, terminalSeen: stream.terminalSeen });
    const next = await server.line();
    assert.equal(line.wasLeft, true);
    assert.deepEqual((await next.done("subscribe")).after, { t: 0 });
    next.send(event("token_delta", 1));
    assert.deepEqual(seqs(await take(await subscribing, 1)), ["t:1"]);
});

test("the oldest of the turns that were taken whole are forgotten", async () => {
    const { server, line, stream } = await followed({ maxWaiting: 10_000 });
    const ids = Array.from({ length: 1_030 }, (_, number) => `t${number}`);
    for (const id of ids) for (const each of turn(id)) line.send(each);
    await take(stream, 4_120);
    line.drop();
    const { after } = await (await server.line()).command("subscribe");
    assert.deepEqual(Object.keys(after), ids.slice(-1_024));
});

test("a turn that the server and the client both name is remembered once", async () => {
    const { line, client } = await met({ maxWaiting: 10_000 });
    const subscribing = client.session("s").subscribe({ after: { old: ALL_SEEN } });
    await line.done("subscribe", { cursor: { old: ALL_SEEN } });
    const stream = await subscribing;
    for (let number = 0; number < 1_023; number++) for (const each of turn(`t${number}`)) line.send(each);
    await take(stream, 4_092);
    assert.equal(stream.cursor.old, ALL_SEEN);
});

test("what was received and not taken is still there after a resume", async () => {
    const { server, line, stream } = await followed();
    for (const each of turn("t")) line.send(each);
    line.drop();
    const next = await server.line();
    await next.done("subscribe", { cursor: { t: ALL_SEEN } });
    next.send(turn("u")[0]);
    assert.deepEqual(seqs(await take(stream, 5)), ["t:0", "t:1", "t:2", "t:3", "u:0"]);
});

test("events that wait in a closed stream are discarded", async () => {
    const { line, stream } = await followed();
    for (const each of turn("t")) line.send(each);
    await stream.return();
    assert.equal((await stream.next()).done, true);
});

test("what ended before a stream began is not asked for later", async () => {
    const { server, line, client } = await met();
    const subscribing = client.session("s").subscribe();
    await line.done("subscribe", { cursor: { old: ALL_SEEN, open: -1 } });
    const stream = await subscribing;
    for await (const each of stream.untilCommit("old")) assert.fail(each.event_type);
    line.drop();
    const next = await server.line();
    const { after } = await next.done("subscribe", { cursor: { old: ALL_SEEN, other: ALL_SEEN } });
    assert.deepEqual(after, { old: ALL_SEEN, open: -1 });
    next.drop();
    assert.deepEqual((await (await server.line()).done("subscribe")).after, { ...after, other: ALL_SEEN });
});

test("a turn that is due is kept in the cursor, and never placed over what is known", async () => {
    const { server, line, client } = await met();
    const subscribing = client.session("s").subscribe({ after: { known: 3 } });
    await line.done("subscribe", { cursor: { known: -1, due: -1 } });
    const stream = await subscribing;
    assert.deepEqual(stream.cursor, { known: 3, due: -1 });
    line.send(event("token_delta", 4, { turn_id: "known" }));
    line.drop();
    const next = await server.line();
    const asked = await next.done("subscribe", { cursor: { known: -1, due: ALL_SEEN, another: -1 } });
    assert.deepEqual(asked.after, { known: 4, due: -1 });
    assert.deepEqual(stream.cursor, { known: 3, due: -1, another: -1 });
    next.send(event("turn_interrupted", 1_000_000_000, { turn_id: "due", gap: [0, 999_999_999] }));
    next.send(event("commit_final", ALL_SEEN, { turn_id: "due" }));
    await take(stream, 3);
    assert.deepEqual(stream.cursor, { known: 4, due: ALL_SEEN, another: -1 });
});

test("a turn that is due can be waited for, and is missed when the session is gone", async () => {
    const { server, line, client } = await met();
    const subscribing = client.session("s").subscribe({ after: {} });
    await line.done("subscribe", { cursor: { due: -1 } });
    const stream = await subscribing;
    const waiting = stream.untilCommit("due").next();
    line.drop();
    await (await server.line()).refuse("subscribe", "unknown_session");
    await assert.rejects(waiting, coded("unknown_session"));
    assert.deepEqual(stream.cursor, { due: -1 });
});

test("a cursor that names a turn which never was is a cursor", async () => {
    const { server, line, client } = await met();
    const subscribing = client.session("s").subscribe();
    await line.done("subscribe", { cursor: { "t1-000000": ALL_SEEN } });
    const stream = await subscribing;
    line.drop();
    const next = await server.line();
    assert.deepEqual((await next.done("subscribe")).after, { "t1-000000": ALL_SEEN });
    const [one, other] = [{ turn_id: "t1-000001" }, { turn_id: "t1-000002" }];
    next.send(event("turn_final", 1_000_000_000, { ...one, gap: [0, 999_999_999] }));
    next.send(event("commit_final", ALL_SEEN, one));
    next.send(event("turn_interrupted", 1_000_000_000, { ...other, gap: [0, 999_999_999] }));
    next.send(event("commit_final", ALL_SEEN, other));
    await take(stream, 4);
    const cursor = { "t1-000000": ALL_SEEN, "t1-000001": ALL_SEEN, "t1-000002": ALL_SEEN };
    assert.deepEqual(stream.cursor, cursor);
});

test("the end of a turn that was never seen declares all that came before it", async () => {
    const { line, stream } = await followed();
    line.send(event("turn_final", 1_000_000_000, { gap: [1, 999_999_999] }));
    await assert.rejects(stream.next(), (error) => error.law === "seq_gap");
});

for (const [latest, others] of [
    ["t2-000001", (number) => `t1-${String(number).padStart(6, "0")}`],
    ["t1-1000000", (number) => `t1-${String(990_000 + number)}`],
    ["t10-000001", (number) => `t9-${String(number).padStart(6, "0")}`],
]) {
    test(`the latest turn is never forgotten: ${latest}`, async () => {
        const { line, stream } = await followed({ maxWaiting: 10_000 });
        const ids = Array.from({ length: 1_030 }, (_, number) => others(number + 1));
        for (const id of [latest, ...ids]) for (const each of turn(id)) line.send(each);
        await take(stream, 4_124);
        assert.deepEqual(Object.keys(stream.cursor), [latest, ...ids.slice(-1_023)]);
    });
}

// -- a slow consumer

test("a consumer that is too slow is let go and comes back, without a gap or a repeat", async () => {
    const pauses = [];
    const { server, line, stream } = await followed({ maxWaiting: 2, backoff: remembered(pauses) });
    for (const each of turn("t")) line.send(each);
    const next = await server.line();
    assert.equal(line.wasLeft, true);
    assert.deepEqual(pauses, []);
    assert.equal(next.waiting, 0);
    assert.deepEqual(seqs(await take(stream, 2)), ["t:0", "t:1"]);
    assert.deepEqual((await next.done("subscribe")).after, { t: 1 });
    for (const each of turn("t").slice(2)) next.send(each);
    assert.deepEqual(seqs(await take(stream, 2)), ["t:2", "t:3"]);
});

test("one that catches up before the new connection is there comes back too", async () => {
    const { server, line, session, stream } = await followed({ maxWaiting: 1 });
    const beginning = session.beginTurn("Hello?");
    const { id } = await line.command("begin_turn");
    for (const each of turn("t").slice(0, 2)) line.send(each);
    assert.deepEqual(seqs(await take(stream, 1)), ["t:0"]);
    assert.equal(line.wasLeft, false, "a reply is missing that cannot be asked for again");
    const waiting = session.cancel();
    line.send(event("token_delta", 2));
    line.send({ reply: id, ok: true, result: { turn_id: "t" } });
    assert.equal(await beginning, "t");
    const next = await server.line();
    assert.deepEqual((await next.done("subscribe")).after, { t: 0 });
    await next.done("cancel", { canceled: ["t"] });
    assert.deepEqual(await waiting, ["t"]);
    next.send(event("token_delta", 2, { gap: [1, 1] }));
    assert.deepEqual(seqs(await take(stream, 1)), ["t:2"]);
    assert.equal(next.wasLeft, false);
});

test("the other streams of the connection go on", async () => {
    const { server, line, client, stream } = await followed({ maxWaiting: 2 });
    const subscribing = client.session("quick").subscribe();
    await line.done("subscribe");
    const quick = await subscribing;
    line.send(event("turn_accepted", 0, { session_id: "quick" }));
    await take(quick, 1);
    for (const each of turn("t")) line.send(each);
    const next = await server.line();
    assert.deepEqual((await next.done("subscribe")).session_id, "quick");
    next.send(event("token_delta", 1, { session_id: "quick" }));
    assert.equal((await take(quick, 1))[0].seq, 1);
    assert.equal((await take(stream, 2)).length, 2);
    assert.deepEqual((await next.done("subscribe")).session_id, "s");
});

// -- connections that break

test("a stream goes on where it was", async () => {
    const { server, line, stream, asked } = await followed();
    assert.equal("after" in asked, false);
    for (const each of [...turn("t"), ...turn("u").slice(0, 3), turn("v")[0]]) line.send(each);
    line.drop();
    const next = await server.line();
    const { after, terminal_seen } = await next.done("subscribe");
    assert.deepEqual([after, terminal_seen], [{ t: ALL_SEEN, u: 2, v: 0 }, ["u"]]);
    next.send(turn("u")[3]);
    assert.deepEqual(seqs((await take(stream, 9)).slice(-1)), ["u:3"]);
});

test("a stream that got nothing yet asks for everything that came since", async () => {
    const { server, line, session } = await followed();
    const beginning = session.beginTurn("Hello?");
    await line.done("begin_turn", { turn_id: "t" });
    await beginning;
    line.drop();
    assert.deepEqual((await (await server.line()).done("subscribe")).after, { t: -1 });
});

test("the cursor names a turn that was begun here and of which nothing was taken", async () => {
    const { line, session, stream } = await followed();
    const beginning = session.beginTurn("Hello?");
    await line.done("begin_turn", { turn_id: "t" });
    await beginning;
    assert.deepEqual(stream.cursor, { t: -1 });
    for (const each of [...turn("t"), ...turn("u")]) line.send(each);
    assert.deepEqual(stream.cursor, { t: -1 });
    await take(stream, 5);
    assert.deepEqual(stream.cursor, { t: ALL_SEEN, u: 0 });
    const late = session.beginTurn("And now?");
    await line.done("begin_turn", { turn_id: "t" });
    await late;
    assert.deepEqual(stream.cursor, { t: ALL_SEEN, u: 0 });
});

test("a turn that was begun while the server had not answered yet is where the server says", async () => {
    const { line, client } = await met();
    const session = client.session("s");
    const beginnings = ["old", "open", "untold"].map((each) => session.beginTurn(each));
    const subscribing = session.subscribe();
    for (const turn_id of ["old", "open", "untold"]) await line.done("begin_turn", { turn_id });
    await Promise.all(beginnings);
    await line.done("subscribe", { cursor: { old: ALL_SEEN, open: -1 } });
    const stream = await subscribing;
    for await (const each of stream.untilCommit("old")) assert.fail(each.event_type);
    assert.deepEqual(stream.cursor, { old: ALL_SEEN, open: -1, untold: -1 });
});

test("a repeat after a resume is found", async () => {
    const { server, line, stream } = await followed();
    line.send(event("turn_accepted", 0));
    line.drop();
    const next = await server.line();
    await next.done("subscribe");
    next.send(event("turn_accepted", 0));
    await take(stream, 1);
    await assert.rejects(stream.next(), (error) => error.law === "seq_increasing");
});

test("a server that sends no JSON is left, and the client reconnects", async () => {
    const { server, line } = await followed();
    line.sendRaw("Hello.");
    await (await server.line()).done("subscribe");
    assert.equal(line.wasLeft, true);
});

for (const frame of [null, 5, "x", true, [null], [event("turn_accepted", 0), 5], [[]]]) {
    test(`so is a server that sends JSON that is no message: ${JSON.stringify(frame).slice(0, 20)}`, async () => {
        const { server, line, stream } = await followed();
        line.send(frame);
        assert.equal(line.wasLeft, true);
        const next = await server.line();
        assert.deepEqual((await next.done("subscribe")).after, {});
        next.send(event("turn_accepted", 0));
        await take(stream, 1);
    });
}

for (const answer of [
    { ok: false },
    { ok: false, error: null },
    { ok: false, error: "busy" },
    { ok: false, error: { message: "No." } },
    { ok: true },
    { ok: true, result: null },
    { ok: true, result: [] },
    {},
]) {
    test(`and one that sends a malformed reply: ${JSON.stringify(answer)}`, async () => {
        const { server, line, session } = await followed();
        const beginning = session.beginTurn("Hello?");
        const canceling = session.cancel();
        const { id } = await line.command("begin_turn");
        line.send({ reply: id, ...answer });
        assert.equal(line.wasLeft, true);
        const next = await server.line();
        await next.done("subscribe");
        await next.done("begin_turn", { turn_id: "t1-000001" });
        await next.done("cancel", { canceled: [] });
        assert.deepEqual([await beginning, await canceling], ["t1-000001", []]);
    });
}

for (const cursor of [null, 5, ["t"], { t: "1" }, { t: null }, { t: 0.5 }]) {
    test(`and one that sends a malformed cursor: ${JSON.stringify(cursor)}`, async () => {
        const { server, line, client } = await met({ attempts: 2 });
        const subscribing = client.session("s").subscribe();
        await line.done("subscribe", { cursor });
        const next = await server.line();
        assert.equal(line.wasLeft, true);
        await next.done("subscribe", { cursor });
        await (await server.line()).done("subscribe", { cursor: { t: -1 } });
        assert.deepEqual((await subscribing).cursor, { t: -1 });
    });
}

test("a turn whose reply was lost is asked for by the same id", async () => {
    const { server, line, session } = await followed();
    const beginning = session.beginTurn("Hello?");
    const canceling = session.cancel("t");
    const finalizing = session.finalize("t");
    const { request_id: id } = await line.command("begin_turn");
    assert.match(id, /^[!-~]{8,128}$/);
    line.send(event("turn_accepted", 0));
    line.drop();
    const next = await server.line();
    await next.done("subscribe");
    const { id: _, ...again } = await next.done("begin_turn", { turn_id: "t" });
    assert.deepEqual(again, { op: "begin_turn", session_id: "s", input: "Hello?", params: {}, request_id: id });
    assert.equal((await next.done("cancel", { canceled: [] })).turn_id, "t");
    await next.done("finalize", { commit_outcome: "ok" });
    assert.deepEqual([await beginning, await canceling, await finalizing], ["t", [], { commit_outcome: "ok" }]);
    assert.equal(next.waiting, 0);
});

test("each turn has an id of its own, unless it is given", async () => {
    const { line, session } = await followed();
    const ids = [];
    for (const options of [undefined, {}, { requestId: "mine" }]) {
        const beginning = session.beginTurn("Hello?", {}, options);
        ids.push((await line.done("begin_turn", { turn_id: "t1-000001" })).request_id);
        await beginning;
    }
    assert.equal(new Set(ids).size, 3);
    assert.equal(ids[2], "mine");
});

test("a stream asks for a turn that was found again and of which it has nothing", async () => {
    const { server, line, session } = await followed();
    const beginning = session.beginTurn("Hello?");
    await line.command("begin_turn");
    line.drop();
    const next = await server.line();
    await next.done("subscribe");
    await next.done("begin_turn", { turn_id: "t1-000001" });
    assert.equal(await beginning, "t1-000001");
    const third = await server.line();
    assert.equal(next.wasLeft, true);
    assert.deepEqual((await third.done("subscribe")).after, { "t1-000001": -1 });
});

test("a second attempt that is refused for a moment is made again, and a first one is not", async () => {
    const { server, line, session } = await followed();
    const first = session.beginTurn("Hello?");
    await line.refuse("begin_turn", "busy");
    await assert.rejects(first, coded("busy"));
    const beginning = session.beginTurn("Hello?");
    await line.command("begin_turn");
    line.drop();
    const next = await server.line();
    await next.done("subscribe");
    await next.refuse("begin_turn", "busy");
    await next.refuse("begin_turn", "rate_limited");
    await next.done("begin_turn", { turn_id: "t1-000001" });
    assert.equal(await beginning, "t1-000001");
});

test("a second attempt that is refused for good is not made again", async () => {
    const { server, line, session } = await followed();
    const beginning = session.beginTurn("Hello?");
    await line.command("begin_turn");
    line.drop();
    const next = await server.line();
    await next.done("subscribe");
    await next.refuse("begin_turn", "session_closed");
    await assert.rejects(beginning, coded("session_closed"));
});

test("a command that is lost every time is given up", async () => {
    const { server, line, session } = await followed({ attempts: 2 });
    const beginning = session.beginTurn("Hello?");
    await line.command("begin_turn");
    line.drop();
    for (let loss = 0; loss < 2; loss++) {
        const next = await server.line();
        await next.done("subscribe");
        await next.command("begin_turn");
        next.drop();
    }
    await assert.rejects(beginning, ConnectionLost);
});

test("a command that was never sent waits for the next connection", async () => {
    const { server, line, session } = await followed();
    line.beginClose();
    const beginning = session.beginTurn("Hello?");
    await new Promise(setImmediate);
    assert.equal(line.waiting, 0);
    line.drop();
    const next = await server.line();
    await next.done("subscribe");
    await next.done("begin_turn", { turn_id: "t" });
    assert.equal(await beginning, "t");
});

test("commands wait until streams are back", async () => {
    const { server, line, session } = await followed();
    line.drop();
    const hearing = session.heard("t", 1);
    const next = await server.line();
    const { id } = await next.command("subscribe");
    await new Promise(setImmediate);
    assert.equal(next.waiting, 0);
    next.send({ reply: id, ok: true, result: {} });
    assert.equal((await next.done("heard")).seq, 1);
    await hearing;
});

// -- servers that were started again

/** A session without a stream, and a connection that does not lead to whom it knew. */
async function forgotten({ params = {}, ...options } = {}) {
    const { server, clock, line, client } = await met(options);
    const starting = client.start(params);
    await line.done("start", { session_id: "s" });
    const session = await starting;
    line.drop();
    return { server, clock, client, session, line: await server.line() };
}

test("a session without a stream is brought back", async () => {
    const { server, session, line } = await forgotten();
    const beginning = session.beginTurn("Hello?");
    await line.refuse("begin_turn", "unknown_session");
    const aside = await server.line();
    const { op, id, ...wish } = await aside.done("subscribe", { cursor: {} });
    assert.deepEqual(wish, { session_id: "s", after: {} });
    assert.equal((await line.done("begin_turn", { turn_id: "t" })).input, "Hello?");
    assert.equal(await beginning, "t");
    assert.deepEqual([aside.wasLeft, line.wasLeft], [true, false]);
});

test("so is one that the server has forgotten for another reason, as often as it does", async () => {
    const { server, line, client } = await met();
    const session = client.session("s");
    const hearing = session.heard("t", 1);
    await line.done("heard");
    await hearing;
    for (let round = 0; round < 2; round++) {
        const canceling = session.cancel();
        await line.refuse("cancel", "unknown_session");
        await (await server.line()).done("subscribe");
        await line.done("cancel", { canceled: [] });
        await canceling;
    }
});

test("commands that wait for the same session are all given again", async () => {
    const { server, session, line } = await forgotten();
    const both = [session.cancel("t"), session.cancel("u")];
    await line.refuse("cancel", "unknown_session");
    await line.refuse("cancel", "unknown_session");
    for (const aside of [await server.line(), await server.line()]) await aside.done("subscribe");
    await line.done("cancel", { canceled: ["t"] });
    await line.done("cancel", { canceled: ["u"] });
    assert.deepEqual(await Promise.all(both), [["t"], ["u"]]);
});

test("one that the server never knew is not brought to life", async () => {
    const { server, line, client } = await met();
    const canceling = client.session("s").cancel();
    await line.refuse("cancel", "unknown_session");
    await assert.rejects(canceling, coded("unknown_session"));
    assert.equal(server.attempts, 1);
});

test("so is one that is to be followed for the first time", async () => {
    const { server, session, line } = await forgotten();
    const subscribing = session.subscribe();
    await line.refuse("subscribe", "unknown_session");
    await (await server.line()).done("subscribe");
    assert.equal("after" in (await line.done("subscribe")), false);
    const stream = await subscribing;
    line.send(event("turn_accepted", 0));
    await take(stream, 1);
});

test("what a session agreed to is said when it is brought back", async () => {
    const { server, session, line } = await forgotten({ params: { remote_models: true } });
    const canceling = session.cancel();
    await line.refuse("cancel", "unknown_session");
    assert.equal((await (await server.line()).done("subscribe")).remote_models, true);
    await line.done("cancel", { canceled: [] });
    await canceling;
});

test("a session that cannot be brought back is unknown", async () => {
    const { server, session, line } = await forgotten();
    const canceling = session.cancel();
    await line.refuse("cancel", "unknown_session");
    const aside = await server.line();
    await aside.refuse("subscribe", "unknown_session");
    await assert.rejects(canceling, coded("unknown_session"));
    assert.equal(aside.wasLeft, true);
    const again = session.cancel();
    await line.refuse("cancel", "unknown_session");
    await assert.rejects(again, coded("unknown_session"));
});

test("a session that was closed meanwhile stays so", async () => {
    const { server, session, line } = await forgotten();
    const canceling = session.cancel();
    await line.refuse("cancel", "unknown_session");
    const aside = await server.line();
    await aside.done("subscribe");
    aside.send({ notice: "ended", session_id: "s" });
    await line.refuse("cancel", "unknown_session");
    await assert.rejects(canceling, coded("unknown_session"));
});

test("who cannot connect to bring a session back tries again", async () => {
    const pauses = [];
    const { server, session, line } = await forgotten({ attempts: 3, backoff: remembered(pauses) });
    server.plan = ["refused", "open", "open"];
    const canceling = session.cancel();
    await line.refuse("cancel", "unknown_session");
    (await server.line()).drop();
    await (await server.line()).done("subscribe");
    await line.done("cancel", { canceled: [] });
    await canceling;
    assert.deepEqual(pauses, [0, 0, 1]);
});

test("so does who meets a server that is busy", async () => {
    const pauses = [];
    const { server, session, line } = await forgotten({ attempts: 3, backoff: remembered(pauses) });
    const canceling = session.cancel();
    await line.refuse("cancel", "unknown_session");
    for (const code of ["busy", "rate_limited"]) {
        const aside = await server.line();
        await aside.refuse("subscribe", code);
    }
    await (await server.line()).done("subscribe");
    await line.done("cancel", { canceled: [] });
    await canceling;
    assert.deepEqual(pauses, [0, 0, 1]);
});

test("and gives up in the end", async () => {
    const { server, session, line } = await forgotten({ attempts: 2 });
    server.plan = ["refused", "refused"];
    const canceling = session.cancel();
    await line.refuse("cancel", "unknown_session");
    await assert.rejects(canceling, ConnectionLost);
    assert.equal(server.attempts, 4);
});

test("a client that is closed meanwhile brings nothing back", async () => {
    let paused;
    const pausing = new Promise((resolve) => (paused = resolve));
    const { server, client, session, line } = await forgotten({ backoff: (attempt) => (attempt && paused(), 0) });
    server.plan = ["refused", "refused"];
    const canceling = session.cancel();
    await line.refuse("cancel", "unknown_session");
    await pausing;
    await client.close();
    await assert.rejects(canceling, ConnectionLost);
    assert.equal(server.attempts, 4);
});

test("a session that a restarted server does not know need not be closed", async () => {
    const { session, line } = await forgotten();
    const closing = session.close();
    await line.refuse("close", "unknown_session");
    await closing;
    assert.equal(line.waiting, 0);
});

test("a session that is gone when it is closed again was closed", async () => {
    const { server, line, client } = await met();
    const closing = client.session("s").close();
    await line.command("close");
    line.drop();
    const next = await server.line();
    await next.refuse("close", "unknown_session");
    await closing;
    const again = client.session("s").close();
    await next.refuse("close", "unknown_session");
    await assert.rejects(again, coded("unknown_session"));
});

test("a frame that is too long rejects its own command", async () => {
    const { server, line, client } = await met();
    const session = client.session("s");
    const long = session.beginTurn("x".repeat(1000));
    const short = session.cancel();
    await line.command("begin_turn");
    line.drop(1009);
    await assert.rejects(long, coded("too_large"));
    await (await server.line()).done("cancel", { canceled: [] });
    assert.deepEqual(await short, []);
});

test("how long a frame is, is counted in bytes", async () => {
    const { server, line, client } = await met();
    const session = client.session("s");
    const short = session.cancel("x".repeat(500));
    const long = session.beginTurn("\u20ac".repeat(400));
    await line.command("cancel");
    line.drop(1009);
    await assert.rejects(long, coded("too_large"));
    await (await server.line()).done("cancel", { canceled: [] });
    assert.deepEqual(await short, []);
});

test("a stream that cannot say where it was is the only one to fail", async () => {
    const { server, line, client, stream } = await followed({}, { after: { ["t".repeat(500)]: 3 } });
    const subscribing = client.session("other").subscribe();
    await line.done("subscribe");
    const other = await subscribing;
    line.drop();
    const next = await server.line();
    await next.command("subscribe");
    next.drop(1009);
    await assert.rejects(stream.next(), coded("too_large"));
    const third = await server.line();
    assert.equal((await third.done("subscribe")).session_id, "other");
    third.send(event("turn_accepted", 0, { session_id: "other" }));
    await take(other, 1);
});

test("a connection that is closed for its length without a command just comes back", async () => {
    const { server, line } = await followed();
    line.drop(1009);
    await (await server.line()).done("subscribe");
});

test("what is no text is not sent", async () => {
    const { line, session } = await followed();
    for (const half of ["\ud83d", "a \\\ud83d", "\udc00 b"]) {
        await assert.rejects(session.beginTurn(half), coded("invalid_command"));
    }
    for (const text of ["\u{1f600}", "\\ud83d", "\\\\ud83d"]) {
        const beginning = session.beginTurn(text);
        assert.equal((await line.done("begin_turn", { turn_id: text })).input, text);
        assert.equal(await beginning, text);
    }
});

test("a number that would arrive as another is not sent", async () => {
    const { line, session } = await followed();
    for (const number of [2 ** 53, -(2 ** 53), NaN, Infinity, 1n]) {
        const refused = (error) => error.code === "invalid_command" && error.message.includes("2 ** 53");
        await assert.rejects(session.heard("t", number), refused);
        await assert.rejects(session.beginTurn("Hello?", { sampling: { temperature: number } }), refused);
    }
    assert.equal(line.waiting, 0);
    for (const number of [2 ** 53 - 1, -1, 0.5, "9".repeat(20)]) {
        const hearing = session.heard("t", number);
        assert.equal((await line.done("heard")).seq, number);
        await hearing;
    }
});

test("a cursor that would arrive as another is not sent", async () => {
    const { line, client } = await met();
    await assert.rejects(client.session("s").subscribe({ after: { t: 2 ** 53 } }), coded("invalid_command"));
    assert.equal(line.waiting, 0);
});

test("a refusal without an id is for the command that waits longest in line", async () => {
    const { line, session } = await followed();
    const finalizing = session.finalize("t");
    const unreadable = session.beginTurn("Hello?");
    const canceling = session.cancel();
    const { id } = await line.command("finalize");
    await line.command("begin_turn");
    line.send({ reply: null, ok: false, error: { code: "invalid_command", message: "No." } });
    await assert.rejects(unreadable, coded("invalid_command"));
    await line.done("cancel", { canceled: [] });
    line.send({ reply: id, ok: true, result: { commit_outcome: "ok" } });
    assert.deepEqual([await canceling, await finalizing], [[], { commit_outcome: "ok" }]);
});

test("a refusal without an id is for one that waits, if no other is left", async () => {
    const { line, session } = await followed();
    const finalizing = session.finalize("t");
    await line.command("finalize");
    line.send({ reply: null, ok: false, error: { code: "invalid_command", message: "No." } });
    await assert.rejects(finalizing, coded("invalid_command"));
});

test("a refusal without an id and without a waiting command ends the connection", async () => {
    const { server, line } = await followed();
    line.send({ reply: null, ok: false, error: { code: "invalid_command", message: "No." } });
    assert.equal(line.wasLeft, true);
    await (await server.line()).done("subscribe");
});

for (const code of ["unknown_session", "session_closed"]) {
    test(`a stream whose session is gone and left nothing open ends: ${code}`, async () => {
        const { server, line, session, stream } = await followed({ attempts: 1 });
        for (const each of turn("t")) line.send(each);
        line.drop();
        const next = await server.line();
        await next.refuse("subscribe", code);
        if (code === "session_closed") await next.refuse("subscribe", code);
        assert.equal((await take(stream, 4)).length, 4);
        assert.equal((await stream.next()).done, true);
        const canceling = session.cancel();
        await next.done("cancel", { canceled: [] });
        await canceling;
    });
}

test("a server that goes says that of every session, and the next one is asked", async () => {
    const { server, line, stream } = await followed();
    line.send({ notice: "detached", session_id: "s", reason: "overflow" });
    await line.refuse("subscribe", "session_closed");
    line.drop(1001);
    const next = await server.line();
    await next.done("subscribe");
    next.send(event("turn_accepted", 0));
    await take(stream, 1);
});

test("a stream whose session is gone with a turn that began here fails", async () => {
    const { server, line, session, stream } = await followed();
    const beginning = session.beginTurn("Hello?");
    await line.done("begin_turn", { turn_id: "t" });
    await beginning;
    line.drop();
    await (await server.line()).refuse("subscribe", "unknown_session");
    await assert.rejects(stream.next(), coded("unknown_session"));
});

test("a stream whose session is gone in the middle of a turn fails, and the others do not", async () => {
    const { server, line, client, stream } = await followed();
    for (const each of turn("t").slice(0, 3)) line.send(each);
    await take(stream, 3);
    const subscribing = client.session("other").subscribe();
    await line.done("subscribe");
    const other = await subscribing;
    line.drop();
    const next = await server.line();
    await next.refuse("subscribe", "unknown_session");
    await next.done("subscribe");
    await assert.rejects(stream.next(), coded("unknown_session"));
    next.send(event("turn_accepted", 0, { session_id: "other" }));
    await take(other, 1);
});

test("a server that is busy when a stream comes back is asked again", async () => {
    const pauses = [];
    const { server, line, stream } = await followed({ backoff: remembered(pauses) });
    line.drop();
    const next = await server.line();
    await next.refuse("subscribe", "busy");
    await next.refuse("subscribe", "rate_limited");
    await next.done("subscribe");
    next.send(event("turn_accepted", 0));
    await take(stream, 1);
    assert.deepEqual(pauses, [0, 0, 1]);
});

test("so is one that is busy when a stream begins", async () => {
    const pauses = [];
    const { line, client } = await met({ backoff: remembered(pauses) });
    const subscribing = client.session("s").subscribe({ after: { t: 3 } });
    await line.refuse("subscribe", "busy");
    await line.refuse("subscribe", "rate_limited");
    assert.deepEqual((await line.done("subscribe")).after, { t: 3 });
    assert.deepEqual((await subscribing).cursor, { t: 3 });
    assert.deepEqual(pauses, [0, 1]);
});

for (const code of ["busy", "rate_limited"]) {
    test(`one that never has the time to begin a stream is given up: ${code}`, async () => {
        const { line, client } = await met({ attempts: 2 });
        const session = client.session("s");
        for (let round = 0; round < 2; round++) {
            const subscribing = session.subscribe();
            for (let refusal = 0; refusal < 3; refusal++) await line.refuse("subscribe", code);
            await assert.rejects(subscribing, coded(code));
        }
        assert.equal(line.waiting, 0);
    });
}

for (const code of ["busy", "rate_limited", "internal"]) {
    test(`one that refuses to go on is asked again, but not for ever: ${code}`, async () => {
        const { server, line, stream } = await followed({ attempts: 2 });
        line.drop();
        const next = await server.line();
        for (let refusal = 0; refusal < 3; refusal++) await next.refuse("subscribe", code);
        await assert.rejects(stream.next(), coded(code));
        assert.equal(next.waiting, 0);
    });
}

test("one that goes on, and refuses later, is asked as often again", async () => {
    const pauses = [];
    const { server, line, stream } = await followed({ attempts: 1, backoff: remembered(pauses) });
    line.drop();
    const next = await server.line();
    for (let round = 0; round < 3; round++) {
        await next.refuse("subscribe", "busy");
        await next.done("subscribe");
        next.send({ notice: "detached", session_id: "s", reason: "stalled" });
    }
    await next.done("subscribe");
    next.send(event("turn_accepted", 0));
    await take(stream, 1);
    assert.deepEqual(pauses, [0, 0, 1, 2, 3, 4, 5]);
});

test("a refusal of a closed stream is ignored", async () => {
    const { server, line, session, stream } = await followed();
    line.send({ notice: "detached", session_id: "s", reason: "stalled" });
    const { id } = await line.command("subscribe");
    await stream.return();
    const subscribing = session.subscribe();
    line.send({ reply: id, ok: false, error: { code: "unknown_session", message: "No." } });
    await (await server.line()).done("subscribe", { cursor: { t: -1 } });
    assert.deepEqual((await subscribing).cursor, { t: -1 });
});

test("a connection that breaks while streams come back is replaced", async () => {
    const { server, line, stream } = await followed();
    line.drop();
    const next = await server.line();
    await next.command("subscribe");
    next.drop();
    const third = await server.line();
    await third.done("subscribe");
    third.send(event("turn_accepted", 0));
    await take(stream, 1);
});

test("who was detached subscribes again on the same connection", async () => {
    const { line, stream } = await followed();
    line.send(event("turn_accepted", 0));
    line.send({ notice: "detached", session_id: "s", reason: "stalled" });
    assert.deepEqual((await line.done("subscribe")).after, { t: 0 });
    line.send(event("token_delta", 1));
    assert.deepEqual(seqs(await take(stream, 2)), ["t:0", "t:1"]);
});

test("who is detached again and again waits longer, until something comes", async () => {
    const pauses = [];
    const { line, stream } = await followed({ backoff: remembered(pauses) });
    const detached = { notice: "detached", session_id: "s", reason: "overflow" };
    line.send(detached);
    await line.done("subscribe");
    line.send(detached);
    await line.done("subscribe");
    line.send(event("turn_accepted", 0));
    line.send(detached);
    await line.done("subscribe");
    await take(stream, 1);
    assert.deepEqual(pauses, [0, 1, 0]);
});

test("who is detached and then loses the connection is back once", async () => {
    const { server, line } = await followed();
    line.send({ notice: "detached", session_id: "s", reason: "stalled" });
    line.drop();
    const next = await server.line();
    await next.done("subscribe");
    await timersFired();
    assert.equal(next.waiting, 0);
    assert.equal(next.wasLeft, false);
});

test("what only a restarted server knows is asked of the next one", async () => {
    const pauses = [];
    const { server, line } = await followed({ backoff: remembered(pauses) });
    line.send({ notice: "detached", session_id: "s", reason: "commit_unknown" });
    assert.deepEqual(pauses, []);
    line.drop();
    await (await server.line()).done("subscribe");
});

test("each attempt waits longer, until it is given up", async () => {
    const pauses = [];
    const { server, line, client, stream } = await followed({ backoff: remembered(pauses), attempts: 3 });
    server.plan = ["refused", "refused", "refused"];
    line.drop();
    await assert.rejects(stream.next(), ConnectionLost);
    assert.deepEqual(pauses, [0, 1, 2]);
    await assert.rejects(client.start(), ConnectionLost);
});

test("connections that break before the streams are back count as failed", async () => {
    const { server, line, stream } = await followed({ attempts: 2 });
    line.drop();
    for (let attempt = 0; attempt < 2; attempt++) {
        const next = await server.line();
        await next.command("subscribe");
        next.drop();
    }
    await assert.rejects(stream.next(), ConnectionLost);
    assert.equal(server.attempts, 3);
});

test("events show that a connection was a good one", async () => {
    const pauses = [];
    const { server, line } = await followed({ backoff: remembered(pauses) });
    line.drop();
    const second = await server.line();
    await second.done("subscribe");
    second.drop();
    const third = await server.line();
    await third.done("subscribe");
    third.send(event("turn_accepted", 0));
    third.drop();
    await server.line();
    assert.deepEqual(pauses, [0, 1, 0]);
});

test("without a wish, pauses are short at first, grow, and are never long", async () => {
    const pauses = [];
    class Hasty extends FakeClock {
        setTimeout(wake, pause) {
            if (pause !== 30_000) pauses.push(pause);
            return super.setTimeout(wake, pause === 30_000 ? pause : 0);
        }
    }
    const { server, line, stream } = await followed({ backoff: undefined, timers: new Hasty() });
    server.plan = Array(20).fill("refused");
    line.drop();
    await assert.rejects(stream.next(), ConnectionLost);
    assert.equal(pauses.length, 20);
    assert.ok(pauses[0] >= 50 && pauses[0] <= 100);
    assert.ok(pauses.slice(-3).every((pause) => pause >= 2_500 && pause <= 5_000));
});

test("a server that comes back as something else is given up", async () => {
    const { server, line, stream } = await followed();
    server.plan = ["chat"];
    line.drop();
    await assert.rejects(stream.next(), coded("unsupported_version"));
});

// -- silence

test("a server that is silent is asked for a sign of life, and any will do", async () => {
    const { clock, line, stream } = await followed({ silence: 1_000 });
    clock.pass(1_000);
    assert.equal(line.waiting, 0, "it has just spoken");
    clock.pass(1_000);
    await line.done("ping");
    clock.pass(2_000);
    await line.refuse("ping", "rate_limited");
    clock.pass(2_000);
    await line.command("ping");
    line.send(event("turn_accepted", 0));
    clock.pass(1_999);
    assert.deepEqual([line.waiting, line.wasLeft], [0, false]);
    await take(stream, 1);
});

test("a server that gives no sign of life is left, and streams go on elsewhere", async () => {
    const { server, clock, line, session, stream } = await followed({ silence: 1_000 });
    line.send(event("turn_accepted", 0));
    const canceling = session.cancel();
    await line.command("cancel");
    clock.pass(2_000);
    const ping = await line.command("ping");
    assert.deepEqual(Object.keys(ping), ["op", "id"]);
    clock.pass(999);
    assert.equal(line.wasLeft, false);
    clock.pass(1);
    assert.equal(line.wasLeft, true);
    const next = await server.line();
    assert.deepEqual((await next.done("subscribe")).after, { t: 0 });
    await next.done("cancel", { canceled: [] });
    await canceling;
    next.send(event("token_delta", 1));
    assert.deepEqual(seqs(await take(stream, 2)), ["t:0", "t:1"]);
});

test("a server that speaks is not asked", async () => {
    const { clock, line } = await followed({ silence: 1_000 });
    for (let seq = 0; seq < 5; seq++) {
        line.send(event(seq === 0 ? "turn_accepted" : "token_delta", seq));
        clock.pass(1_000);
    }
    assert.deepEqual([line.waiting, line.wasLeft], [0, false]);
});

test("a server that says nothing at all from the beginning is asked soon", async () => {
    const { clock, line } = await met({ silence: 1_000 });
    clock.pass(1_000);
    await line.command("ping");
    clock.pass(1_000);
    assert.equal(line.wasLeft, true);
});

test("a connection that does not come about is given up", async () => {
    const server = new FakeServer();
    const clock = new FakeClock();
    server.plan = ["held"];
    const opening = connect("ws://here", { WebSocket: server.WebSocket, silence: 1_000, timers: clock });
    const line = await server.line();
    clock.pass(1_000);
    await assert.rejects(opening, ConnectionLost);
    assert.equal(line.wasLeft, true);
});

test("no timer outlives the client", async () => {
    const { clock, client } = await followed();
    assert.equal(clock.waiting, 1);
    await client.close();
    assert.equal(clock.waiting, 0);
    const server = new FakeServer();
    for (const fate of ["refused", "chat"]) {
        server.plan = [fate];
        await assert.rejects(connect("ws://here", { WebSocket: server.WebSocket, timers: clock }), FootlightsError);
        assert.equal(clock.waiting, 0);
    }
});

test("a silence that no timer can wait for is refused", async () => {
    for (const silence of [0, -1, NaN, Infinity, 2 ** 31, null]) {
        await assert.rejects(connect("ws://here", { WebSocket: FakeServer, silence }), coded("invalid_command"));
    }
    await met({ silence: 2 ** 31 - 1 });
});

// -- the end

test("a client that is closed ends its streams and refuses commands", async () => {
    const { line, client, session, stream } = await followed();
    const beginning = session.beginTurn("Hello?");
    await line.command("begin_turn");
    const next = stream.next();
    await client.close();
    assert.equal((await next).done, true);
    assert.equal(line.wasLeft, true);
    await assert.rejects(beginning, ConnectionLost);
    await assert.rejects(session.cancel(), ConnectionLost);
    await assert.rejects(session.subscribe(), ConnectionLost);
    await client.close();
});

test("a client that is closed while it has no connection makes none", async () => {
    let paused;
    const pausing = new Promise((resolve) => (paused = resolve));
    const { server, line, client, session } = await followed({ backoff: () => (paused(), 0) });
    line.drop();
    const canceling = session.cancel();
    await pausing;
    await client.close();
    await assert.rejects(canceling, ConnectionLost);
    await timersFired();
    assert.equal(server.attempts, 1);
});

test("a client that is closed while a stream waits to come back ends it", async () => {
    const { line, client, stream } = await followed();
    line.send({ notice: "detached", session_id: "s", reason: "stalled" });
    await client.close();
    await timersFired();
    assert.equal((await stream.next()).done, true);
});

test("a client that is closed while it connects leaves that connection too", async () => {
    const { server, line, client } = await followed();
    server.plan = ["held"];
    line.drop();
    const next = await server.line();
    await client.close();
    next.open();
    await new Promise(setImmediate);
    assert.equal(next.wasLeft, true);
    assert.equal(next.waiting, 0);
});
