// Follows one session after the other, each until so many turns are committed. The test says which, and when to begin.
import { connect } from "../../../../transports/footlights_transports/static/footlights.js";
import { hangUp, print, told } from "./script.mjs";

async function follow({ url, sessionId, commits, after, batch, maxWaiting, isSlow = false }) {
    const client = await connect(url, { batch, maxWaiting, backoff: () => 5 });
    const stream = await client.session(sessionId).subscribe({ after });
    print("ready");
    if (isSlow) await told();
    let left = commits;
    for await (const event of stream) {
        print(event);
        if (event.event_type === "commit_final" && --left === 0) break;
    }
    print({ cursor: stream.cursor, terminalSeen: stream.terminalSeen });
    await client.close();
}

for (let round = await told(); round !== null; round = await told()) await follow(round);
hangUp();
