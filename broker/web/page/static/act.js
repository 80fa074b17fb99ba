// Actions. The viewer plans an action, sees the number of objects, and then executes the plan.

import { $, close, el, foot, notes, shell, show } from "./dom.js";
import { access, get, post, useToken } from "./api.js";
import { capital, count } from "./format.js";
import { isUTC, said } from "./time.js";

// The name of an action with n objects: "Cancel timer order-3", "Remove 12 dead letters".
function nameOf(a, n = a.all ? null : a.n ?? 1) {
  const { noun } = a.op, objects = n === null ? `all ${noun}s that match` : n !== 1 ? `${count(n)} ${noun}s`
    : a.name ? `${noun} ${a.name}` : noun;
  return a.op.label === "Fire now" ? `Fire ${objects} now` : `${a.edit ? a.label : a.op.label} ${objects}`;
}

const labelOf = (a) => a.label ?? a.op.label;

let accessChanged = () => {}; // draws the page again
export function onAccess(f) { accessChanged = f; }

// Returns the buttons of actions { op, label, name, n, all, items, edit }. op is the operation. The object of an action
// is one object with a name, or n objects, or all objects that match. items has the fields of the change for each
// object, or for all that match. If the viewer has no token, a button asks for the token, and then acts.
export function buttons(actions, done) {
  if (!access.can_act) return null;
  return actions.map((a) => el("button", {
    type: "button", class: "act" + (a.op.loses ? " danger" : "") + (access.actions ? "" : " locked"),
    "aria-label": nameOf(a) + (access.actions ? "" : ", after unlocking"),
    title: access.actions ? null : "Unlock to act",
    onclick: () => (access.actions ? ask(a, done) : unlock(() => ask(a, done))),
  }, labelOf(a)));
}

// The fields of a change's form: those of the operation that the object lacks. Many objects cannot get one time.
const opFields = (a) => a.op.fields.filter((f) => !(f.name in a.items[0])
  && !(["in", "at"].includes(f.name) && (a.all || a.n > 1))).map((f) => (f.kind === "bool"
  ? el("label", { class: "check" }, el("input", { type: "checkbox", name: f.name }), capital(f.help))
  : el("label", {}, capital(f.help) + (f.name === "at" ? `, ${isUTC() ? "UTC" : "local time"}` : ""), el("input", {
    name: f.name, placeholder: f.hint, autocomplete: "off", type: f.name === "at" ? "datetime-local" : "text", step: "1",
  }))));

// Returns the fields of the form as fields of the request.
function fieldsOf(form, op) {
  const given = Object.fromEntries([...new FormData(form)].map(([name, value]) =>
    [name, value.trim()]).filter(([, value]) => value));
  for (const f of op.fields) if (f.kind === "bool" && given[f.name]) given[f.name] = true;
  if (given.at) given.at = new Date(given.at + (isUTC() ? "Z" : "")).toISOString();
  return given;
}

async function ask(a, done) {
  if (a.edit) return edit(a, done);
  const fields = opFields(a);
  if (fields.length === 0) return plan(a, {}, done);
  show(nameOf(a), el("form", {
    onsubmit: (e) => {
      e.preventDefault();
      plan(a, fieldsOf(e.target, a.op), done);
    },
  }, fields, foot(close("Keep"), el("button", { class: "main" }, "Next: preview"))));
  $("dialog").querySelector("input").focus();
}

// The form that edits the headers and the body of one dead letter and resends it.
async function edit(a, done) {
  show(nameOf(a), el("p", { class: "quiet" }, "Reading the dead letter…"), foot(close("Keep")));
  let content;
  try {
    content = await get("content", { number: a.items[0].id });
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
      const given = new FormData(e.target), { headers, body, ...change } = fieldsOf(e.target, a.op);
      const after = given.get("headers").split("\n").map((l) => l.trim()).filter(Boolean),
        before = own.split("\n").filter(Boolean), headerOf = (line) => line.split(":")[0].trim(),
        linesOf = (lines, name) => lines.filter((l) => headerOf(l) === name);
      for (const name of new Set([...before, ...after].map(headerOf))) {
        const lines = linesOf(after, name);
        if (String(linesOf(before, name)) === String(lines)) continue;
        if (lines.length > 0) (change.header ??= []).push(...lines);
        else (change.drop_header ??= []).push(name);
      }
      const lines = (s) => s.replace(/\r\n?/g, "\n"), written = lines(given.get("body") ?? ""); // a form sends CRLF
      if (whole && written !== lines(text)) change.body = written;
      plan({ ...a, edit: false }, change, done);
    },
  }, el("p", { class: "quiet" }, "The dead letter is kept until the new message is acknowledged."),
  el("label", {}, "Headers, one per line. Delete a line to drop the header.",
    el("textarea", { name: "headers", rows: "5", spellcheck: "false", defaultValue: own })),
  whole ? el("label", {}, "Body", el("textarea", { name: "body", rows: "8", spellcheck: "false", defaultValue: text }))
    : el("p", { class: "quiet" }, "The body cannot be edited here, because it is not text or is too long."),
  opFields(a), foot(close("Keep"), el("button", { class: "main" }, "Next: preview"))));
  $("dialog").querySelector("textarea").focus();
}

function showError(title, err) {
  show(title, el("p", { class: "bad wide", role: "alert" }, err.message), foot(close()));
}

async function plan(a, fields, done) {
  show(nameOf(a), el("p", { class: "quiet" }, "Making a preview…"), foot(close("Keep")));
  let p;
  try {
    p = await post("plan", { operation: a.op.name, items: a.items.map((i) => ({ ...i, ...fields })) });
  } catch (err) {
    return showError(nameOf(a), err);
  }
  if (!$("dialog").open) return;
  const title = p.ticket ? nameOf(a, p.count) + "?" : nameOf(a);
  const repeats = said(p.sentence) + "?" === title.toLowerCase();
  show(title, !repeats && el("p", { class: "wide", id: "plan" }, said(p.sentence)), notes(p.notes), shell(p.shell),
    foot(close(p.ticket ? "Keep" : "Close"), p.ticket && el("button", {
      type: "button", class: a.op.loses ? "main danger" : "main", id: "do", onclick: () => act(a, p, done),
    }, nameOf({ ...a, name: "" }, p.count))));
  $("dialog").querySelector(".foot button").focus();
}

async function act(a, p, done) {
  $("do").disabled = true;
  try {
    const result = await post("act", { ticket: p.ticket });
    show(nameOf(a, p.count), el("p", { class: result.good ? "wide" : "warn wide", id: "done", role: "status" },
      said(result.sentence)),
      notes(result.notes), foot(close("Done")));
  } catch (err) {
    showError(nameOf(a, p.count), err);
  }
  $("dialog").querySelector(".foot button").focus();
  done?.();
}

// Asks for the token, and then calls next, if it is given.
export function unlock(next) {
  const wrong = el("p", { class: "bad", role: "alert", id: "wrong" });
  show("Unlock", el("form", {
    onsubmit: async (e) => {
      e.preventDefault();
      const input = e.target.elements.token;
      try {
        await useToken(input.value.trim());
        $("dialog").close();
        accessChanged();
        if (access.actions) next?.();
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
