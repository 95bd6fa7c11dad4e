// One turn in the conversation: what was said, what is happening, what became true of it.

import { badge } from "./changes.js";
import { button, h, said } from "./dom.js";
import { ms, words } from "./format.js";

export class Bubble {
    constructor(input, answer) {
        this.answer = answer;
        this.words = said("");
        this.now = h("p", { class: "now" }, "accepted");
        this.steps = h("ul", { class: "steps" });
        this.ended = h("div", { class: "ended" });
        this.tools = new Map();
        this.element = h(
            "article",
            { class: "turn" },
            input ? h("p", { class: "player" }, said(input)) : null,
            h("div", { class: "npc" }, this.steps, h("p", { class: "words" }, this.words), this.now),
            this.ended,
        );
    }

    show({ event_type: kind, payload }, account) {
        this.words.textContent = account.text;
        const shown = this[kind];
        if (shown) shown.call(this, payload);
    }

    model_selected({ model_id: model, reason, error }) {
        this.now.textContent = `${model} was chosen (${words(reason)})${error ? `: ${error.message}` : ""}`;
    }

    model_loading({ model_id: model, progress }) {
        const bar = h("progress", { max: 1, value: progress ?? 0, "aria-label": `${model} loads` });
        this.now.replaceChildren(`${model} loads `, bar);
    }

    model_ready({ model_id: model, load_ms: load }) {
        this.now.textContent = load ? `${model} loaded in ${ms(load)}` : `${model} is ready`;
    }

    token_delta() {
        this.now.textContent = "";
    }

    tool_call_started({ tool_call_id: id, tool_name: name }) {
        const step = h("li", { class: "running" }, `${words(name)} …`);
        this.tools.set(id, step);
        this.steps.append(step);
    }

    tool_call_result({ tool_call_id: id, tool_name: name, summary, error, canceled }) {
        const step = this.tools.get(id);
        if (!step) return;
        step.className = error || canceled ? "bad" : "done";
        step.replaceChildren(`${words(name)}: `, said(error?.message ?? summary ?? (canceled ? "canceled" : "done")));
    }

    turn_final() {
        this.now.textContent = "said; not yet true";
    }

    turn_interrupted({ reason, error }) {
        this.now.textContent = "";
        this.element.classList.add("interrupted");
        this.ended.append(h("p", { class: "bad" }, `✗ interrupted: ${error?.message ?? words(reason)}`));
    }

    commit_final({ commit_id: id, commit_outcome: outcome, issues = [], ext }) {
        this.now.textContent = "";
        const why = issues.map((each) => each.message || words(each.code)).join(" ");
        this.ended.append(h("p", { class: "commit" }, badge(outcome), " ", h("code", {}, id ?? ""), " ", why));
        for (const [approval, question] of waiting(ext)) {
            const row = h("div", { class: "approval", role: "group", "aria-label": question }, h("p", {}, said(question)));
            const reply = (yes) => () => {
                row.remove();
                this.answer(yes ? "Yes." : "No.", { [approval]: yes });
            };
            row.append(button("Approve", reply(true), { class: "primary" }), button("Refuse", reply(false)));
            this.ended.append(row);
        }
    }
}

/** The ids and questions of approvals that a commit asks for. */
function waiting(ext) {
    const news = Array.isArray(ext?.data) ? ext.data : [];
    return news.filter((each) => each.kind === "approval.pending").map(({ data }) => [data.id, data.question]);
}
