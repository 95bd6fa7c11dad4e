// State of the server, asked for while a screen needs it. One poll serves all parts of the page.

import { get } from "./api.js";

const EVERY = 500;
const KEPT = 300;

export const state = { now: null, settled: [], count: 0, error: null };
const listeners = new Set();
let timer = null;

/** Call this after each poll, until the function that it returns is called. */
export function watch(listener) {
    listeners.add(listener);
    if (timer === null) poll();
    return () => listeners.delete(listener);
}

async function poll() {
    timer = setTimeout(poll, document.hidden ? EVERY * 8 : EVERY);
    try {
        const now = await get(`/console/state?after=${state.count}`);
        if (now.count < state.count || (state.now && now.epoch !== state.now.epoch)) state.settled = [];
        state.settled = [...now.settled.reverse(), ...state.settled].slice(0, KEPT);
        state.count = now.count;
        state.now = now;
        state.error = null;
    } catch (error) {
        state.error = error;
    }
    for (const each of listeners) each(state);
}
