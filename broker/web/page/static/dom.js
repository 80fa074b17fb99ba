// Small parts of the page. Preact makes the elements, and text always becomes text nodes. No script of the page makes
// HTML from text.

import { h as el, render } from "./preact.mjs";
import { said } from "./time.js";

export { Component, h as el, render } from "./preact.mjs";

export const $ = (id) => document.getElementById(id);

export function query(params) {
  const text = new URLSearchParams(Object.entries(params).filter(([, v]) => v !== "" && v !== undefined
    && v !== null)).toString();
  return text ? "?" + text : "";
}

export const link = (view, params = {}) => "#/" + view + query(params);

// The elements for a name with dots, such as a target. A short name stays on one line. A long name may be broken after
// a dot, and elsewhere only if necessary.
export const tokens = (text = "–") => (text.length < 33 ? el("span", { class: "short" }, text)
  : text.split(/(?<=\.)/).flatMap((token) => [token, el("wbr")]));

export const linkTo = (text, view, params) => el("a", { href: link(view, params), class: "wide" }, tokens(text));

// A row of buttons. One button is pressed.
export function choice(label, options, chosen, onchoose) {
  return el("span", { class: "switch", role: "group", "aria-label": label }, options.map(([value, text]) =>
    el("button", { type: "button", "aria-pressed": String(value === chosen), onclick: () => onchoose(value) }, text)));
}

export const copy = (text) => el("button", {
  type: "button", class: "act copy", "aria-label": "Copy " + text.slice(0, 100), title: "Copy", onclick: async (e) => {
    const { dataset } = e.currentTarget; // there is no clipboard without TLS
    dataset.said = await navigator.clipboard?.writeText(text).then(() => "Copied", () => null)
      ?? "Select the text to copy it";
    setTimeout(() => delete dataset.said, 1500);
  },
}, el("svg", { viewBox: "0 0 16 16", "aria-hidden": "true" }, el("path", { d: "M6 2h8v9H6zM4 5H2v9h8v-2" })));

// A Delay-Id is long, and differs from others mainly at its end.
export const idLink = (id) => (id ? el("span", { class: "id" }, el("a", { href: link("where", { id }), title: id,
  "aria-label": id }, id.length > 16 ? "…" + id.slice(-12) : id), copy(id)) : "–");

// The equivalent shell command.
export const shell = (line) => line && el("p", { class: "verb" }, "Equivalent command:", el("code", {}, line),
  copy(line));

export function facts(pairs) {
  return el("dl", { class: "facts" }, pairs.filter(([, value]) => value !== undefined && value !== null && value !== ""
    && value !== false)
    .flatMap(([name, value]) => [el("dt", {}, name), el("dd", {}, value)]));
}

export const notes = (list) => list?.length > 0 && el("ul", { class: "notes" }, list.map((n) => el("li", {}, said(n))));

// The browser returns the focus to the button that opened the dialog. If that button is gone, the heading gets the
// focus.
const dialog = $("dialog");
dialog.addEventListener("close", () => {
  const focused = document.activeElement;
  if (focused === document.body || dialog.contains(focused)) heading()?.focus({ preventScroll: true });
});

export const heading = () => document.querySelector("main h1");

export function show(title, ...content) {
  render(null, dialog); // removes the form fields of the previous dialog
  render([el("h2", { id: "dialog-title" }, title), content], dialog);
  if (!dialog.open) dialog.showModal();
}

export const foot = (...buttons) => el("div", { class: "foot" }, buttons);

export const close = (text = "Close") => el("button", { type: "button", onclick: () => dialog.close() }, text);
