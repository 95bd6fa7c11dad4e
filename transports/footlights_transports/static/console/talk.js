// Talk: a conversation with a persona, and four buttons that show what is promised.

import { Account } from "./account.js";
import { post } from "./api.js";
import { Bubble } from "./bubble.js";
import { button, empty, failure, h } from "./dom.js";
import { watch } from "./state.js";
import { Stream } from "./stream.js";

const AWAY = 1_500;
const STALL = 3;
const KEPT = 50;
const CONNECTION = {
    open: ["good", "connected"],
    cut: ["bad", "cut: it comes back with its cursor"],
    stalled: ["warn", `stalled: reads nothing for ${STALL} s`],
    lost: ["bad", "lost: trying again"],
};

let kept = null;

/** The conversation goes on while another screen is open. */
export function talk(main) {
    kept ??= conversation();
    main.append(...kept);
    main.querySelector("#line").focus();
}

function conversation() {
    const log = h("div", { class: "log", role: "log", "aria-label": "Conversation", tabIndex: 0 });
    const proof = h("div", { class: "proof", "aria-live": "polite" });
    const connection = h("p", { class: "connection" }, "not connected");
    const problem = h("div", {});
    const persona = h("select", { id: "persona" });
    const model = h("select", { id: "model" });
    const input = h("textarea", { id: "line", rows: 2, placeholder: "Say something", "aria-label": "What you say" });
    const bubbles = new Map();
    const accounts = new Map();
    let session = null;
    let stream = null;
    let last = null;

    log.append(empty("Nothing was said yet", "What you see here is not binding. What is committed stands under each answer."));
    proof.append(h("p", { class: "muted" }, "Say something, then stop it, barge in, cut your connection, or stall."));

    async function say(text, params = {}, more = {}) {
        problem.replaceChildren();
        try {
            await started();
            const chosen = { ...(persona.value && { persona: persona.value }), ...(model.value && { model: model.value }) };
            const { turn_id: turnId } = await post(`${path()}/turns`, { input: text, params: { ...chosen, ...params }, ...more });
            bubbleOf(turnId, text);
        } catch (error) {
            problem.replaceChildren(failure(error));
        }
    }

    async function started() {
        if (session) return;
        session = (await post("/v1/sessions")).session_id;
        stream = new Stream(session, take, tell);
        await stream.begun;
    }

    const path = () => `/v1/sessions/${encodeURIComponent(session)}`;

    function bubbleOf(turnId, text = "") {
        if (!bubbles.size) log.replaceChildren();
        if (!bubbles.has(turnId)) {
            const bubble = new Bubble(text, (answer, approvals) => say(answer, { approvals }));
            bubbles.set(turnId, bubble);
            accounts.set(turnId, new Account(turnId));
            log.append(bubble.element);
            if (bubbles.size > KEPT) forget(bubbles.keys().next().value);
        } else if (text && !bubbles.get(turnId).element.querySelector(".player")) {
            bubbles.get(turnId).element.prepend(new Bubble(text).element.querySelector(".player"));
        }
        return bubbles.get(turnId);
    }

    function forget(turnId) {
        bubbles.get(turnId).element.remove();
        bubbles.delete(turnId);
        accounts.delete(turnId);
    }

    function take(event) {
        const atEnd = log.scrollHeight - log.scrollTop - log.clientHeight < 80;
        const bubble = bubbleOf(event.turn_id);
        last = accounts.get(event.turn_id);
        last.take(event);
        bubble.show(event, last);
        if (atEnd) log.scrollTop = log.scrollHeight;
        showProof();
    }

    function tell(what, error) {
        const [tone, sentence] = CONNECTION[what];
        connection.className = `connection ${tone}`;
        connection.textContent = error ? `${sentence} (${error.message})` : sentence;
        if (what === "cut" || what === "stalled") for (const each of accounts.values()) if (!each.commits) each.resumed += 1;
    }

    function showProof() {
        proof.replaceChildren(
            h("p", {}, h("a", { href: `#turns?session=${session}&turn=${last.turnId}` }, last.turnId), `: ${last.got} events came`),
            h("ul", { class: "promises" }, last.promises().map(([holds, line]) => h("li", { class: holds ? "good" : "bad" }, line))),
        );
    }

    function send() {
        const text = input.value.trim();
        if (text) say(text);
        input.value = "";
        input.focus();
    }

    async function stop() {
        try {
            if (session) await post(`${path()}/cancel`);
        } catch (error) {
            problem.replaceChildren(failure(error));
        }
    }

    function bargeIn() {
        say(input.value.trim() || "Wait, one thing first!", { busy: "interrupt" });
        input.value = "";
    }

    input.addEventListener("keydown", (event) => {
        if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
            event.preventDefault();
            send();
        }
    });
    const promises = h(
        "div",
        { class: "promise-buttons", role: "group", "aria-label": "Try a promise" },
        button("Stop", stop, { title: "Cancel every open turn: decided when the call returns" }),
        button("Barge in", bargeIn, { title: "Say something that interrupts the open turn" }),
        button("Cut my connection", () => stream?.cut(AWAY), { title: "Lose the connection, and resume" }),
        button("Stall me", () => stream?.stall(STALL), { title: "Read nothing for some seconds" }),
    );
    const place = [
        h("h1", { class: "hidden" }, "Talk"),
        h(
            "section",
            { class: "card stage", "aria-label": "What people see" },
            h(
                "div",
                { class: "choices" },
                h("label", {}, "Persona ", persona),
                h("label", {}, "Model ", model),
                connection,
            ),
            log,
            problem,
            h("div", { class: "composer" }, input, button("Say", send, { class: "primary" })),
            promises,
        ),
        h("section", { class: "card", "aria-label": "What you got" }, h("h2", {}, "What you got"), proof),
    ];
    const unwatch = watch(({ now }) => {
        if (!now) return;
        fill(persona, model, now);
        unwatch();
    });
    return place;
}

function fill(persona, model, now) {
    persona.append(...now.personas.map((each) => h("option", { value: each }, each)));
    model.append(h("option", { value: "" }, "the persona's own"));
    model.append(...now.models.map(({ model_id: id }) => h("option", { value: id }, id)));
}
