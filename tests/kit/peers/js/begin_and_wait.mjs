// Begins a turn on a server that dies, and waits until another one tells how it ended.
import { connect } from "../../../../transports/footlights_transports/static/footlights.js";
import { options, print } from "./script.mjs";

const client = await connect(options.url, { backoff: () => 20, attempts: 1000 });
const session = await client.start();
const stream = await session.subscribe();
const turnId = await session.beginTurn("A room?");
for await (const event of stream.untilCommit(turnId)) {
    print(event);
    if (event.event_type === "token_delta") print("speaking");
}
print(await session.beginTurn("Still there?"));
await session.close();
for await (const event of stream) print(event);
await client.close();
