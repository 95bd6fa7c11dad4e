// Reads a run with the EventSource that Node has.
import { options, print } from "./script.mjs";

const source = new EventSource(options.url);
for (const type of options.types) {
    source.addEventListener(type, (event) => {
        print({ id: event.lastEventId, event: JSON.parse(event.data) });
        if (type === "done") {
            source.close();
            process.stdin.destroy();
        }
    });
}
