// Requests to the server that served this page, with the token that the operator gave, and Server-Sent Events.

const KEY = "footlights.token";

export class Refused extends Error {
    constructor(status, code, message) {
        super(message);
        this.status = status;
        this.code = code;
    }
}

export function setToken(token) {
    sessionStorage.setItem(KEY, token);
}

function headers(more) {
    const token = sessionStorage.getItem(KEY);
    return token ? { authorization: `Bearer ${token}`, ...more } : more;
}

async function request(path, options) {
    let response;
    try {
        response = await fetch(path, { ...options, cache: "no-store", headers: headers(options.headers ?? {}) });
    } catch (error) {
        if (error.name === "AbortError") throw error;
        throw new Refused(0, "unreachable", "The server does not answer.");
    }
    if (response.ok) return response;
    const { code = "internal", message = "The request failed." } = (await response.json().catch(() => ({}))).error ?? {};
    throw new Refused(response.status, code, message);
}

export async function get(path) {
    return (await request(path, {})).json();
}

export async function text(path) {
    return (await request(path, {})).text();
}

export async function post(path, body = {}) {
    const options = { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) };
    const answer = await (await request(path, options)).text();
    return answer ? JSON.parse(answer) : {};
}

/** The path of a JSON pointer, for GET /v1/world. */
export function worldPath(pointer) {
    return `/v1/world${pointer.split("/").map(encodeURIComponent).join("/")}`;
}

/** Read a stream of events until it ends or `signal` aborts it: `begun` is called once, `take` gets { id, event, data }. */
export async function follow(path, { lastId = "", signal, begun, take }) {
    const response = await request(path, {
        signal,
        headers: { accept: "text/event-stream", ...(lastId ? { "last-event-id": lastId } : {}) },
    });
    begun();
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    let buffer = "";
    for (;;) {
        const { done, value } = await reader.read();
        if (done) return;
        const blocks = (buffer + value).split("\n\n");
        buffer = blocks.pop();
        for (const block of blocks) take(parse(block));
    }
}

function parse(block) {
    const parsed = { id: "", event: "message", data: null };
    for (const line of block.split("\n")) {
        const colon = line.indexOf(":");
        if (colon < 1) continue;
        const value = line.slice(colon + 1).trimStart();
        parsed[line.slice(0, colon)] = line.startsWith("data:") ? JSON.parse(value) : value;
    }
    return parsed;
}
