// Begins a turn, and never hears whether it did. The stream tells.
import { connect } from "../../../../transports/footlights_transports/static/footlights.js";
import { options, print, refusal } from "./script.mjs";

const client = await connect(options.url, { backoff: () => 5 });
const session = await client.start();
const stream = await session.subscribe();
print(await refusal(session.beginTurn("Hello?")));
for await (const event of stream) {
    print(event);
    if (event.event_type === "commit_final") break;
}
await client.close();
