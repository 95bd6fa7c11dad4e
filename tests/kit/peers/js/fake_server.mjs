// A server that does what a test says, behind a WebSocket class that needs no network.

/** A queue with one reader: what was put can be awaited. */
class Arrivals {
    #there = [];
    #wanted = [];

    put(value) {
        if (this.#wanted.length > 0) this.#wanted.shift()(value);
        else this.#there.push(value);
    }

    next() {
        if (this.#there.length > 0) return Promise.resolve(this.#there.shift());
        return new Promise((wake) => this.#wanted.push(wake));
    }

    get count() {
        return this.#there.length;
    }
}

/** Timers that fire when a test says so. Those that are due at once fire as they always do. */
export class FakeClock {
    #now = 0;
    #waiting = new Map();
    #lastId = 0;

    setTimeout(wake, pause) {
        const id = ++this.#lastId;
        if (pause === 0) setTimeout(wake, 0);
        else this.#waiting.set(id, { wake, at: this.#now + pause });
        return id;
    }

    clearTimeout(id) {
        this.#waiting.delete(id);
    }

    /** How many timers have not fired. */
    get waiting() {
        return this.#waiting.size;
    }

    pass(milliseconds) {
        const end = this.#now + milliseconds;
        for (;;) {
            const [[id, next] = []] = [...this.#waiting].sort(([, one], [, other]) => one.at - other.at);
            if (id === undefined || next.at > end) break;
            this.#now = next.at;
            this.#waiting.delete(id);
            next.wake();
        }
        this.#now = end;
    }
}

/** The server's end of one connection. */
class Line {
    #socket;
    #commands = new Arrivals();

    constructor(socket) {
        this.#socket = socket;
    }

    get url() {
        return this.#socket.url;
    }

    get offered() {
        return this.#socket.offered;
    }

    get wasLeft() {
        return this.#socket.readyState > 1;
    }

    /** Commands that the test has not taken yet. */
    get waiting() {
        return this.#commands.count;
    }

    open(protocol = "footlights.v1") {
        this.#socket.protocol = protocol;
        this.#socket.readyState = 1;
        this.#socket.onopen();
    }

    took(data) {
        this.#commands.put(JSON.parse(data));
    }

    /** The next command; it must be this one. */
    async command(op) {
        const command = await this.#commands.next();
        if (command.op !== op) throw new Error(`${command.op} came where ${op} was expected`);
        return command;
    }

    /** Take the next command, and say that it was done. */
    async done(op, result = {}) {
        const command = await this.command(op);
        this.send({ reply: command.id, ok: true, result });
        return command;
    }

    /** Take the next command, and refuse it. */
    async refuse(op, code) {
        const command = await this.command(op);
        this.send({ reply: command.id, ok: false, error: { code, message: "No." } });
        return command;
    }

    send(frame) {
        this.sendRaw(JSON.stringify(frame));
    }

    sendRaw(data) {
        this.#socket.onmessage?.({ data });
    }

    drop(code = 1006) {
        this.#socket.readyState = 3;
        this.#socket.onerror?.({});
        this.#socket.onclose?.({ code });
    }

    /** The peer begins to close, and has not finished. */
    beginClose() {
        this.#socket.readyState = 2;
    }
}

export class FakeServer {
    /** What becomes of the next connections: "open", "held", "refused", or a subprotocol. Then they are opened. */
    plan = [];
    /** Connection attempts. */
    attempts = 0;
    #lines = new Arrivals();

    get WebSocket() {
        const server = this;
        return class FakeSocket {
            readyState = 0;
            protocol = "";

            constructor(url, protocols) {
                this.url = url;
                this.offered = protocols;
                queueMicrotask(() => server.#meet(this));
            }

            send(data) {
                this.line.took(data);
            }

            close() {
                this.readyState = 2;
            }
        };
    }

    /** The next connection that is opened. */
    line() {
        return this.#lines.next();
    }

    #meet(socket) {
        this.attempts += 1;
        const fate = this.plan.shift() ?? "open";
        const line = (socket.line = new Line(socket));
        if (fate === "refused") {
            line.drop();
            return;
        }
        this.#lines.put(line);
        if (fate !== "held") line.open(fate === "open" ? "footlights.v1" : fate);
    }
}

const DIGEST = "0".repeat(64);
const PAYLOADS = {
    turn_accepted: { turns_ahead: 0 },
    token_delta: { delta: "x", offset: 0 },
    turn_final: { text: "", authoritative: false },
    turn_interrupted: { reason: "runtime_restart" },
    commit_final: { commit_digest: DIGEST, commit_outcome: "ok", authoritative: true },
};

/** An event of the session "s". `gap` is the range that it declares as dropped. */
export function event(event_type, seq, { turn_id = "t", session_id = "s", gap = null } = {}) {
    const payload = { ...PAYLOADS[event_type] };
    if (gap !== null) payload.dropped_seq_ranges = [{ start_seq: gap[0], end_seq: gap[1] }];
    return { schema_v: "1.0", session_id, turn_id, seq, mono_ts_ms: seq, event_type, payload };
}

/** A whole turn of four events. */
export function turn(turn_id) {
    const types = ["turn_accepted", "token_delta", "turn_final", "commit_final"];
    return types.map((each, seq) => event(each, seq, { turn_id }));
}
