// Actions. A person plans an action, sees the number of its objects, and then executes it.

import { $, close, el, foot, notes, shell, show } from "./dom.js";
import { access, get, post, use } from "./api.js";
import { count } from "./format.js";
import { inZone, isUTC } from "./time.js";

const words = {
  cancel: "Cancel", move: "Move", fire: "Fire now", resend: "Resend", edit: "Edit and resend", remove: "Remove",
  pause: "Pause", resume: "Resume",
};
const destroys = (verb) => verb === "cancel" || verb === "remove";
const word = (verb, noun) => (verb === "cancel" && noun === "schedule" ? "Delete" : words[verb]);

// The name of an action with its object: "Cancel timer order-3", "Remove 12 dead letters".
function named(a, n = 1) {
  const object = n === 1 && a.name ? `${a.noun} ${a.name}` : n === 1 ? a.noun : `${count(n)} ${a.noun}s`;
  return a.verb === "fire" ? `Fire ${object} now` : `${word(a.verb, a.noun)} ${object}`;
}

const buttonWords = (a, n) => (a.verb === "fire" ? `Fire ${a.noun} now`
  : `${word(a.verb, a.noun)} ${n === 1 ? a.noun : `${count(n)} ${a.noun}s`}`);

let changed = () => {}; // draws the page again after a change of the rights
export function onAccess(f) { changed = f; }

// Returns the buttons for actions { verb, noun, name, deed }. deed has the fields of the request. If actions are on and
// the viewer has no token, a button asks for the token.
export function buttons(actions, done) {
  if (!access.can_act) return null;
  return actions.map((a) => el("button", {
    type: "button", class: "act" + (destroys(a.verb) ? " danger" : "") + (access.actions ? "" : " locked"),
    "aria-label": (a.all ? `${word(a.verb, a.noun)} all ${a.noun}s that match` : named(a, a.n))
      + (access.actions ? "" : ", after unlocking"),
    title: access.actions ? null : "Unlock to act", onclick: () => (access.actions ? ask(a, done) : unlock()),
  }, word(a.verb, a.noun)));
}

const ways = [["by", "Later or earlier by", "+5m or -5m"], ["in", "Due after", "15m"], ["at", "Due at", ""]];

function moveFields(a) {
  const kinds = a.all || a.n > 1 ? ways.slice(0, 1) : ways;
  return kinds.map(([name, label, hint], n) => el("div", { class: "way" },
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
    ["drop_expiry", "Deliver although it has expired"],
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
  if (!fields) return plan(a, { ...a.deed, verb: a.verb }, done);
  show(a.all ? `${word(a.verb, a.noun)} all ${a.noun}s that match` : named(a, a.n), el("form", {
    onsubmit: (e) => {
      e.preventDefault();
      plan(a, { ...a.deed, ...fieldsOf(e.target, a.verb), verb: a.verb }, done);
    },
  }, fields, foot(close("Keep"), el("button", { class: "main" }, "Next: preview"))));
  $("dialog").querySelector("input:not([type=radio])").focus();
}

// The form that edits the headers and the body of one dead letter and resends it.
async function edit(a, done) {
  show(named(a), el("p", { class: "quiet" }, "Reading the letter…"), foot(close("Keep")));
  let content;
  try {
    content = await get("content", { number: a.deed.number });
  } catch (err) {
    return failed(named(a), err);
  }
  const own = Object.entries(content.editable ?? {}).flatMap(([name, values]) =>
    values.map((v) => `${name}: ${v}`)).join("\n");
  const text = content.body.text ?? "", whole = content.body.size === 0
    || (content.body.text && content.body.shown === content.body.size);
  show(named(a), el("form", {
    onsubmit: (e) => {
      e.preventDefault();
      const given = new FormData(e.target), { headers, body, ...rest } = fieldsOf(e.target, "resend");
      const after = given.get("headers").split("\n").map((l) => l.trim()).filter(Boolean),
        before = own.split("\n").filter(Boolean);
      const nameOf = (line) => line.split(":")[0].trim();
      const linesOf = (lines, name) => lines.filter((l) => nameOf(l) === name),
        same = (name) => String(linesOf(before, name)) === String(linesOf(after, name));
      const names = [...new Set([...before, ...after].map(nameOf))].filter((name) => !same(name)),
        edit = { drop: [], set: {} };
      for (const name of names) {
        const values = linesOf(after, name).map((l) => l.slice(l.indexOf(":") + 1).trim());
        if (values.length > 0) edit.set[name] = values;
        else edit.drop.push(name);
      }
      const lines = (s) => s.replace(/\r\n?/g, "\n"), written = lines(given.get("body") ?? ""); // a form sends CRLF
      if (whole && written !== lines(text)) edit.body = base64(written);
      plan({ ...a, verb: "resend" }, { ...a.deed, ...rest, verb: "resend", edit }, done);
    },
  }, el("p", { class: "quiet" }, "The dead letter is kept until the new message is acknowledged."),
  el("label", {}, "Headers, one on each line; delete a line to drop the header",
    el("textarea", { name: "headers", rows: "5", spellcheck: "false", defaultValue: own })),
  whole ? el("label", {}, "Body", el("textarea", { name: "body", rows: "8", spellcheck: "false", defaultValue: text }))
    : el("p", { class: "quiet" }, "The body cannot be edited here: it is not text, or too long."),
  resendFields(), foot(close("Keep"), el("button", { class: "main" }, "Next: preview"))));
  $("dialog").querySelector("textarea").focus();
}

const base64 = (text) => btoa(Array.from(new TextEncoder().encode(text), (b) => String.fromCharCode(b)).join(""));

function failed(title, err) {
  show(title, el("p", { class: "bad wide", role: "alert" }, err.message), foot(close()));
}

async function plan(a, deed, done) {
  show(named(a, a.n), el("p", { class: "quiet" }, "Making a preview…"), foot(close("Keep")));
  let p;
  try {
    p = await post("plan", deed);
  } catch (err) {
    return failed(named(a, a.n), err);
  }
  if (!$("dialog").open) return;
  const title = p.ticket ? named(a, p.count) + "?" : named(a, a.n);
  show(title, el("p", { class: "wide", id: "plan" }, inZone(p.sentence)), notes(p.notes), shell(p.shell),
    foot(close(p.ticket ? "Keep" : "Close"), p.ticket && el("button", {
      type: "button", class: destroys(a.verb) ? "main danger" : "main", id: "do", onclick: () => act(a, p, done),
    }, buttonWords(a, p.count))));
  $("dialog").querySelector(".foot button").focus();
}

async function act(a, p, done) {
  $("do").disabled = true;
  try {
    const result = await post("act", { ticket: p.ticket });
    show(named(a, p.count), el("p", { class: result.good ? "wide" : "warn wide", id: "done", role: "status" },
      inZone(result.sentence)),
      notes(result.notes), foot(close("Done")));
  } catch (err) {
    failed(named(a, p.count), err);
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
        await use(input.value.trim());
        $("dialog").close();
        changed();
      } catch (err) {
        $("wrong").textContent = err.message;
        input.select();
      }
    },
  }, el("p", { class: "quiet" }, 
    "One of the tokens in DELAY_HTTP_TOKEN. The token stays in this tab until you close the tab, and is sent only in a header."),
  el("label", {}, "Token", el("input", { type: "password", name: "token", autocomplete: "off", spellcheck: "false" })),
    wrong,
  foot(close("Close"), el("button", { class: "main" }, "Unlock"))));
  $("dialog").querySelector("input").focus();
}
