// One player, one turn, from the first word to the commit.
import { connect } from "../../../../transports/footlights_transports/static/footlights.js";
import { options, print } from "./script.mjs";

const client = await connect(options.url, { token: options.token ?? null, batch: options.batch ?? false });
const session = await client.start(options.params ?? {});
const stream = await session.subscribe();
const turnId = await session.beginTurn("A room?", { busy: "reject" });
for await (const event of stream.untilCommit(turnId)) {
    print(event);
    if (event.event_type === "token_delta") await session.heard(turnId, event.seq);
}
for await (const event of stream.untilCommit(turnId)) print({ again: event });
print({ sessionId: session.sessionId, turnId, commit: await session.finalize(turnId), cursor: stream.cursor });
await session.close();
for await (const event of stream) print(event);
await client.close();
