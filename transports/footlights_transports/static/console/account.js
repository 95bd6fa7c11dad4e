// An account of what one client got of one turn: which events came, which were declared as missed, and what ended it.

export class Account {
    constructor(turnId) {
        this.turnId = turnId;
        this.text = "";
        this.got = 0;
        this.declared = 0;
        this.undeclared = 0;
        this.repeated = 0;
        this.terminals = 0;
        this.commits = 0;
        this.resumed = 0;
        this.whole = null;
        this.last = -1;
    }

    take({ seq, event_type: kind, payload }) {
        if (seq <= this.last) {
            this.repeated += 1;
            return;
        }
        const missed = (payload.dropped_seq_ranges ?? []).reduce((sum, { start_seq: first, end_seq: last }) => sum + last - first + 1, 0);
        this.declared += missed;
        if (seq < 1_000_000_000) this.undeclared += seq - this.last - 1 - missed;
        this.last = seq;
        this.got += 1;
        if (kind === "token_delta") this.say(payload);
        if (kind === "turn_final" && !payload.text_forgotten) this.whole = payload.text === this.text;
        if (kind === "turn_final" && !payload.text_forgotten) this.text = payload.text;
        if (kind === "turn_final" || kind === "turn_interrupted") this.terminals += 1;
        if (kind === "commit_final") this.commits += 1;
    }

    /** Offsets count code points, and not the units of JavaScript's strings. */
    say({ delta, offset }) {
        const points = /[\ud800-\udfff]/.test(this.text) ? Array.from(this.text) : this.text;
        this.text = (typeof points === "string" ? points.slice(0, offset) : points.slice(0, offset).join("")) + delta;
    }

    /** [holds, sentence] for each promise, as far as it is known. */
    promises() {
        const lines = [
            [this.undeclared === 0, this.undeclared ? `${this.undeclared} events missing, undeclared` : "nothing is missing in silence"],
            [this.repeated === 0, this.repeated ? `${this.repeated} events came twice` : "no event came twice"],
        ];
        if (this.declared) lines.unshift([true, `${this.declared} events missed or joined, each one declared`]);
        if (this.resumed) lines.unshift([true, `resumed ${this.resumed === 1 ? "once" : `${this.resumed} times`}, from its cursor`]);
        if (this.whole !== null) lines.push([this.whole, this.whole ? "every word arrived" : "the end healed the words"]);
        if (this.terminals) lines.push([this.terminals === 1, `ended ${this.terminals === 1 ? "once" : `${this.terminals} times`}`]);
        if (this.commits) lines.push([this.commits === 1, `committed ${this.commits === 1 ? "once" : `${this.commits} times`}`]);
        return lines;
    }
}
