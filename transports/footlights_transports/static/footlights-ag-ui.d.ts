import { HttpAgent, type HttpAgentConfig } from "@ag-ui/client";

/** An HttpAgent for a Footlights server: it resumes runs whose connection breaks, and cancels on the server. */
export class FootlightsAgent extends HttpAgent {
    constructor(
        config: HttpAgentConfig & {
            /** For how long to try to reach the server again after a connection broke; 60,000 by default. */
            retryMs?: number;
        },
    );

    /** Cancel every open run on the server. A run goes on until the server says how it ended. */
    abortRun(): void;

    /** Cancel one run. If the server cannot be told, this disconnects. */
    cancelRun(runId: string): Promise<void>;
}
