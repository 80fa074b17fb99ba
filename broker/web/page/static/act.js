// Actions: plan, show how many and what, and only then act.

import { $, copy, el } from "./dom.js";
import { access, post, use } from "./api.js";

const titles = {
  cancel: "Cancel", move: "Move", fire: "Fire now", resend: "Resend", remove: "Remove for good", pause: "Pause", resume: "Resume",
};
const grave = new Set(["cancel", "remove"]);

// What a person may say beside what is chosen.
const asks = {
  move: [["by", "Later by (+5m, -5m)"], ["in", "or due after (15m)"], ["at", "or due at (2026-12-24T18:00:00Z)"]],
  resend: [["to", "To another target (optional)"], ["now", "Deliver at once, also what was never understood", true],
    ["drop_expiry", "Deliver although it has expired", true], ["unsealed", "Deliver although no broker's seal proves it", true]],
};

export function buttons(list, onDone) {
  if (!access.actions) return [];
  return list.map(([verb, deed]) => el("button", {
    type: "button", class: "small" + (grave.has(verb) ? " danger" : ""), onclick: () => ask(verb, deed, onDone),
  }, titles[verb]));
}

function show(title, ...content) {
  const dialog = $("dialog");
  dialog.replaceChildren(el("h2", { id: "dialog-title" }, title), ...content.filter(Boolean)); // null would be a word
  if (!dialog.open) dialog.showModal();
  return dialog;
}

// A dialog gives the focus back to what opened it. Where an action has changed that, it goes to the rows.
$("dialog").addEventListener("close", () => {
  const at = document.activeElement;
  if (at === document.body || $("dialog").contains(at)) $("main").focus({ preventScroll: true });
});

const foot = (...buttons) => el("div", { class: "foot" }, buttons);
const close = (text = "Close") => el("button", { type: "button", onclick: () => $("dialog").close() }, text);

function ask(verb, deed, onDone) {
  const fields = asks[verb] ?? [];
  if (fields.length === 0) return plan(verb, { ...deed, verb }, onDone);
  const inputs = fields.filter(([name]) => !(deed.all && (name === "in" || name === "at"))).map(([name, label, check]) => {
    const input = el("input", check ? { type: "checkbox", name } : { name, autocomplete: "off" });
    return { name, check, input, node: check ? el("label", { class: "check" }, input, label) : el("label", {}, label, input) };
  });
  const form = el("form", {
    onsubmit: (e) => {
      e.preventDefault();
      const said = {};
      for (const { name, check, input } of inputs) {
        if (check ? input.checked : input.value.trim()) said[name] = check ? true : input.value.trim();
      }
      plan(verb, { ...deed, ...said, verb }, onDone);
    },
  }, inputs.map((i) => i.node), foot(close("Leave it"), el("button", { class: "main" }, "Count")));
  show(titles[verb], form);
  inputs[0].input.focus();
}

const notes = (list) => (list?.length ? el("ul", { class: "notes" }, list.map((n) => el("li", {}, n))) : null);

function failed(verb, err) {
  show(titles[verb], el("p", { class: "bad wide", role: "alert" }, err.message), foot(close()));
}

async function plan(verb, deed, onDone) {
  show(titles[verb], el("p", { class: "quiet" }, "Counting…"), foot(close("Leave it")));
  let p;
  try {
    p = await post("plan", deed);
  } catch (err) {
    return failed(verb, err);
  }
  if (!$("dialog").open) return;
  const go = el("button", { type: "button", class: "main", id: "do", onclick: () => act(verb, p, onDone) }, titles[verb]);
  show(titles[verb] + "?", el("p", { class: "wide", id: "plan" }, p.sentence), notes(p.notes),
    p.shell ? el("p", { class: "verb" }, el("code", {}, p.shell), copy(p.shell)) : null,
    foot(close(p.ticket ? "Leave it" : "Close"), p.ticket ? go : null));
  (p.ticket ? $("dialog").querySelector(".foot button") : null)?.focus();
}

async function act(verb, p, onDone) {
  $("do").disabled = true;
  try {
    const done = await post("act", { ticket: p.ticket });
    show(titles[verb], el("p", { class: done.good ? "wide" : "warn wide", id: "done", role: "status" }, done.sentence),
      notes(done.notes), foot(close("Done")));
  } catch (err) {
    failed(verb, err);
  }
  onDone?.();
}

// Asks for the token, or forgets it.
export function unlock(onChange) {
  const input = el("input", { type: "password", name: "token", autocomplete: "off", spellcheck: "false" });
  const wrong = el("p", { class: "bad", role: "alert", hidden: true });
  const form = el("form", {
    onsubmit: async (e) => {
      e.preventDefault();
      try {
        await use(input.value.trim());
        $("dialog").close();
        onChange();
      } catch (err) {
        wrong.textContent = err.message;
        wrong.hidden = false;
        input.select();
      }
    },
  }, el("p", { class: "quiet" }, "DELAY_HTTP_TOKEN of this broker. This tab keeps it until it is closed, and sends it in a header only."),
  el("label", {}, "Token", input), wrong,
  foot(close("Leave it"), el("button", { class: "main" }, "Unlock")));
  show("Token", form);
  input.focus();
}
