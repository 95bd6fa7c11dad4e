// Everything that a server refuses has its code.
import { connect } from "../../../../transports/footlights_transports/static/footlights.js";
import { options, print, refusal } from "./script.mjs";

const client = await connect(options.url);
const session = await client.start();
const unknown = client.session("s9-000009");
const turnId = await session.beginTurn("Wait.");
const stream = await session.subscribe();
print({
    unknownSession: await refusal(unknown.beginTurn("Hello?")),
    foreignStream: await refusal(unknown.subscribe()),
    unknownTurn: await refusal(session.finalize("t9-000009")),
    busy: await refusal(session.beginTurn("And me?", { busy: "reject" })),
    tooDeep: await refusal(session.beginTurn("And me?", JSON.parse(`{"a":`.repeat(20) + "1" + "}".repeat(20)))),
    notUnicode: await refusal(session.beginTurn("\ud83d")),
    badParams: await refusal(session.beginTurn("And me?", { volume: 11 })),
    followedTwice: await refusal(session.subscribe()),
    noSuchSeq: await refusal(session.heard(turnId, 999)),
    tooLong: await refusal(session.beginTurn("x".repeat(options.inputLimit + 1))),
    muchTooLong: await refusal(session.beginTurn("x".repeat(options.frameLimit + 1))),
    afterwards: await refusal(session.cancel(turnId)),
});
for await (const event of stream.untilCommit(turnId)) print(event);
await session.close();
print({ closed: await refusal(session.beginTurn("Hello?")), closedTwice: await refusal(session.close()) });
await client.close();
print({ clientClosed: await refusal(client.start()) });
