// Begins a turn whose reply is lost, and follows it to its commit.
import { connect } from "../../../../transports/footlights_transports/static/footlights.js";
import { options, print } from "./script.mjs";

const client = await connect(options.url, { backoff: () => 20, attempts: 1000 });
const session = await client.start({ session_id: "inn" });
const stream = await session.subscribe();
const turnId = await session.beginTurn("Hello?");
print(turnId);
for await (const event of stream.untilCommit(turnId)) print(event);
print(await session.beginTurn("And again?"));
await client.close();
