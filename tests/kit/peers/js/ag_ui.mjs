// Runs an agent with AG-UI's own client, or with ours. The test says what to do: {say, runId}, {answer, payload}, {abort}.
import { FootlightsAgent } from "./footlights-ag-ui.js";
import { HttpAgent } from "@ag-ui/client";
import { hangUp, options, print, told } from "./script.mjs";

const Agent = options.ours ? FootlightsAgent : HttpAgent;
const agent = new Agent({ url: options.url, threadId: options.threadId, ...(options.ours ? { retryMs: options.retryMs } : {}) });
let running;
// The stock client reports a broken connection here too, and throws once more where nothing can catch it.
console.error = () => {};
if (!options.ours) process.on("unhandledRejection", () => {});

function run(parameters) {
    const watch = {
        onEvent: ({ event }) => print({ ag_ui: event }),
        onRunFailed: ({ error }) => print({ failed: error.message }),
    };
    running = agent.runAgent(parameters, watch).then(
        () => print({ over: true }),
        (error) => print({ over: false, message: error.message }),
    );
}

for (let order = await told(); order !== null; order = await told()) {
    if (order.say !== undefined) {
        if (order.say !== null) agent.addMessage({ id: String(agent.messages.length), role: "user", content: order.say });
        run({ runId: order.runId });
        if (order.abortAtOnce) agent.abortRun();
    } else if (order.answer !== undefined) {
        run({ resume: [{ interruptId: order.answer, status: "resolved", payload: order.payload }] });
    } else if (order.abort) {
        agent.abortRun();
    } else {
        await running;
        print({ messages: agent.messages, pending: agent.pendingInterrupts });
    }
}
await running;
hangUp();
