// A turn is stopped in the middle of its sentence, and another one by closing the session.
import { connect } from "../../../../transports/footlights_transports/static/footlights.js";
import { options, print } from "./script.mjs";

const client = await connect(options.url);
const session = await client.start();
const stream = await session.subscribe();

const turnId = await session.beginTurn("Go on.");
for await (const event of stream.untilCommit(turnId)) {
    print(event);
    if (event.event_type === "token_delta") print({ canceled: await session.cancel(turnId) });
}
print({ canceled: await session.cancel() });

const last = await session.beginTurn("Go on.");
for await (const event of stream) {
    print(event);
    if (event.event_type === "token_delta") {
        await session.close();
        print({ closed: last });
    }
}
await client.close();
