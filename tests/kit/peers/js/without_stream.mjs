// Has a session and no stream of it on a server that dies, and goes on with the session on the next one.
import { connect } from "../../../../transports/footlights_transports/static/footlights.js";
import { hangUp, options, print, told } from "./script.mjs";

const client = await connect(options.url, { backoff: () => 20, attempts: 1000 });
const session = await client.start();
const before = await session.beginTurn("A room?");
print({ before });
await told();
const after = await session.beginTurn("Still there?");
print({ after, canceled: await session.cancel(), commit: await session.finalize(after) });
const stream = await session.subscribe({ after: { [before]: -1 } });
for await (const event of stream.untilCommit(before)) print(event);
await session.close();
await client.close();
hangUp();
