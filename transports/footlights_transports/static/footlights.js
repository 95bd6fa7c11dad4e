/**
 * Footlights from a browser or from Node: take turns, follow sessions, and miss nothing when the connection breaks.
 *
 *     const client = await connect("ws://127.0.0.1:7600");
 *     const session = await client.start();
 *     const stream = await session.subscribe();
 *     const turnId = await session.beginTurn("A room?");
 *     for await (const event of stream.untilCommit(turnId)) console.log(event.event_type);
 *     await client.close();
 *
 * A client keeps one connection. If it breaks, or stays silent for too long, the client reconnects and every stream
 * resumes where it was: no event is repeated, and every gap is declared in `payload.dropped_seq_ranges`. Each stream is
 * checked against the core laws while it is received. Events are passed on as the server sent them. Nothing is logged.
 */

const SUBPROTOCOL = "footlights.v1";
const RESTART_SEQ = 1_000_000_000;
const OPEN = 1; // WebSocket.OPEN, also of a class that was injected
const TOO_BIG = 1009; // the close code for a frame over the server's limit
const HALF_A_PAIR = /[^\\](?:\\\\)*\\ud[89a-f]/; // how JSON.stringify writes an unpaired surrogate
const WHOLE_TURNS_KEPT = 1_024; // more than a server ever retains
const TURNS_BEGUN_KEPT = 1_024;
const PASSING = ["busy", "rate_limited"]; // refusals after which the same command may succeed
// After a reconnect, a server may fail briefly, or report a session as closed because it is shutting down itself.
const PASSING_ON_RETURN = [...PASSING, "internal", "session_closed"];
const LONGEST_TIMER = 2 ** 31 - 1; // in milliseconds; a browser runs a longer timer at once

/** In a cursor: every event of this turn was taken, including its commit_final. */
export const ALL_SEEN = RESTART_SEQ + 1;

/** Base class of all errors. `code` is an error code of the server, or that of a class below. */
export class FootlightsError extends Error {
    constructor(code, message) {
        super(message);
        this.name = new.target.name;
        this.code = code;
    }
}

/** The connection was lost, or could not be opened. A command without a reply may or may not have been executed. */
export class ConnectionLost extends FootlightsError {
    constructor(message) {
        super("connection_lost", message);
    }
}

/** The server sent an event that breaks a law. `law` names the law, `turnId` and `seq` the event. */
export class LawBroken extends FootlightsError {
    constructor(law, event) {
        super("law_broken", `The event ${event.seq} of turn ${event.turn_id} breaks the law ${law}.`);
        this.law = law;
        this.turnId = event.turn_id;
        this.seq = event.seq;
    }
}

/**
 * Connect to a server. Rejects if that fails: the server may be unreachable, or may refuse the token or the page's
 * origin. Browsers do not report which.
 */
export async function connect(url, options = {}) {
    const { token = null, batch = false, WebSocket = globalThis.WebSocket } = options;
    const { maxWaiting = 1024, attempts = 20, backoff = pauseBefore } = options;
    const { silence = 30_000, timers = globalThis } = options;
    if (typeof WebSocket !== "function") {
        const how = "use Node 22 or newer, start Node 20 with --experimental-websocket, or pass a class as options.WebSocket";
        throw new FootlightsError("invalid_command", `There is no WebSocket here: ${how}.`);
    }
    if (!(silence > 0 && silence <= LONGEST_TIMER)) {
        throw new FootlightsError("invalid_command", `silence must be from 1 to ${LONGEST_TIMER} milliseconds.`);
    }
    const where = { WebSocket, address: addressOf(url, batch), protocols: protocolsFor(token) };
    const open = (listener) => Connection.open(where, listener, { silence, timers });
    return Client.connected(open, { maxWaiting, attempts, backoff, timers });
}

/** Milliseconds before a reconnect. Random, so that not all clients reconnect to a restarted server at once. */
function pauseBefore(attempt) {
    return Math.min(5_000, 100 * 2 ** attempt) * (0.5 + Math.random() / 2);
}

function randomId() {
    return Array.from(crypto.getRandomValues(new Uint32Array(4)), (each) => each.toString(36)).join("-");
}

function addressOf(url, batch) {
    const address = new URL(url);
    if (address.pathname === "/") address.pathname = "/v1";
    if (batch) address.searchParams.set("batch", "1");
    return address.href;
}

function protocolsFor(token) {
    if (token === null) return [SUBPROTOCOL];
    // Checked here, because a browser would quote the token in its own error.
    if (!/^[\w!#$%&'*+.^`|~-]+$/.test(token)) {
        throw new FootlightsError("invalid_command", "The token has characters that no WebSocket subprotocol allows.");
    }
    return [SUBPROTOCOL, `bearer.${token}`];
}

const isObject = (value) => typeof value === "object" && value !== null && !Array.isArray(value);

const isCursor = (value) => isObject(value) && Object.values(value).every(Number.isSafeInteger);

// -- the laws

const KINDS = {
    turn_accepted: "accepted",
    turn_interrupted: "terminal",
    turn_final: "terminal",
    commit_final: "commit",
};

/** Transitions of a turn: state, kind of event, next state. Any other step breaks the law that `BROKEN` names. */
const STEPS = {
    unbegun: { accepted: "open" },
    resumed: { body: "open", terminal: "ended", commit: "committed" },
    open: { body: "open", terminal: "ended" },
    ended: { commit: "committed" },
    committed: {},
};

const BROKEN = {
    unbegun: () => "accepted_first",
    resumed: () => "accepted_once",
    open: (kind) => (kind === "accepted" ? "accepted_once" : "one_terminal"),
    ended: (kind) => ({ accepted: "accepted_once", body: "terminal_silence" })[kind] ?? "one_terminal",
    committed: () => "commit_silence",
};

/** Compares turn ids by epoch and number, as in t1-000005: the later turn is greater. */
const inOrder = new Intl.Collator("en", { numeric: true }).compare;

/** State of each turn of a session: the cursor to resume with, and the check of the next event. */
class Turns {
    #turns = new Map();
    #whole = [];
    #latest = "";

    constructor(after, terminalSeen) {
        for (const [turnId, seq] of Object.entries(after)) {
            this.place(turnId, seq, terminalSeen.includes(turnId) ? "ended" : "resumed");
        }
    }

    /** Set a turn's position, from a cursor. A turn that is known already keeps its position. */
    place(turnId, seq, state = "resumed") {
        if (this.knows(turnId)) return;
        if (seq < 0) this.#turns.set(turnId, { seq: -1, state: "unbegun" });
        else this.#set(turnId, seq >= ALL_SEEN ? { seq: ALL_SEEN, state: "committed" } : { seq, state });
    }

    /** The turn was begun, and none of its events has been received. */
    expect(turnId) {
        this.place(turnId, -1);
    }

    /** Record the event as seen. Throws `LawBroken`, and then the event is not recorded. */
    see(event) {
        const isPlaced = typeof event.turn_id === "string" && Number.isSafeInteger(event.seq);
        if (!isPlaced || !hasRanges(event)) throw new LawBroken("envelope", event);
        const turn = this.#turns.get(event.turn_id) ?? { seq: -1, state: "unbegun" };
        if (turn.state !== "committed") checkSeq(turn, event);
        const state = stateAfter(turn, event);
        this.#set(event.turn_id, { seq: state === "committed" ? ALL_SEEN : event.seq, state });
    }

    knows(turnId) {
        return this.#turns.has(turnId);
    }

    isWhole(turnId) {
        return this.#turns.get(turnId)?.state === "committed";
    }

    /** Whether the commit_final of any known turn has not been seen. */
    get isAnyOpen() {
        return [...this.#turns.values()].some(({ state }) => state !== "committed");
    }

    get cursor() {
        return Object.fromEntries([...this.#turns].map(([turnId, { seq }]) => [turnId, seq]));
    }

    get terminalSeen() {
        return [...this.#turns].filter(([, { state }]) => state === "ended").map(([turnId]) => turnId);
    }

    #set(turnId, turn) {
        this.#turns.set(turnId, turn);
        if (turn.seq >= 0 && inOrder(turnId, this.#latest) > 0) this.#latest = turnId;
        if (turn.state === "committed") this.#whole.push(turnId);
        if (this.#whole.length > WHOLE_TURNS_KEPT) this.#forgetOne();
    }

    /** Forget the oldest complete turn, but not the latest turn: the server sends the turns that began after it. */
    #forgetOne() {
        const oldest = this.#whole[0] === this.#latest ? 1 : 0;
        this.#turns.delete(...this.#whole.splice(oldest, 1));
    }
}

function stateAfter(turn, event) {
    const recalled = event.seq >= RESTART_SEQ && turn.state === "unbegun";
    const state = recalled ? "open" : turn.state; // after a restart only the end of the turn is sent
    const kind = KINDS[event.event_type] ?? "body";
    const next = STEPS[state][kind];
    if (next === undefined) throw new LawBroken(BROKEN[state](kind), event);
    return next;
}

function hasRanges({ payload }) {
    const ranges = payload?.dropped_seq_ranges ?? [];
    const isRange = (each) => Number.isSafeInteger(each?.start_seq) && Number.isSafeInteger(each?.end_seq);
    return Array.isArray(ranges) && ranges.every(isRange);
}

function checkSeq(turn, event) {
    if (event.seq <= turn.seq) throw new LawBroken("seq_increasing", event);
    const restarted = event.seq >= RESTART_SEQ;
    if (turn.state === "unbegun" && event.seq > 0 && !restarted) throw new LawBroken("seq_first", event);
    let expected = turn.seq + 1;
    for (const { start_seq: start, end_seq: end } of event.payload?.dropped_seq_ranges ?? []) {
        if (start < expected || end < start || end >= event.seq) throw new LawBroken("range_exact", event);
        if (start > expected) break;
        expected = end + 1;
    }
    if (expected < event.seq) throw new LawBroken("seq_gap", event);
    const hidden = expected > turn.seq + 1;
    if (hidden && turn.state === "ended" && !restarted) throw new LawBroken("range_must_deliver", event);
}

// -- one connection

function deferred() {
    const it = {};
    it.promise = new Promise((resolve, reject) => Object.assign(it, { resolve, reject }));
    it.promise.catch(() => {}); // a rejection that no caller awaits is not an unhandled error
    return it;
}

/** Replacer for JSON.stringify. Throws for a number that JSON cannot carry exactly. */
function exactly(_, value) {
    const isExact = typeof value === "number" && Math.abs(value) <= Number.MAX_SAFE_INTEGER;
    if (isExact || !["number", "bigint"].includes(typeof value)) return value;
    throw new FootlightsError("invalid_command", "A number must be finite and less than 2 ** 53, and no BigInt.");
}

function frameOf(command) {
    const frame = JSON.stringify(command, exactly);
    if (HALF_A_PAIR.test(frame)) {
        throw new FootlightsError("invalid_command", "An unpaired surrogate is not valid Unicode.");
    }
    return frame;
}

/** The message in a frame: an object or a list of objects; null if it is neither. */
function messageIn(data) {
    try {
        const frame = JSON.parse(typeof data === "string" ? data : new TextDecoder().decode(data));
        const messages = Array.isArray(frame) ? frame : [frame];
        return messages.every(isObject) ? frame : null;
    } catch {
        return null;
    }
}

const sizeOf = (frame) => new TextEncoder().encode(frame).length;

/** Next state of a connection after a period of silence. */
const AFTER_SILENCE = { heard: "silent", silent: "asked", asked: "gone" };

/** Detects a dead connection: it sends a `ping` command after silence, since browsers hide WebSocket pings. */
class Pulse {
    #patience;
    #ask;
    #giveUp;
    #state = "silent";
    #timer;

    constructor(patience, ask, giveUp) {
        this.#patience = patience;
        this.#ask = ask;
        this.#giveUp = giveUp;
        this.#wait();
    }

    /** A frame was received. */
    beat() {
        this.#state = "heard";
    }

    stop() {
        this.#patience.timers.clearTimeout(this.#timer);
    }

    #wait() {
        const { silence, timers } = this.#patience;
        this.#timer = timers.setTimeout(() => this.#look(), silence);
    }

    #look() {
        this.#state = AFTER_SILENCE[this.#state];
        if (this.#state === "gone") return this.#giveUp();
        if (this.#state === "asked") this.#ask();
        this.#wait();
    }
}

/** Close the socket and ignore its further events. */
function leave(socket) {
    socket.onopen = socket.onmessage = socket.onclose = null;
    socket.onerror = () => {};
    socket.close();
}

/** One WebSocket connection: sends commands and awaits their replies. Events and notices go to the listener. */
class Connection {
    /** Inbox of each subscribed session; null if its inbox is gone: no command makes the server stop sending. */
    following = new Map();
    #socket;
    #listener;
    #asked = new Map();
    #lastId = 0;
    #closed = deferred();
    #quiet = null;
    #pulse;

    static open({ WebSocket, address, protocols }, listener, patience) {
        return new Promise((resolve, reject) => {
            const socket = new WebSocket(address, protocols);
            socket.binaryType = "arraybuffer";
            const fail = (error) => {
                patience.timers.clearTimeout(timer);
                leave(socket);
                reject(error);
            };
            const lose = () => fail(new ConnectionLost("The connection could not be opened."));
            const timer = patience.timers.setTimeout(lose, patience.silence);
            socket.onerror = lose;
            socket.onclose = lose;
            socket.onopen = () => {
                patience.timers.clearTimeout(timer);
                if (socket.protocol === SUBPROTOCOL) resolve(new Connection(socket, listener, patience));
                else fail(new FootlightsError("unsupported_version", `The server does not speak ${SUBPROTOCOL}.`));
            };
        });
    }

    constructor(socket, listener, patience) {
        this.#socket = socket;
        this.#listener = listener;
        this.#pulse = new Pulse(
            patience,
            () => this.ask("ping", {}, true),
            () => this.close(),
        );
        socket.onmessage = ({ data }) => this.#receive(data);
        socket.onerror = () => {};
        socket.onclose = ({ code }) => this.#end(code);
    }

    /** Resolves when the connection is closed. */
    get closed() {
        return this.#closed.promise;
    }

    get isOpen() {
        return this.#socket.readyState === OPEN;
    }

    /** Send a command and wait for its reply. `again` says that the command may safely be sent twice. */
    ask(op, fields, again) {
        const id = ++this.#lastId;
        const frame = frameOf({ op, id, ...fields });
        const answer = deferred();
        if (this.isOpen) {
            this.#asked.set(id, { op, frame, answer, again });
            this.#socket.send(frame);
        } else answer.reject(new ConnectionLost("The connection is closed."));
        return answer.promise;
    }

    /** Resolves when every command that must not be sent twice has its reply, or the connection is closed. */
    quiet() {
        this.#quiet ??= deferred();
        this.#checkQuiet();
        return this.#quiet.promise;
    }

    close() {
        leave(this.#socket);
        this.#end(null);
    }

    #receive(data) {
        this.#pulse.beat();
        const frame = messageIn(data);
        if (frame === null) this.close(); // not a message of a Footlights server
        else if (Array.isArray(frame)) for (const event of frame) this.#listener.event(this, event);
        else if ("event_type" in frame) this.#listener.event(this, frame);
        else if ("reply" in frame) this.#reply(frame);
        else if ("commit" in frame) this.#listener.commit?.(frame.commit);
        else if ("notice" in frame) this.#listener.notice(this, frame);
    }

    #reply({ reply, ok, result, error }) {
        const id = reply ?? this.#unreadable();
        const asked = this.#asked.get(id);
        if (asked === undefined) {
            if (reply === null) this.close(); // a refusal, but no command waits for a reply
            return;
        }
        if (!(ok ? isObject(result) : typeof error?.code === "string")) {
            this.close();
            return;
        }
        this.#asked.delete(id);
        if (ok) asked.answer.resolve(result);
        else asked.answer.reject(new FootlightsError(error.code, error.message));
        this.#checkQuiet();
    }

    /**
     * Id of the command to which a reply without an id belongs. The server handles commands in order, except `finalize`
     * and `close`, which may wait.
     */
    #unreadable() {
        const asked = [...this.#asked];
        const [id] = asked.find(([, { op }]) => op !== "finalize" && op !== "close") ?? asked.at(-1) ?? [];
        return id;
    }

    #checkQuiet() {
        if (![...this.#asked.values()].some(({ again }) => !again)) this.#quiet?.resolve();
    }

    #end(code) {
        const asked = [...this.#asked.values()];
        this.#asked.clear();
        this.#pulse.stop();
        this.#closed.resolve();
        if (code === TOO_BIG && asked.length > 0) {
            const longest = asked.reduce((one, other) => (sizeOf(other.frame) > sizeOf(one.frame) ? other : one));
            longest.answer.reject(new FootlightsError("too_large", "The command exceeds the server's frame limit."));
        }
        for (const { answer } of asked) {
            answer.reject(new ConnectionLost("The connection was lost; the command may have been executed."));
        }
        this.#checkQuiet();
    }
}

// -- the queue of one consumer

/** Bounded queue of events between the connection and the consumer of a stream. Past its limit it accepts no more. */
class Inbox {
    /** Subscribe commands that the server refused in a row. */
    refusals = 0;
    /** Pauses before resubscribing since the last event. */
    pauses = 0;
    /** The limit was exceeded: nothing is accepted until the consumer has caught up; then the client resubscribes. */
    isFull = false;
    /** Whether no subscription of this inbox has succeeded yet. */
    isNew = true;
    attached = deferred();
    #events = [];
    #readers = [];
    #begun = [];
    #over = null;

    constructor(sessionId, after, terminalSeen, limit, whenDrained) {
        this.sessionId = sessionId;
        this.after = after;
        this.received = new Turns(after ?? {}, terminalSeen);
        this.taken = new Turns(after ?? {}, terminalSeen);
        this.limit = Math.max(1, limit);
        this.whenDrained = whenDrained;
    }

    /** Fields of the subscribe command. */
    get request() {
        const after = this.isNew ? this.after : this.received.cursor;
        const terminals = { terminal_seen: this.received.terminalSeen };
        return after === null ? terminals : { ...terminals, after };
    }

    /** The turn was begun: its end is requested on resume, even if none of its events was received. */
    expect(turnId) {
        if (this.isNew) {
            this.#begun.push(turnId); // it may have ended before this stream begins: the reply says so
            return;
        }
        this.received.expect(turnId);
        this.taken.expect(turnId);
    }

    /**
     * The subscription succeeded, and events follow. Turns that ended before it are not part of this stream. Turns at
     * -1 are: the stream is complete only with their end.
     */
    attach(cursor) {
        for (const [turnId, seq] of Object.entries(cursor)) {
            if (this.received.knows(turnId)) continue; // received events may still wait to be taken
            this.received.place(turnId, seq);
            this.taken.place(turnId, seq);
        }
        this.isNew = false;
        this.refusals = 0;
        for (const turnId of this.#begun.splice(0)) this.expect(turnId);
        this.attached.resolve();
    }

    /** Check and queue an event. Throws `LawBroken`. */
    put(event) {
        this.pauses = 0;
        if (this.#events.length >= this.limit) {
            this.isFull = true;
            return;
        }
        this.received.see(event);
        this.#events.push(event);
        this.#serve();
    }

    take() {
        const reader = deferred();
        this.#readers.push(reader);
        this.#serve();
        return reader.promise;
    }

    end() {
        this.#finish((reader) => reader.resolve({ done: true, value: undefined }));
        this.attached.resolve();
    }

    fail(error) {
        this.#finish((reader) => reader.reject(error));
        this.attached.reject(error);
    }

    /** The consumer has left: discard the queued events. */
    leave() {
        this.#events.length = 0;
        this.end();
    }

    #finish(tell) {
        this.#over ??= tell;
        this.#serve();
    }

    #serve() {
        while (this.#readers.length > 0 && this.#events.length > 0) {
            const event = this.#events.shift();
            this.taken.see(event);
            this.#readers.shift().resolve({ done: false, value: event });
        }
        if (this.#events.length > 0) return;
        if (this.#over !== null) this.#readers.splice(0).forEach(this.#over);
        else if (this.isFull) {
            this.isFull = false;
            this.whenDrained(this);
        }
    }
}

// -- the public classes

/** State of a session that a client keeps, with or without a stream of it. */
class Notes {
    /** Consent: whether its text may be sent to remote models. */
    remoteModels = false;
    /** Whether a command on this session has ever succeeded. */
    isKnown = false;
    #begun = new Set();

    /** `connection` is the client's connection at the last use of the session. The next may reach another server. */
    constructor(connection) {
        this.connection = connection;
    }

    begin(turnId) {
        this.#begun.add(turnId);
        if (this.#begun.size > TURNS_BEGUN_KEPT) this.settle(this.#begun.values().next().value);
    }

    settle(turnId) {
        this.#begun.delete(turnId);
    }

    hasBegun(turnId) {
        return this.#begun.has(turnId);
    }
}

/** Listener that ignores everything. */
const IGNORE = { event() {}, notice() {} };

/** Client of one server: keeps it connected and passes each event to its stream. Created by `connect`. */
class Client {
    #open;
    #settings;
    #inboxes = new Map();
    #notes = new Map();
    #feeds = new Set();
    #ready = deferred();
    #connection = null;
    /** "lost" until connected and all streams are resumed, then "connected"; "renewing" on purpose; "closed". */
    #phase = "lost";
    /** Connections lost since the last event. */
    #losses = 0;

    static async connected(open, settings) {
        const client = new Client();
        client.#open = open;
        client.#settings = settings;
        await client.#connect();
        client.#keepConnected();
        return client;
    }

    /** Open a session. `params`: `session_id`, `remote_models`. */
    async start(params = {}) {
        const { session_id: sessionId } = await this.#ask("start", { params });
        const session = this.session(sessionId, params);
        this.#notesOf(sessionId).isKnown = true;
        return session;
    }

    /** An existing session. Its consent is sent again when a restarted server reopens it. */
    session(sessionId, { remote_models: remoteModels = false } = {}) {
        this.#notesOf(sessionId).remoteModels ||= remoteModels;
        return new Session(sessionId, {
            ask: (op, fields, how) =>
                this.#known(sessionId, () => this.#ask(op, { session_id: sessionId, ...fields }, how)),
            subscribe: (after, terminalSeen) =>
                this.#known(sessionId, () => this.#subscribe(sessionId, after, terminalSeen)),
            beginTurn: (fields) => this.#beginTurn(sessionId, fields),
            close: () => this.#close(sessionId),
        });
    }

    /**
     * Follow what changes in a part of the world: `for await (const commit of feed)`. `under` is a JSON pointer. Without
     * `after`, the `cursor` of an earlier feed, it begins now. The feed has a connection of its own.
     */
    async followCommits({ after = null, under = "" } = {}) {
        const feed = new CommitFeed(this.#open, this.#settings, under, after, () => this.#feeds.delete(feed));
        this.#feeds.add(feed);
        await feed.begin();
        return feed;
    }

    /** Close the connection. Streams end; sessions and their turns continue on the server. */
    async close() {
        this.#finish((inbox) => inbox.end(), new ConnectionLost("The client was closed."));
    }

    // -- commands

    /** Give a command. `again`: it may be sent twice. `onLoss` is called when it is about to be. */
    async #ask(op, fields, { again = false, onLoss = () => {} } = {}) {
        for (let losses = 0, refusals = 0; ; ) {
            const connection = await this.#ready.promise;
            if (!connection.isOpen) {
                await connection.closed; // nothing was sent, so waiting for the next connection is safe
                continue;
            }
            try {
                return await connection.ask(op, fields, again);
            } catch (error) {
                if (again && error instanceof ConnectionLost && losses < this.#settings.attempts) {
                    losses++;
                    onLoss();
                } else if (losses > 0 && PASSING.includes(error.code) && refusals < this.#settings.attempts) {
                    await this.#pause(refusals++); // that it is refused now says nothing about the first time
                } else throw error;
            }
        }
    }

    async #beginTurn(sessionId, fields) {
        let isLate = false;
        const how = { again: true, onLoss: () => (isLate = true) };
        const ask = () => this.#ask("begin_turn", { session_id: sessionId, ...fields }, how);
        const { turn_id: turnId } = await this.#known(sessionId, ask);
        const inbox = this.#inboxes.get(sessionId);
        // Sent again, it may have found a turn from before a restart, for which a stream has to ask by its id.
        if (isLate && inbox && !inbox.received.knows(turnId)) this.#renew(this.#connection);
        inbox?.expect(turnId);
        if (!inbox?.received.isWhole(turnId)) this.#notesOf(sessionId).begin(turnId);
        return turnId;
    }

    async #close(sessionId) {
        const before = { ...this.#notesOf(sessionId) };
        try {
            await this.#ask("close", { session_id: sessionId }, { again: true });
        } catch (error) {
            if (!this.#wasKnown(before, error)) throw error; // otherwise the session is closed already
        }
        this.#notes.delete(sessionId);
    }

    // -- sessions that the server has forgotten: it was restarted, or closed them because they were idle

    #notesOf(sessionId) {
        if (!this.#notes.has(sessionId)) this.#notes.set(sessionId, new Notes(this.#connection));
        return this.#notes.get(sessionId);
    }

    /** Whether the error means that the server has forgotten a session that it knew. */
    #wasKnown(before, error) {
        return error.code === "unknown_session" && (before.isKnown || before.connection !== this.#connection);
    }

    /** Run an action on a session. If the server has forgotten the session, reopen it and run the action again. */
    async #known(sessionId, action) {
        const notes = this.#notesOf(sessionId);
        const before = { ...notes };
        let result;
        try {
            result = await action();
        } catch (error) {
            if (!this.#wasKnown(before, error)) throw error;
            Object.assign(notes, { isKnown: false, connection: this.#connection });
            await this.#bringBack(sessionId);
            result = await action();
        }
        Object.assign(notes, { isKnown: true, connection: this.#connection });
        return result;
    }

    /** Reopen a session by subscribing to it, on a separate connection, so that its events are discarded. */
    async #bringBack(sessionId) {
        for (let failed = 0; this.#phase !== "closed"; ) {
            try {
                const connection = await this.#open(IGNORE);
                const subscribing = connection.ask("subscribe", { after: {}, ...this.#wishFor(sessionId) }, true);
                return await subscribing.finally(() => connection.close());
            } catch (error) {
                const mayPass = error instanceof ConnectionLost || PASSING.includes(error.code);
                if (++failed >= this.#settings.attempts || !mayPass) throw error;
                await this.#pause(failed - 1);
            }
        }
    }

    #wishFor(sessionId) {
        const consent = this.#notesOf(sessionId).remoteModels ? { remote_models: true } : {};
        return { session_id: sessionId, ...consent };
    }

    // -- streams

    async #subscribe(sessionId, after, terminalSeen) {
        if (this.#inboxes.has(sessionId)) {
            throw new FootlightsError("invalid_command", "This client has a stream of that session already.");
        }
        const inbox = new Inbox(sessionId, after, terminalSeen, this.#settings.maxWaiting, (it) => this.#attach(it));
        this.#inboxes.set(sessionId, inbox);
        this.#attach(inbox);
        await inbox.attached.promise;
        const notes = this.#notesOf(sessionId);
        return new Stream(
            inbox,
            () => this.#drop(inbox),
            (turnId) => notes.hasBegun(turnId),
        );
    }

    /** Subscribe the inbox. If the connection breaks meanwhile, the next connection subscribes it. */
    async #attach(inbox) {
        let connection;
        try {
            connection = await this.#ready.promise;
        } catch (error) {
            this.#fail(inbox, error);
            return;
        }
        if (!this.#wants(inbox)) return;
        const served = connection.following.get(inbox.sessionId);
        if (served === undefined) await this.#follow(connection, inbox);
        else if (served !== inbox) this.#renew(connection);
    }

    async #follow(connection, inbox) {
        if (!this.#wants(inbox) || inbox.isFull || !connection.isOpen) return;
        connection.following.set(inbox.sessionId, inbox); // before the reply: the first event may come with it
        try {
            const wish = { ...this.#wishFor(inbox.sessionId), ...inbox.request };
            const { cursor = {} } = await connection.ask("subscribe", wish, true);
            if (isCursor(cursor)) inbox.attach(cursor);
            else connection.close();
        } catch (error) {
            connection.following.delete(inbox.sessionId);
            if (!(error instanceof ConnectionLost)) this.#refuse(inbox, error);
        }
    }

    #refuse(inbox, error) {
        if (!this.#wants(inbox)) return;
        const passing = inbox.isNew ? PASSING : PASSING_ON_RETURN;
        const isGone = ["session_closed", "unknown_session"].includes(error.code);
        if (passing.includes(error.code) && inbox.refusals++ < this.#settings.attempts) this.#attachLater(inbox);
        else if (isGone && !inbox.isNew && !inbox.received.isAnyOpen) this.#end(inbox);
        else this.#fail(inbox, error);
    }

    async #attachLater(inbox) {
        await this.#pause(inbox.pauses++);
        await this.#attach(inbox);
    }

    #wants(inbox) {
        return this.#inboxes.get(inbox.sessionId) === inbox;
    }

    #drop(inbox) {
        if (this.#wants(inbox)) this.#inboxes.delete(inbox.sessionId);
        inbox.leave();
    }

    #fail(inbox, error) {
        if (this.#wants(inbox)) this.#inboxes.delete(inbox.sessionId);
        inbox.fail(error);
    }

    /** The session is closed, and every event was received. */
    #end(inbox) {
        this.#inboxes.delete(inbox.sessionId);
        this.#notes.delete(inbox.sessionId);
        inbox.end();
    }

    #receive(connection, event) {
        const inbox = connection.following.get(event.session_id);
        if (!inbox || !this.#wants(inbox)) return;
        this.#losses = 0;
        if (event.event_type === "commit_final") this.#notes.get(event.session_id)?.settle(event.turn_id);
        try {
            inbox.put(event);
        } catch (error) {
            this.#fail(inbox, error);
        }
        if (inbox.isFull) {
            // A WebSocket has no backpressure. So the client reconnects, and the server joins the waiting deltas.
            connection.following.set(inbox.sessionId, null);
            this.#renew(connection);
        }
    }

    #notice(connection, { notice, session_id: sessionId, reason }) {
        const inbox = connection.following.get(sessionId);
        connection.following.delete(sessionId);
        if (!inbox || !this.#wants(inbox)) return;
        if (notice === "ended") this.#end(inbox);
        else if (reason !== "commit_unknown") this.#attachLater(inbox); // only a restarted server knows the commit
    }

    // -- connections

    async #connect() {
        const connection = await this.#open({
            event: (from, event) => this.#receive(from, event),
            notice: (from, notice) => this.#notice(from, notice),
        });
        if (this.#phase === "closed") {
            connection.close();
            return;
        }
        this.#connection = connection;
        // Streams first: after a restart, subscribing to a session reopens it for commands.
        await Promise.all([...this.#inboxes.values()].map((inbox) => this.#follow(connection, inbox)));
        if (!connection.isOpen) throw new ConnectionLost("The connection was lost.");
        this.#phase = "connected";
        this.#ready.resolve(connection);
    }

    async #keepConnected() {
        for (;;) {
            await this.#connection.closed;
            if (this.#phase === "closed") return;
            const onPurpose = this.#phase === "renewing";
            if (!onPurpose) this.#ready = deferred();
            this.#phase = "lost";
            try {
                await this.#reconnect(onPurpose);
            } catch (error) {
                this.#finish((inbox) => inbox.fail(error), error);
            }
        }
    }

    async #reconnect(atOnce) {
        for (let failed = 0; ; ) {
            if (!atOnce || failed > 0) await this.#pause(this.#losses++);
            if (this.#phase === "closed") return;
            try {
                return await this.#connect();
            } catch (error) {
                if (++failed >= this.#settings.attempts || !(error instanceof ConnectionLost)) throw error;
            }
        }
    }

    /** Replace this connection as soon as every command that must not be sent twice has its reply. */
    async #renew(connection) {
        await this.#ready.promise.catch(() => {});
        if (this.#phase !== "connected" || !connection.isOpen) return;
        this.#phase = "renewing";
        this.#ready = deferred(); // new commands wait for the new connection
        await connection.quiet();
        connection.close();
    }

    #pause(attempt) {
        const { backoff, timers } = this.#settings;
        return new Promise((resolve) => timers.setTimeout(resolve, backoff(attempt)));
    }

    #finish(tell, error) {
        this.#phase = "closed";
        for (const inbox of this.#inboxes.values()) tell(inbox);
        this.#inboxes.clear();
        for (const feed of this.#feeds) feed.return();
        this.#ready.reject(error);
        this.#ready = deferred();
        this.#ready.reject(error);
        this.#connection.close();
    }
}

/** One session on the server. Every call rejects with a `FootlightsError` if the server refuses it. */
class Session {
    #client;

    constructor(sessionId, client) {
        this.sessionId = sessionId;
        this.#client = client;
    }

    /**
     * Subscribe to the session: unfinished turns from their beginning, then live events. With `after`, the cursor of
     * an earlier stream, everything after it. A client has at most one stream of a session at a time.
     */
    async subscribe({ after = null, terminalSeen = [] } = {}) {
        return this.#client.subscribe(after, terminalSeen);
    }

    /**
     * Begin a turn; resolves to its id. If the connection breaks before the reply, the command is sent again with the
     * same `requestId`, which begins one turn only. It is random unless given: then the call can be repeated later.
     * Rejects with `ConnectionLost` if the server cannot be reached again: the turn may have begun.
     */
    async beginTurn(input, params = {}, { requestId = randomId() } = {}) {
        return this.#client.beginTurn({ input, params, request_id: requestId });
    }

    /** Cancel a turn, or every open turn; resolves to the ids of the canceled turns. */
    async cancel(turnId = null) {
        const which = turnId === null ? {} : { turn_id: turnId };
        return (await this.#client.ask("cancel", which, { again: true })).canceled;
    }

    /** Wait for the commit of the turn; resolves to its outcome. */
    async finalize(turnId) {
        return this.#client.ask("finalize", { turn_id: turnId }, { again: true });
    }

    /** What is remembered of the player. `act`: "list", "erase", "agree" or "withdraw". */
    async notes(act = "list") {
        const { agreed, notes } = await this.#client.ask("notes", { act }, { again: true });
        return { agreed, notes };
    }

    /** Report the last event that the player has heard. */
    async heard(turnId, seq) {
        await this.#client.ask("heard", { turn_id: turnId, seq }, { again: true });
    }

    /** Cancel open turns and close the session. Its streams end after the last commit. */
    async close() {
        await this.#client.close();
    }
}

/** What changes in the world, for one consumer. Leaving a `for await` over it closes its connection. */
class CommitFeed {
    /** Position after the last commit that was taken, for `followCommits({ after })`. */
    cursor;
    /** What the user sees there, if the feed begins now. */
    world;
    #open;
    #settings;
    #under;
    #leave;
    #waiting = [];
    #news = deferred();
    #connection = null;
    #refusal = null;
    #hasLeft = false;

    constructor(open, settings, under, after, leave) {
        this.#open = open;
        this.#settings = settings;
        this.#under = under;
        this.cursor = after;
        this.#leave = leave;
    }

    /** Connect; if the connection was lost, after a pause and at the last commit that was taken. */
    async begin() {
        for (let failed = 0; !this.#hasLeft; ) {
            try {
                return await this.#connect();
            } catch (error) {
                const mayPass = error instanceof ConnectionLost || PASSING.includes(error.code);
                if (++failed >= this.#settings.attempts || !mayPass) throw error;
                await new Promise((resolve) => this.#settings.timers.setTimeout(resolve, this.#settings.backoff(failed - 1)));
            }
        }
    }

    async #connect() {
        const connection = await this.#open({
            event() {},
            notice: (_, { reason }) => (this.#refusal = new FootlightsError(reason, "The server ended the feed.")),
            commit: (commit) => this.#put(connection, commit),
        });
        this.#connection = connection;
        try {
            const after = this.cursor === null ? {} : { after: this.cursor };
            const { cursor, world } = await connection.ask("follow_commits", { under: this.#under, ...after }, true);
            if (this.cursor === null) Object.assign(this, { cursor, world });
            if (this.#hasLeft) connection.close();
        } catch (error) {
            connection.close();
            throw error;
        }
    }

    #put(connection, commit) {
        // A WebSocket has no backpressure. So the client hangs up, and goes on when it has taken what is here.
        if (this.#waiting.length >= this.#settings.maxWaiting) connection.close();
        else if (connection.isOpen) this.#waiting.push(commit);
        this.#news.resolve();
    }

    async next() {
        for (;;) {
            const news = (this.#news = deferred());
            if (this.#hasLeft) return { done: true, value: undefined };
            if (this.#waiting.length > 0) {
                const value = this.#waiting.shift();
                this.cursor = value.cursor;
                return { done: false, value };
            }
            if (this.#refusal !== null) throw this.#refusal;
            if (this.#connection.isOpen) await Promise.race([news.promise, this.#connection.closed]);
            else await this.begin();
        }
    }

    async return() {
        this.#hasLeft = true;
        this.#connection?.close();
        this.#leave();
        return { done: true, value: undefined };
    }

    [Symbol.asyncIterator]() {
        return this;
    }
}

/** Events of a session, for one consumer: `for await (const event of stream)`. Leaving the loop closes the stream. */
class Stream {
    #inbox;
    #drop;
    #hasBegun;

    constructor(inbox, drop, hasBegun) {
        this.#inbox = inbox;
        this.#drop = drop;
        this.#hasBegun = hasBegun;
    }

    /** Position in each turn, for `subscribe({ after })`; -1 for a turn that was begun and has no event yet. */
    get cursor() {
        return this.#inbox.taken.cursor;
    }

    /** Turns whose terminal event was taken and whose commit_final was not, for `subscribe({ terminalSeen })`. */
    get terminalSeen() {
        return this.#inbox.taken.terminalSeen;
    }

    /**
     * Every event of the session up to the commit_final of this turn; the stream itself stays open. Ends at once if
     * commit_final was taken already. Rejects with `unknown_turn` for a turn that this client did not begin and of
     * which it has no event.
     */
    async *untilCommit(turnId) {
        if (!this.#inbox.received.knows(turnId) && !this.#hasBegun(turnId)) {
            throw new FootlightsError("unknown_turn", "This client did not begin that turn and has no event of it.");
        }
        while (!this.#inbox.taken.isWhole(turnId)) {
            const { done, value } = await this.next();
            if (done) return;
            yield value;
        }
    }

    next() {
        return this.#inbox.take();
    }

    async return() {
        this.#drop();
        return { done: true, value: undefined };
    }

    [Symbol.asyncIterator]() {
        return this;
    }
}
