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
 * also with a server that was restarted meanwhile: the application sees one stream, without gap or repeat. `abortRun`
 * cancels the run on the server, and the run then ends with the server's own RUN_FINISHED. And only the last message of
 * the user is sent, because the server ignores earlier ones.
 */
import { HttpAgent } from "@ag-ui/client";

const FIRST_DELAY_MS = 100;
const LONGEST_DELAY_MS = 5_000;
const FIRST_CONNECTION_MS = 5_000;
/** Statuses of a server, or of a proxy before it, that may answer differently in a moment. */
const REFUSED_FOR_NOW = new Set([408, 409, 425, 429, 500, 502, 503, 504]);

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

    requestInit(input) {
        const last = input.messages.findLast((each) => each.role === "user");
        const isOnlyAnswer = input.resume?.length && input.messages.at(-1)?.role !== "user";
        this.runId = input.runId;
        return super.requestInit({ ...input, messages: last && !isOnlyAnswer ? [last] : [] });
    }

    /** Cancel the run on the server. The run goes on until the server says how it ended. */
    abortRun() {
        if (this.runId === undefined || !this.isRunning) return;
        const url = `${this.url}/runs/${encodeURIComponent(this.runId)}/cancel`;
        const canceled = this.fetch(url, { method: "POST", headers: { ...this.headers } });
        // If the server cannot be told, disconnecting is what is left: it then cancels after its grace period.
        canceled.then(
            (response) => response.ok || super.abortRun(),
            () => super.abortRun(),
        );
    }
}

/** The response to a request. If it is a stream, its body goes on over as many connections as it takes. */
async function follow(send, url, request, retryMs) {
    const first = await connect(send, url, request, FIRST_CONNECTION_MS);
    const isStream = first.headers.get("content-type")?.startsWith("text/event-stream");
    if (!first.ok || !isStream) return first;
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

/** The events of a run, each as its text, over all connections. The last one is the end of the run. */
async function* eventsOfRun(send, url, request, first, retryMs) {
    let response = first;
    let lastId;
    while (true) {
        try {
            for await (const event of eventsIn(response.body)) {
                lastId = /^id: (.*)$/m.exec(event)?.[1] ?? lastId;
                yield event;
                if (isEnd(event)) return;
            }
        } catch (error) {
            if (request.signal?.aborted) throw error;
        }
        const headers = { ...request.headers, ...(lastId === undefined ? {} : { "Last-Event-ID": lastId }) };
        response = await connect(send, url, { ...request, headers }, retryMs);
        if (!response.ok) throw new Error(`HTTP ${response.status}: ${await response.text()}`);
    }
}

/** A response that is no refusal for the moment. Tried for so long, which is safe: the run has a name. */
async function connect(send, url, request, retryMs) {
    const until = Date.now() + retryMs;
    for (let delay = FIRST_DELAY_MS; ; delay = Math.min(2 * delay, LONGEST_DELAY_MS)) {
        const isLast = Date.now() + delay > until;
        try {
            const response = await send(url, request);
            if (isLast || !REFUSED_FOR_NOW.has(response.status)) return response;
        } catch (error) {
            if (isLast || request.signal?.aborted) throw error;
        }
        await new Promise((resolve) => setTimeout(resolve, delay));
    }
}

/** The whole events in a body. What is cut off at its end is left out, because it comes again. */
async function* eventsIn(body) {
    const reader = body.getReader();
    const decoder = new TextDecoder();
    let rest = "";
    try {
        while (true) {
            const { done, value } = await reader.read();
            if (done) return;
            const events = (rest + decoder.decode(value, { stream: true })).split("\n\n");
            rest = events.pop();
            for (const event of events) yield `${event}\n\n`;
        }
    } finally {
        reader.cancel().catch(() => {});
    }
}

function isEnd(event) {
    const data = /^data: (.*)$/m.exec(event)?.[1];
    return data !== undefined && ["RUN_FINISHED", "RUN_ERROR"].includes(JSON.parse(data).type);
}
