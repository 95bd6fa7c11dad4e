// Begins a run with fetch, and reads it with the npm package eventsource-parser.
import { createParser } from "eventsource-parser";
import { options, print } from "./script.mjs";

const answer = await fetch(options.url, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(options.body),
});
const parser = createParser({
    onEvent: ({ id, event, data }) => {
        const read = JSON.parse(data);
        if (read.type !== event) throw new Error("an event of another type than its name");
        print({ id, event: read });
    },
    onError: (error) => {
        throw error;
    },
});
const text = new TextDecoder();
for await (const piece of answer.body) parser.feed(text.decode(piece, { stream: true }));
process.stdin.destroy();
