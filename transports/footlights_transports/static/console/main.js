// The page: its four screens, its theme, and the form for a token.

import { get, setToken } from "./api.js";
import { button, failure, h } from "./dom.js";
import { watch } from "./state.js";
import { health } from "./health.js";
import { talk } from "./talk.js";
import { turns } from "./turns.js";
import { world } from "./world.js";

const SCREENS = { talk: ["Talk", talk], turns: ["Turns", turns], world: ["World", world], health: ["Health", health] };
const THEMES = ["auto", "light", "dark"];

const main = document.querySelector("#screen");
const tabs = document.querySelector("#tabs");
const link = document.querySelector("#link");
const theme = document.querySelector("#theme");
let leave = () => {};

function named() {
    return location.hash.slice(1).split("?")[0] in SCREENS ? location.hash.slice(1).split("?")[0] : "talk";
}

function open() {
    leave();
    const name = named();
    const [title, screen] = SCREENS[name];
    document.title = `${title} – Footlights`;
    for (const each of tabs.children) {
        if (each.hash === `#${name}`) each.setAttribute("aria-current", "page");
        else each.removeAttribute("aria-current");
    }
    main.className = `screen-${name}`;
    main.replaceChildren();
    leave = screen(main, new URLSearchParams(location.hash.split("?")[1] ?? "")) ?? (() => {});
}

function choose(chosen) {
    localStorage.setItem("footlights.theme", chosen);
    document.documentElement.dataset.theme = chosen;
    theme.textContent = { auto: "◐", light: "☀", dark: "☾" }[chosen];
    theme.setAttribute("aria-label", `Theme: ${chosen}. Change it`);
    theme.title = `Theme: ${chosen}`;
    theme.onclick = () => choose(THEMES[(THEMES.indexOf(chosen) + 1) % THEMES.length]);
}

function askForToken(error) {
    const input = h("input", { type: "password", id: "token", autocomplete: "off", required: true });
    const form = h(
        "form",
        { class: "card sign-in" },
        h("h1", {}, "This server wants a token"),
        h("p", {}, "The console is for operators: users with ", h("code", {}, "operator = true"), " in the settings."),
        h("label", { htmlFor: "token" }, "Token"),
        input,
        h("button", { type: "submit", class: "primary" }, "Open"),
        error.status === 401 && !sessionStorage.length ? null : failure(error),
        h("p", { class: "muted" }, "It is kept in this tab, and sent to this server only."),
    );
    form.addEventListener("submit", (event) => {
        event.preventDefault();
        setToken(input.value);
        begin();
    });
    main.replaceChildren(form);
    input.focus();
}

async function begin() {
    try {
        await get("/console/state");
    } catch (error) {
        if (error.status === 401 || error.status === 403) askForToken(error);
        else main.replaceChildren(failure(error), button("Try again", begin));
        return;
    }
    tabs.replaceChildren(...Object.entries(SCREENS).map(([name, [title]]) => h("a", { href: `#${name}` }, title)));
    watch(({ error, now }) => {
        link.className = error ? "bad" : "";
        link.textContent = error ? `${error.message} Trying again …` : `${now.open_turns} open`;
        link.title = error ? "" : "Open turns";
    });
    window.addEventListener("hashchange", open);
    open();
}

choose(THEMES.includes(localStorage.getItem("footlights.theme")) ? localStorage.getItem("footlights.theme") : "auto");
begin();
