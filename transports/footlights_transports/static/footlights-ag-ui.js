/**
 * AG-UI agent that resumes and cancels: an HttpAgent for a Footlights server.
 *
 *     import { FootlightsAgent } from "./footlights-ag-ui.js";
 *
 *     const agent = new FootlightsAgent({ url: "http://127.0.0.1:7601/ag-ui/innkeeper" });
 *     agent.addMessage({ id: "1", role: "user", content: "A room, please." });
 *     await agent.runAgent();
 *
 * It differs from HttpAgent in three ways. A run whose connection breaks is continued after the last event that came,
 * also with a server that was restarted meanwhile: the application sees one stream, without gap or repeat, and a
 * CUSTOM event `footlights.reconnecting` where it broke. A server that stays away ends the run with RUN_ERROR.
 * `abortRun` cancels every open run on the server, and each then ends with the server's own RUN_FINISHED. And only the
 * last message of the user is sent, because the server ignores earlier ones.
 */
import { HttpAgent } from "@ag-ui/client";

const FIRST_DELAY_MS = 100;
const LONGEST_DELAY_MS = 1_000;
/** How often a request is made that has not been answered at all. */
const FIRST_ATTEMPTS = 3;
/** The server sends something every 15 seconds, so a connection that is silent for so long is dead. */
const SILENCE_MS = 40_000;
const CANCEL_MS = 5_000;
/** Statuses of a server, or of a proxy before it, that may answer differently in a moment. */
const REFUSED_FOR_NOW = new Set([408, 409, 425, 429, 500, 502, 503, 504]);
const RECONNECTING = `data: ${JSON.stringify({ type: "CUSTOM", name: "footlights.reconnecting", value: {} })}\n\n`;

export class FootlightsAgent extends HttpAgent {
    /**
     * @param config As for HttpAgent, and `retryMs`: for how long to try to reach the server again after a connection
     *     broke, 60,000 by default.
     */
    constructor({ retryMs = 60_000, ...config }) {
        super(config);
        const send = this.fetch;
        this.fetch = (url, request) => follow(send, url, request, retryMs);
    }

    async runAgent(parameters, subscriber) {
        const runId = parameters?.runId ?? crypto.randomUUID();
        this.openRuns ??= new Map(); // not in the constructor, which a clone does not run
        this.openRuns.set(runId, { isSent: false });
        try {
            return await super.runAgent({ ...parameters, runId }, subscriber);
        } finally {
            this.openRuns.delete(runId);
        }
    }

    requestInit(input) {
        const last = input.messages.findLast((each) => each.role === "user");
        const isOnlyAnswer = input.resume?.length && input.messages.at(-1)?.role !== "user";
        const messages = last && !isOnlyAnswer ? [last] : [];
        const forwardedProps = { ...input.forwardedProps, footlights: { resumes: true } };
        const run = this.openRuns?.get(input.runId);
        if (run) run.isSent = true;
        return super.requestInit({ ...input, messages, forwardedProps });
    }

    /** Cancel every open run on the server. A run goes on until the server says how it ended. */
    abortRun() {
        for (const [runId, { isSent }] of this.openRuns ?? []) {
            if (isSent) this.cancelRun(runId);
            else super.abortRun();
        }
    }

    /** Cancel one run. If the server cannot be told, this disconnects, and the server cancels after its grace period. */
    async cancelRun(runId) {
        const url = `${this.url}/runs/${encodeURIComponent(runId)}/cancel`;
        for (const until = Date.now() + CANCEL_MS; this.openRuns.has(runId) && Date.now() < until; ) {
            const response = await this.fetch(url, { method: "POST", headers: { ...this.headers } }).catch(() => null);
            if (response?.ok) return;
            await pause(FIRST_DELAY_MS); // the request of the run may still be on its way
        }
        if (this.openRuns.has(runId)) super.abortRun();
    }
}

/** The response to a request. If it is a stream, its body goes on over as many connections as it takes. */
async function follow(send, url, request, retryMs) {
    const first = await connect(send, url, request);
    if (!isStream(first)) return first;
    const encoder = new TextEncoder();
    const events = eventsOfRun(send, url, request, first, retryMs);
    const body = new ReadableStream({
        async pull(controller) {
            try {
                const { done, value } = await events.next();
                if (done) controller.close();
                else controller.enqueue(encoder.encode(value));
            } catch (error) {
                controller.error(error);
            }
        },
        cancel: () => events.return(),
    });
    return new Response(body, { headers: first.headers });
}

/** The first response. A request without an answer is made again, which is safe because the run has a name. */
async function connect(send, url, request) {
    for (let attempt = 1, delay = FIRST_DELAY_MS; ; attempt += 1, delay *= 2) {
        try {
            const response = await send(url, request);
            if (attempt === FIRST_ATTEMPTS || !REFUSED_FOR_NOW.has(response.status)) return response;
        } catch (error) {
            if (attempt === FIRST_ATTEMPTS || request.signal?.aborted) throw error;
        }
        await pause(delay, request.signal);
    }
}

/** The events of a run, each as its text, over all connections. The last one is the end of the run. */
async function* eventsOfRun(send, url, request, first, retryMs) {
    let response = first;
    let lastId;
    let brokenSince = null;
    let delay = FIRST_DELAY_MS;
    while (true) {
        try {
            for await (const event of eventsIn(response)) {
                brokenSince = null;
                delay = FIRST_DELAY_MS;
                lastId = /^id: (.*)$/m.exec(event)?.[1] ?? lastId;
                yield event;
                if (isEnd(event)) return;
            }
        } catch (error) {
            if (request.signal?.aborted) throw error;
        }
        if (brokenSince === null) {
            brokenSince = Date.now();
            if (lastId !== undefined) yield RECONNECTING; // nothing may come before RUN_STARTED
        } else if (Date.now() - brokenSince > retryMs) {
            yield failure("unreachable", "The server cannot be reached. Run again with the same runId to learn the outcome.");
            return;
        }
        await pause(delay, request.signal);
        delay = Math.min(2 * delay, LONGEST_DELAY_MS);
        const headers = { ...request.headers, ...(lastId === undefined ? {} : { "Last-Event-ID": lastId }) };
        response = await send(url, { ...request, headers }).catch(() => null);
        if (response !== null && !response.ok && !REFUSED_FOR_NOW.has(response.status)) {
            yield failure("refused", `HTTP ${response.status}: ${await response.text()}`);
            return;
        }
    }
}

/** The whole events in a response. What is cut off at its end is left out, because it comes again. */
async function* eventsIn(response) {
    if (!isStream(response)) return;
    const reader = response.body.getReader();
    const decoder = new TextDecoder();
    let rest = "";
    try {
        while (true) {
            const { done, value } = await withinSilence(reader.read());
            if (done) return;
            const events = (rest + decoder.decode(value, { stream: true })).split(/\r?\n\r?\n/);
            rest = events.pop();
            for (const event of events) yield `${event}\n\n`;
        }
    } finally {
        reader.cancel().catch(() => {});
    }
}

function isStream(response) {
    return Boolean(response?.ok && response.headers.get("content-type")?.startsWith("text/event-stream"));
}

/** The end of a run that the server cannot tell. An error of the stream would be thrown by HttpAgent a second time. */
function failure(code, message) {
    return `data: ${JSON.stringify({ type: "RUN_ERROR", code, message })}\n\n`;
}

function isEnd(event) {
    const data = /^data: (.*)$/m.exec(event)?.[1];
    return data !== undefined && ["RUN_FINISHED", "RUN_ERROR"].includes(JSON.parse(data).type);
}

/** The same, unless it takes so long that the connection must be dead. */
async function withinSilence(read) {
    let timer;
    const silence = new Promise((_, reject) => {
        timer = setTimeout(() => reject(new Error("The connection is silent.")), SILENCE_MS);
    });
    try {
        return await Promise.race([read, silence]);
    } finally {
        clearTimeout(timer);
    }
}

/** Wait, but not for a request that is aborted. */
function pause(ms, signal) {
    return new Promise((resolve) => {
        const timer = setTimeout(resolve, ms);
        signal?.addEventListener("abort", () => (clearTimeout(timer), resolve()), { once: true });
    });
}
