// The stream of one session: it resumes from its cursor when it is cut, and can be cut or stalled on purpose.

import { follow } from "./api.js";

const PAUSE = 1_000;

export class Stream {
    /** `take` gets events, `tell` what becomes of the connection: "open", "cut", "stalled", "lost". */
    constructor(sessionId, take, tell) {
        this.path = `/v1/sessions/${encodeURIComponent(sessionId)}/events`;
        this.take = take;
        this.tell = tell;
        this.cursor = "";
        this.isOpen = true;
        this.stallFor = 0;
        this.away = 0;
        /** Settled when the first connection is there, or has failed. A turn that ended before it would not come. */
        this.begun = new Promise((resolve) => { this.begin = resolve; });
        this.run();
    }

    /** Break the connection, and come back after some milliseconds. */
    cut(away) {
        this.away = away;
        this.tell("cut");
        this.abort.abort();
    }

    /** Come back as a client that reads nothing for some seconds. */
    stall(seconds) {
        this.stallFor = seconds;
        this.tell("stalled");
        this.abort.abort();
    }

    close() {
        this.isOpen = false;
        this.abort.abort();
    }

    async run() {
        while (this.isOpen) {
            this.abort = new AbortController();
            const stall = this.stallFor;
            this.stallFor = 0;
            const timer = setTimeout(() => this.tell("open"), stall * 1000);
            try {
                await follow(stall ? `${this.path}?stall=${stall}` : this.path, {
                    lastId: this.cursor,
                    signal: this.abort.signal,
                    begun: this.begin,
                    take: ({ id, data }) => {
                        if (id) this.cursor = id;
                        if (data?.event_type) this.take(data);
                    },
                });
            } catch (error) {
                if (this.isOpen && error.name !== "AbortError") this.tell("lost", error);
            }
            this.begin();
            clearTimeout(timer);
            if (this.isOpen && !this.stallFor) await new Promise((resolve) => setTimeout(resolve, this.away || PAUSE));
            this.away = 0;
        }
    }
}
