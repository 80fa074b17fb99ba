// Named timers and schedules.

import { el, facts, linkTo, tokens } from "./dom.js";
import { access } from "./api.js";
import { buttons } from "./act.js";
import { count, duration } from "./format.js";
import { shortTime, exactTime, fullTime, timeCell } from "./time.js";
import { rowsView, dueFields, limitField, more, targetField } from "./view.js";
import { table } from "./table.js";
import { withContent } from "./content.js";

const noun = (t) => (t.recurring ? "schedule" : "timer");
const stateOf = (t) => t.state ?? t.outcome;
const ref = (t) => ({ key: t.key, target: t.target, generation: t.generation });

function timerButtons(t, reload) {
  const can = { pending: ["cancel", "move", "fire", ...(t.recurring ? ["pause"] : [])],
    paused: ["cancel", "resume"] }[stateOf(t)] ?? [];
  return el("span", { class: "acts" }, buttons(can.map((verb) => ({ verb, noun: noun(t), name: t.key, request: ref(t) })),
    reload));
}

// Actions for the selected rows.
const bulk = (verbs, reload) => (rows) => buttons(verbs.map((verb) =>
  ({ verb, noun: noun(rows[0]), n: rows.length, request: { timers: rows.map(ref) } })), reload);

const recurs = (t) => t.recurring && `${t.recurring.table}, round ${t.recurring.round}`;

export const timerTable = (rows, nothing, reload) => table({
  rows, nothing, id: (t) => `${t.key} ${t.target}`, label: (t) => t.key,
    bulk: access.actions && bulk(["cancel", "move"], reload),
  columns: [
    { name: "Key", cell: (t) => linkTo(t.key, "timer", { key: t.key, target: t.target }), sort: (t) => t.key },
    { name: "Target", sort: (t) => t.target,
      cell: (t) => el("span", { class: "wide" }, tokens(t.target),
        t.recurring && el("span", { class: "sub" }, recurs(t))) },
    { name: "Due", kind: "tight", cell: (t) => timeCell(t.due), sort: (t) => t.due },
    { name: "State", kind: "tight", cell: (t) => t.became || stateOf(t), sort: (t) => t.became || stateOf(t) },
    { name: "Bytes", kind: "n", cell: (t) => count(t.size), sort: (t) => t.size },
    { name: "", kind: "act", cell: (t) => timerButtons(t, reload) },
  ],
});

export const timers = rowsView({
  title: "Named timers", path: "timers",
  about: "The timers are in the order in which they were set. The view Schedules has the recurring timers.",
  fields: [["key", "Key", "order-*"], targetField, ...dueFields,
    ["state", "State", "", ["pending", "paused", "fired", "cancelled", "all"]],
    ["kind", "Kind", "", ["once", "all"]], limitField],
  draw(d, params, reload) {
    const request = { all: true, key: params.key, target: params.target, due_after: params.due_after,
      due_before: params.due_before, once: params.kind !== "all" };
    return [
      params.target && (params.state ?? "pending") === "pending" && access.actions
        && el("p", { class: "acts" }, "All timers that match: ", buttons(["cancel",
          "move"].map((verb) => ({ verb, noun: "timer", all: true, request })), reload)),
      timerTable(d.timers, "No timer matches.", reload),
      d.next && more("timers", { ...params, after: d.next }),
    ];
  },
});

export const schedules = rowsView({
  title: "Schedules", about: "Recurring timers, in the order in which their entries were set.", path: "schedules",
  fields: [["key", "Name", "night*"], targetField, limitField],
  draw: (d, params, reload) => [
    table({
      rows: d.schedules, nothing: "No schedule matches.", id: (t) => `${t.key} ${t.target}`, label: (t) => t.key,
      bulk: access.actions && bulk(["cancel", "pause", "resume"], reload),
      columns: [
        { name: "Name", cell: (t) => linkTo(t.key, "timer", { key: t.key, target: t.target }), sort: (t) => t.key },
        { name: "Target", cell: (t) => el("span", { class: "wide" }, tokens(t.target)), sort: (t) => t.target },
        { name: "Recurs", sort: (t) => t.recurring.table,
          cell: (t) => el("span", {}, t.recurring.table, t.recurring.set
            && el("span", { class: "sub" }, "set " + t.recurring.set)) },
        { name: "Round", kind: "n", cell: (t) => count(t.recurring.round), sort: (t) => t.recurring.round },
        { name: "Due", kind: "tight", cell: (t) => (t.recurring.paused ? "paused" : timeCell(t.due)), sort: (t) => t.due },
        { name: "Then", kind: "then", cell: (t) => el("span", {}, t.next.map(next)) },
        { name: "", kind: "act", cell: (t) => timerButtons(t, reload) },
      ],
    }),
    d.next && more("schedules", { ...params, after: d.next }),
  ],
});

// A planned time. Its title is the local time in the schedule's zone.
const next = (n) => el("time", { class: "next", datetime: n.at, title: n.clock }, shortTime(n.at),
  n.clocks_changed_seconds && el("span", { class: "warn" }, " (clocks changed)"));

// The last runs of a schedule, from the journal.
const runs = (t) => [el("h2", {}, "Last runs"), t.trouble ? el("p", { class: "quiet" }, t.trouble) : table({
  rows: t.runs, nothing: "The journal has no run yet.", id: (r) => r.id, label: (r) => `run ${r.round}`,
  columns: [
    { name: "Round", kind: "n", cell: (r) => (r.round ? count(r.round) : "–"), sort: (r) => r.round },
    { name: "Due", kind: "tight", cell: (r) => timeCell(r.due), sort: (r) => r.due },
    { name: "Outcome", kind: "tight", sort: (r) => r.outcome,
      cell: (r) => el("span", { class: "chip " + (r.outcome === "delivered" ? "good" : "bad") }, r.outcome) },
    { name: "Late by", kind: "n", cell: (r) => duration(r.late_seconds), sort: (r) => r.late_seconds },
    { name: "Attempts", kind: "n", cell: (r) => count(r.attempts), sort: (r) => r.attempts },
    { name: "Message", cell: (r) => linkTo(r.id, "where", { id: r.id }) },
    { name: "Reason", cell: (r) => el("span", { class: "wide" }, r.reason || "–") },
  ],
}), t.runs && !t.runs_complete && el("p", { class: "quiet" }, "The journal is incomplete, so runs may be missing.")];

export const timer = withContent(rowsView({
  title: "One timer", about: "The state of a timer. An ended timer is shown while its history is kept.", path: "timer",
  draw: (t, _, reload) => [el("div", { class: "card" }, facts([
    ["Key", t.key], ["Target", t.target], ["State", t.became ? `${t.outcome} (${t.became})` : t.outcome],
      ["Due", exactTime(t.due)],
    ["Recurs", recurs(t)], ["Generation", t.generation && String(t.generation)], ["Reason", t.why],
      ["As of", fullTime(t.at)],
  ]), timerButtons(t, reload)), t.recurring && runs(t)],
}), (params) => ({ key: params.key, target: params.target }));

