// Elements, made without HTML: whatever a player or a model said is text, and never markup.

/** h("p", { class: "note", onclick }, "text", child, null): an element. */
export function h(tag, attributes = {}, ...children) {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) {
        if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
        else if (name in element && name !== "list") element[name === "class" ? "className" : name] = value;
        else if (name === "class") element.className = value;
        else if (value !== null && value !== undefined && value !== false) element.setAttribute(name, value);
    }
    element.append(...children.flat().filter((each) => each !== null && each !== undefined && each !== false));
    return element;
}

/** Words that somebody said: in their own direction, apart from ours. */
export function said(text) {
    return h("bdi", { class: "said", dir: "auto" }, text);
}

export function button(label, onclick, attributes = {}) {
    return h("button", { type: "button", onclick, ...attributes }, label);
}

export function empty(title, text) {
    return h("div", { class: "empty" }, h("p", { class: "empty-title" }, title), h("p", {}, text));
}

export function failure(error) {
    const code = error.code ? `${error.code}: ` : "";
    return h("p", { class: "failure", role: "alert" }, `${code}${error.message}`);
}

const SVG = "http://www.w3.org/2000/svg";

export function svg(tag, attributes = {}, ...children) {
    const element = document.createElementNS(SVG, tag);
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    element.append(...children);
    return element;
}
