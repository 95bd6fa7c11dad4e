// Two sessions on one connection, each with its own stream.
import { connect } from "../../../../transports/footlights_transports/static/footlights.js";
import { options, print } from "./script.mjs";

const client = await connect(options.url, { batch: options.batch });

async function play(said) {
    const session = await client.start();
    const stream = await session.subscribe();
    const turnId = await session.beginTurn(said);
    const seen = new Set();
    for await (const event of stream.untilCommit(turnId)) {
        seen.add(event.session_id);
        print(event);
    }
    return { session: session.sessionId, turnId, seen: [...seen] };
}

print(await Promise.all([play("One."), play("Two.")]));
await client.close();
