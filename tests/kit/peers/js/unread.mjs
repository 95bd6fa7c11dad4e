// Begins a turn, takes nothing of it, and keeps the cursor.
import { connect } from "../../../../transports/footlights_transports/static/footlights.js";
import { options, print } from "./script.mjs";

const client = await connect(options.url);
const session = await client.start();
const stream = await session.subscribe();
const turnId = await session.beginTurn("A room?");
print({ sessionId: session.sessionId, turnId, cursor: stream.cursor });
await client.close();
