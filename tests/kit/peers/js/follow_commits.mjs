// Follows what changes, as often as the test says, and prints each commit.
import { connect } from "../../../../transports/footlights_transports/static/footlights.js";
import { hangUp, print, told } from "./script.mjs";

const { url, token, maxWaiting } = JSON.parse(process.argv[2]);
const client = await connect(url, { token, maxWaiting, backoff: () => 5 });
for (let round = await told(); round !== null; round = await told()) {
    const { count, after, under, isSlow = false } = round;
    try {
        const feed = await client.followCommits({ after, under });
        print({ world: feed.world ?? null, cursor: feed.cursor });
        if (isSlow) await told();
        let left = count;
        while (left-- > 0) print((await feed.next()).value);
        await feed.return();
        print({ left: feed.cursor });
    } catch ({ code }) {
        print({ refused: code });
    }
}
await client.close();
hangUp();
