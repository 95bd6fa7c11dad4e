// World: what is true, by path and by commit; what changed between two commits; the chain, and its audit.

import { get, post, worldPath } from "./api.js";
import { changeList, verdict } from "./changes.js";
import { button, empty, failure, h, said } from "./dom.js";
import { count, short } from "./format.js";

const SHOWN = 500;
const FOUND = 100;
const AUDIT_GLANCE = 250;

export function world(main, query) {
    const chain = { commits: [], first: 1, total: 0 };
    let at = query.get("at") ?? "";
    let path = query.get("path") ?? "";
    const crumbs = h("p", { class: "crumbs", "aria-label": "Path" });
    const tree = h("div", { class: "tree" });
    const search = h("input", { type: "search", placeholder: "Search names and values here", "aria-label": "Search" });
    const when = h("select", { "aria-label": "At which commit" });
    const changes = h("div", { class: "difference" });
    const from = h("select", { "aria-label": "From commit" });
    const to = h("select", { "aria-label": "To commit" });
    const list = h("ol", { class: "chain" });
    const audit = h("div", { class: "audit", "aria-live": "polite" });
    const more = button("Earlier commits", () => load(chain.first - 1));
    let shown = null;

    async function browse(next = path) {
        path = next;
        crumbs.replaceChildren(...trail(path, browse));
        try {
            const asked = at ? `/console/world?${new URLSearchParams({ at, path })}` : worldPath(path);
            shown = (await get(asked)).world;
            draw();
        } catch (error) {
            tree.replaceChildren(failure(error), button("Show the whole world of now", () => { at = when.value = ""; browse(""); }));
        }
    }

    function draw() {
        const wanted = search.value.trim().toLowerCase();
        if (wanted) tree.replaceChildren(found(shown, path, wanted, browse));
        else tree.replaceChildren(members(shown, path, browse));
    }

    async function load(before = 0) {
        try {
            const page = await get(`/console/commits?before=${before}`);
            chain.commits = before ? [...page.commits, ...chain.commits] : page.commits;
            chain.first = page.first;
            chain.total = page.total;
            drawChain();
        } catch (error) {
            list.replaceChildren(h("li", {}, failure(error)));
        }
    }

    function drawChain() {
        const newest = [...chain.commits].reverse();
        list.replaceChildren(...newest.map((each, index) => link(each, chain.first + chain.commits.length - 1 - index, look)));
        if (!newest.length) list.append(h("li", {}, empty("No commit yet", "Each turn that ends adds one.")));
        more.hidden = chain.first <= 1;
        const options = newest.map((each, index) => [each.commit_id, `#${chain.first + chain.commits.length - 1 - index} ${each.turn_id}`]);
        fill(when, [["", "now"], ...options], at);
        fill(from, options, from.value || options.at(-1)?.[0]);
        fill(to, [["", "now"], ...options], to.value);
    }

    function look(commitId) {
        at = when.value = commitId;
        browse();
        tree.scrollIntoView({ block: "nearest" });
    }

    async function compare() {
        changes.replaceChildren(h("p", { class: "muted" }, "Comparing …"));
        try {
            const asked = new URLSearchParams({ from: from.value, ...(to.value && { to: to.value }) });
            changes.replaceChildren(changeList((await get(`/console/difference?${asked}`)).changes));
        } catch (error) {
            changes.replaceChildren(failure(error));
        }
    }

    async function beginAudit() {
        try {
            await post("/console/audits");
            showAudit();
        } catch (error) {
            audit.replaceChildren(failure(error));
        }
    }

    async function showAudit() {
        try {
            const now = await get("/console/audits");
            if (!audit.isConnected) return;
            audit.replaceChildren(...auditLines(now));
            if (now.running) setTimeout(showAudit, AUDIT_GLANCE);
        } catch (error) {
            audit.replaceChildren(failure(error));
        }
    }

    when.addEventListener("change", () => { at = when.value; browse(); });
    search.addEventListener("input", draw);
    main.append(
        h("h1", { class: "hidden" }, "World"),
        h(
            "section",
            { class: "card", "aria-label": "What is true" },
            h("div", { class: "toolbar" }, h("h2", {}, "What is true"), h("label", {}, "at ", when), search),
            crumbs,
            tree,
        ),
        h(
            "section",
            { class: "card", "aria-label": "What changed" },
            h("div", { class: "toolbar" }, h("h2", {}, "What changed"), h("label", {}, "from ", from), h("label", {}, "to ", to), button("Compare", compare, { class: "primary" })),
            changes,
        ),
        h(
            "section",
            { class: "card", "aria-label": "The chain" },
            h("div", { class: "toolbar" }, h("h2", {}, "The chain"), button("Refresh", () => load()), button("Audit now", beginAudit, { class: "primary" })),
            audit,
            list,
            more,
        ),
    );
    changes.append(h("p", { class: "muted" }, "Choose two commits."));
    browse();
    load();
}

function fill(select, options, chosen) {
    select.replaceChildren(...options.map(([value, label]) => h("option", { value }, label)));
    select.value = chosen ?? "";
}

function join(path, name) {
    return `${path}/${String(name).replaceAll("~", "~0").replaceAll("/", "~1")}`;
}

function trail(path, go) {
    const names = path.split("/").slice(1);
    const steps = [button("world", () => go(""), { class: "crumb" })];
    names.forEach((name, index) => {
        const place = `/${names.slice(0, index + 1).join("/")}`;
        steps.push(" / ", button(name.replaceAll("~1", "/").replaceAll("~0", "~"), () => go(place), { class: "crumb" }));
    });
    return steps;
}

const isParent = (value) => value !== null && typeof value === "object";

function members(value, path, go) {
    if (!isParent(value)) return h("p", { class: "leaf" }, said(short(value, 100_000)));
    const entries = Object.entries(value);
    if (!entries.length) return h("p", { class: "muted" }, Array.isArray(value) ? "An empty list." : "An empty object.");
    const rows = entries.slice(0, SHOWN).map(([name, each]) => line(name, each, join(path, name), go));
    if (entries.length > SHOWN) rows.push(h("li", { class: "muted" }, `and ${count(entries.length - SHOWN)} more: search for them`));
    return h("ul", {}, rows);
}

function line(name, value, path, go) {
    if (!isParent(value)) return h("li", {}, h("span", { class: "name" }, name), said(short(value)));
    const size = Object.keys(value).length;
    return h("li", {}, button(name, () => go(path), { class: "name open" }), h("span", { class: "muted" }, Array.isArray(value) ? `${count(size)} items` : `${count(size)} members`));
}

/** Places below this one whose name or value has these words. */
function found(value, path, wanted, go) {
    const hits = [];
    const todo = [[path, "", value]];
    while (todo.length && hits.length < FOUND) {
        const [place, name, each] = todo.pop();
        const isHit = name.toLowerCase().includes(wanted) || (!isParent(each) && short(each, 10_000).toLowerCase().includes(wanted));
        if (name && isHit) hits.push(line(place, each, place, go));
        if (isParent(each)) for (const [key, child] of Object.entries(each).reverse()) todo.push([join(place, key), key, child]);
    }
    return hits.length ? h("ul", {}, hits) : empty("Nothing found", "Search looks below this path, at names and values.");
}

function link(commit, position, look) {
    const changed = commit.changes.filter((each) => each.op !== "test").length;
    const details = h(
        "details",
        {},
        h(
            "summary",
            {},
            h("span", { class: "number" }, `#${position}`),
            h("span", { class: `badge ${commit.outcome === "ok" ? "true" : "bad"}` }, commit.outcome === "ok" ? "✓" : "✗"),
            h("code", {}, commit.commit_id),
            h("span", { class: "muted" }, `${commit.turn_id} · ${commit.why ?? (changed ? `${changed} ${changed === 1 ? "change" : "changes"}` : commit.issues[0]?.code ?? "no change")}`),
        ),
    );
    details.addEventListener("toggle", () => {
        if (details.children.length > 1) return;
        details.append(
            verdict(commit),
            changeList(commit.changes),
            h("p", { class: "digests muted" }, `world ${commit.world_before.slice(0, 12)}… → ${commit.world_after.slice(0, 12)}…`),
            h("div", { class: "toolbar" }, button("The world after it", () => look(commit.commit_id)), h("a", { href: `#turns?session=${encodeURIComponent(commit.session_id)}&turn=${encodeURIComponent(commit.turn_id)}` }, "Its turn")),
        );
    });
    return h("li", {}, details);
}

function auditLines({ possible, running, done, total, report }) {
    if (!possible) return [h("p", { class: "muted" }, "This ledger is no file that could be audited.")];
    if (running) return [h("label", {}, `Auditing ${count(done)} of ${count(total)} commits `, h("progress", { max: Math.max(1, total), value: done }))];
    if (!report) return [];
    if (report.ok) return [h("p", { class: "good" }, `✓ Nothing was altered: ${count(report.commits)} commits, ${count(report.tool_steps)} tool steps. Head `, h("code", { class: "digest" }, report.head))];
    return [h("p", { class: "bad", role: "alert" }, `✗ Altered: ${report.flaw}`)];
}
