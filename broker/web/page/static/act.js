// Actions. The viewer plans an action, sees the number of objects, and then executes the plan.

import { $, close, el, foot, notes, shell, show } from "./dom.js";
import { access, get, post, useToken } from "./api.js";
import { count } from "./format.js";
import { inZone, isUTC } from "./time.js";

const labels = {
  cancel: "Cancel", move: "Move", fire: "Fire now", resend: "Resend", edit: "Edit and resend", remove: "Remove",
  pause: "Pause", resume: "Resume",
};
const isDestructive = (verb) => verb === "cancel" || verb === "remove";
const label = (verb, noun) => (verb === "cancel" && noun === "schedule" ? "Delete" : labels[verb]);

// The name of an action with n objects: "Cancel timer order-3", "Remove 12 dead letters".
function nameOf(a, n = a.all ? null : a.n ?? 1) {
  const objects = n === null ? `all ${a.noun}s that match` : n !== 1 ? `${count(n)} ${a.noun}s`
    : a.name ? `${a.noun} ${a.name}` : a.noun;
  return a.verb === "fire" ? `Fire ${objects} now` : `${label(a.verb, a.noun)} ${objects}`;
}

let accessChanged = () => {}; // draws the page again
export function onAccess(f) { accessChanged = f; }

// Returns the buttons of actions { verb, noun, name, n, all, request }. The object of an action is one object with a
// name, or n objects, or all objects that match the request. request has the fields of the request. If the viewer has
// no token, a button asks for the token.
export function buttons(actions, done) {
  if (!access.can_act) return null;
  return actions.map((a) => el("button", {
    type: "button", class: "act" + (isDestructive(a.verb) ? " danger" : "") + (access.actions ? "" : " locked"),
    "aria-label": nameOf(a) + (access.actions ? "" : ", after unlocking"),
    title: access.actions ? null : "Unlock to act", onclick: () => (access.actions ? ask(a, done) : unlock()),
  }, label(a.verb, a.noun)));
}

// The ways to give the new time of a move.
const ways = [["by", "Later or earlier by", "+5m or -5m"], ["in", "Due after", "15m"], ["at", "Due at", ""]];

function moveFields(a) {
  const allowed = a.all || a.n > 1 ? ways.slice(0, 1) : ways;
  return allowed.map(([name, label, hint], n) => el("div", { class: "way" },
    el("label", { class: "check" }, el("input", { type: "radio", name: "way", value: name, checked: n === 0 }),
      name === "at" ? `${label} (${isUTC() ? "UTC" : "local time"})` : label),
    el("input", {
      name, placeholder: hint, "aria-label": label, autocomplete: "off",
        type: name === "at" ? "datetime-local" : "text", step: "1",
      onfocus: (e) => { e.target.closest(".way").querySelector("input").checked = true; },
    })));
}

const resendFields = () => [
  el("label", {}, "To another target (optional)", el("input", { name: "to", autocomplete: "off" })),
  [["now", "Deliver now (required for requests that could not be parsed)"],
    ["drop_expiry", "Deliver even if the message has expired"],
    ["unsealed", "Include messages without a valid seal"]]
    .map(([name, label]) => el("label", { class: "check" }, el("input", { type: "checkbox", name }), label)),
];

// Returns the fields of the form as fields of the request.
function fieldsOf(form, verb) {
  const given = Object.fromEntries([...new FormData(form)].map(([name, value]) =>
    [name, value.trim()]).filter(([, value]) => value));
  for (const box of ["now", "drop_expiry", "unsealed"]) if (given[box]) given[box] = true;
  if (verb !== "move") return given;
  const value = given[given.way];
  return { [given.way]: given.way === "at" && value ? new Date(value + (isUTC() ? "Z" : "")).toISOString() : value };
}

async function ask(a, done) {
  if (a.verb === "edit") return edit(a, done);
  const fields = a.verb === "move" ? moveFields(a) : a.verb === "resend" ? resendFields() : null;
  if (!fields) return plan(a, { ...a.request, verb: a.verb }, done);
  show(nameOf(a), el("form", {
    onsubmit: (e) => {
      e.preventDefault();
      plan(a, { ...a.request, ...fieldsOf(e.target, a.verb), verb: a.verb }, done);
    },
  }, fields, foot(close("Keep"), el("button", { class: "main" }, "Next: preview"))));
  $("dialog").querySelector("input:not([type=radio])").focus();
}

// The form that edits the headers and the body of one dead letter and resends it.
async function edit(a, done) {
  show(nameOf(a), el("p", { class: "quiet" }, "Reading the dead letter…"), foot(close("Keep")));
  let content;
  try {
    content = await get("content", { number: a.request.number });
  } catch (err) {
    return showError(nameOf(a), err);
  }
  const own = Object.entries(content.editable ?? {}).flatMap(([name, values]) =>
    values.map((v) => `${name}: ${v}`)).join("\n");
  const text = content.body.text ?? "", whole = content.body.size === 0
    || (content.body.text && content.body.shown === content.body.size);
  show(nameOf(a), el("form", {
    onsubmit: (e) => {
      e.preventDefault();
      const given = new FormData(e.target), { headers, body, ...rest } = fieldsOf(e.target, "resend");
      const after = given.get("headers").split("\n").map((l) => l.trim()).filter(Boolean),
        before = own.split("\n").filter(Boolean);
      const headerOf = (line) => line.split(":")[0].trim();
      const linesOf = (lines, name) => lines.filter((l) => headerOf(l) === name),
        same = (name) => String(linesOf(before, name)) === String(linesOf(after, name));
      const names = [...new Set([...before, ...after].map(headerOf))].filter((name) => !same(name)),
        edit = { drop: [], set: {} };
      for (const name of names) {
        const values = linesOf(after, name).map((l) => l.slice(l.indexOf(":") + 1).trim());
        if (values.length > 0) edit.set[name] = values;
        else edit.drop.push(name);
      }
      const lines = (s) => s.replace(/\r\n?/g, "\n"), written = lines(given.get("body") ?? ""); // a form sends CRLF
      if (whole && written !== lines(text)) edit.body = base64(written);
      plan({ ...a, verb: "resend" }, { ...a.request, ...rest, verb: "resend", edit }, done);
    },
  }, el("p", { class: "quiet" }, "The dead letter is kept until the new message is acknowledged."),
  el("label", {}, "Headers, one per line. Delete a line to drop the header.",
    el("textarea", { name: "headers", rows: "5", spellcheck: "false", defaultValue: own })),
  whole ? el("label", {}, "Body", el("textarea", { name: "body", rows: "8", spellcheck: "false", defaultValue: text }))
    : el("p", { class: "quiet" }, "The body cannot be edited here, because it is not text or is too long."),
  resendFields(), foot(close("Keep"), el("button", { class: "main" }, "Next: preview"))));
  $("dialog").querySelector("textarea").focus();
}

const base64 = (text) => btoa(Array.from(new TextEncoder().encode(text), (b) => String.fromCharCode(b)).join(""));

function showError(title, err) {
  show(title, el("p", { class: "bad wide", role: "alert" }, err.message), foot(close()));
}

async function plan(a, request, done) {
  show(nameOf(a), el("p", { class: "quiet" }, "Making a preview…"), foot(close("Keep")));
  let p;
  try {
    p = await post("plan", request);
  } catch (err) {
    return showError(nameOf(a), err);
  }
  if (!$("dialog").open) return;
  const title = p.ticket ? nameOf(a, p.count) + "?" : nameOf(a);
  show(title, el("p", { class: "wide", id: "plan" }, inZone(p.sentence)), notes(p.notes), shell(p.shell),
    foot(close(p.ticket ? "Keep" : "Close"), p.ticket && el("button", {
      type: "button", class: isDestructive(a.verb) ? "main danger" : "main", id: "do", onclick: () => act(a, p, done),
    }, nameOf({ ...a, name: "" }, p.count))));
  $("dialog").querySelector(".foot button").focus();
}

async function act(a, p, done) {
  $("do").disabled = true;
  try {
    const result = await post("act", { ticket: p.ticket });
    show(nameOf(a, p.count), el("p", { class: result.good ? "wide" : "warn wide", id: "done", role: "status" },
      inZone(result.sentence)),
      notes(result.notes), foot(close("Done")));
  } catch (err) {
    showError(nameOf(a, p.count), err);
  }
  $("dialog").querySelector(".foot button").focus();
  done?.();
}

// Asks for the token.
export function unlock() {
  const wrong = el("p", { class: "bad", role: "alert", id: "wrong" });
  show("Unlock", el("form", {
    onsubmit: async (e) => {
      e.preventDefault();
      const input = e.target.elements.token;
      try {
        await useToken(input.value.trim());
        $("dialog").close();
        accessChanged();
      } catch (err) {
        $("wrong").textContent = err.message;
        input.select();
      }
    },
  }, el("p", { class: "quiet" }, "Enter one of the tokens in DELAY_HTTP_TOKEN. The browser keeps the token until you "
    + "close this tab, and sends it only in a header."),
  el("label", {}, "Token", el("input", { type: "password", name: "token", autocomplete: "off", spellcheck: "false" })),
    wrong,
  foot(close("Close"), el("button", { class: "main" }, "Unlock"))));
  $("dialog").querySelector("input").focus();
}
