// Follows a session, and shows what goes on below. The test says when a period without anything has passed.
import { connect } from "../../../../transports/footlights_transports/static/footlights.js";
import { hangUp, options, print, told } from "./script.mjs";

class Watched extends WebSocket {
    #ping = null;

    constructor(url, protocols) {
        super(url, protocols);
        this.addEventListener("open", () => print("open"));
        this.addEventListener("message", ({ data }) => {
            if (this.#ping !== null && JSON.parse(data).reply === this.#ping) print("answer");
        });
    }

    send(data) {
        const { op, id } = JSON.parse(data);
        if (op === "ping") {
            this.#ping = id;
            print("ping");
        }
        super.send(data);
    }
}

const waiting = new Map();
let lastId = 0;
const timers = {
    setTimeout: (wake) => (waiting.set(++lastId, wake), lastId),
    clearTimeout: (id) => waiting.delete(id),
};

function pass() {
    const due = [...waiting.values()];
    waiting.clear();
    for (const wake of due) wake();
}

const client = await connect(options.url, { timers, WebSocket: Watched });
const stream = await client.session(options.sessionId).subscribe();
print("ready");
const printing = (async () => {
    for await (const event of stream) {
        print(event);
        if (event.event_type === "commit_final") print("committed");
    }
})();
while ((await told()) === "pass") {
    pass();
    print("passed");
}
await client.close();
await printing;
hangUp();
