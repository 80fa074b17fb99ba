// The view "Publish a delay" shows the line of code that publishes a message, in each language. It publishes nothing.

import { copy, el } from "./dom.js";
import { get } from "./api.js";

const fields = [["target", "Target", ""], ["when", "After, or at", "1h30m, or 2026-12-24T18:00:00Z"],
  ["body", "Body", ""]];

export function publish(_, { redraw }) {
  const input = { target: "orders.expire", when: "30m", body: '{"id":42}' };
  let commands = null, error = null;
  get("lines").then((v) => { commands = v; redraw(); }, (err) => { error = err; redraw(); });
  return {
    title: "Publish a delay",
    stop() {},
    tree: () => [
      el("h1", { tabindex: "-1" }, "Publish a delay"),
      el("p", { class: "quiet" }, "Any client that can publish to JetStream can publish a delayed message. This page "
        + "publishes nothing."),
      el("form", {
        class: "search", onsubmit: (e) => e.preventDefault(), oninput: (e) => {
          Object.assign(input, Object.fromEntries(new FormData(e.currentTarget)));
          redraw();
        },
      }, fields.map(([name, label, hint]) => el("label", {}, label,
        el("input", { name, defaultValue: input[name], placeholder: hint, autocomplete: "off",
          spellcheck: "false" })))),
      el("div", { id: "lines" }, error ? el("p", { class: "bad" }, error.message) : commands
        && lines(commands, input.target.trim(), input.when.trim(), input.body)),
    ],
  };
}

function lines(commands, target, when, body) {
  const problem = check(target, when);
  if (problem) return el("p", { class: "bad", role: "alert" }, problem);
  const way = isTime(when) ? "at" : "in", subject = `${commands.prefix}${way}.${when}.${target}`;
  const own = { language: "Shell", line: `delaybroker pub '${inShell(target)}' '${inShell(body)}' --${way} ${when}` };
  const others = commands.lines.map((l) => ({ ...l, line: l.line.replace("SUBJECT", () => subject)
    .replace("BODY", () => escapes[l.language]?.(body) ?? body) }));
  return [el("p", {}, "Publish to ", el("code", { class: "wide" }, subject)),
    [own, ...others].map((l) => el("div", { class: "line", key: l.language }, el("b", {}, l.language),
      el("code", {}, l.line), copy(l.line)))];
}

const inShell = (text) => text.replaceAll("'", "'\\''");

// Escapes a body for the quotes of a language.
const inQuotes = (body) => body.replaceAll("\\", "\\\\").replaceAll("'", "\\'").replaceAll("\n", "\\n");
const escapes = { "NATS CLI": inShell, JavaScript: inQuotes, Python: inQuotes,
  Go: (body) => body.replaceAll("`", "` + \"`\" + `") };

function check(target, when) {
  if (!/^[^\s.*>]+(\.[^\s.*>]+)*$/.test(target)) {
    return "The target is invalid: want tokens separated by dots, without wildcards.";
  }
  return /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(Z|[+-]\d\d:\d\d)|(\d+(ms|s|m|h|d|w))+)$/.test(when) ? ""
    : "The time is invalid: want a duration such as 1h30m, or a time with a zone such as 2026-12-24T18:00:00Z.";
}

const isTime = (when) => /^\d{4}/.test(when);
