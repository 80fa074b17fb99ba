// The views of the pending messages, of one message, and of the search.

import { el, facts, link, to } from "./dom.js";
import { count, counted, span } from "./format.js";
import { exactly, inZone, when } from "./time.js";
import { asking, dueFields, findField, limitField, more, targetField } from "./view.js";
import { table } from "./table.js";
import { withContent } from "./content.js";
import { letterTable } from "./letters.js";
import { timerTable } from "./timers.js";

const pendingTable = (rows, nothing) => table({
  rows, nothing, id: (m) => m.id, label: (m) => m.id,
  columns: [
    { name: "Due", kind: "tight", sort: (m) => m.due,
      cell: (m) => (m.problem ? el("span", { class: "bad" }, "dead: " + m.problem) : when(m.due)) },
    { name: "Target", cell: (m) => to(m.target || "–", "pending", { target: m.target }), sort: (m) => m.target },
    { name: "Delay-Id", cell: (m) => to(m.id, "where", { id: m.id }), sort: (m) => m.id },
    { name: "Key or Nats-Msg-Id", sort: (m) => m.key ?? m.msg_id,
      cell: (m) => (m.key ? to(m.key, "timer", { key: m.key, target: m.target })
        : el("span", { class: "wide" }, m.msg_id)) },
    { name: "Lane", kind: "tight", cell: (m) => m.stream, sort: (m) => m.stream },
    { name: "Bytes", kind: "n", cell: (m) => count(m.bytes), sort: (m) => m.bytes },
    { name: "Refused", kind: "n", cell: (m) => count(m.attempts), sort: (m) => m.attempts },
  ],
});

export const pending = asking({
  title: "Pending", about: "Messages that wait in all lanes, the first due first.", path: "pending",
  fields: [findField, targetField, ...dueFields, limitField],
  draw: (d, params) => [
    pendingTable(d.rows, "Nothing waits here."),
    d.silent && el("p", { class: "warn" }, "Left out: " + d.silent.join(", ")),
    d.more && d.cursor && more("pending", { ...params, cursor: d.cursor }),
    d.more && !d.cursor && el("p", { class: "warn" }, "The page does not read all messages: choose a target or a time, or use the command."),
  ],
});

const refusals = (w) => w.attempts > 0 && counted(w.attempts, "time")
  + (w.attempts_allowed ? ` of ${w.attempts_allowed}` : "");

const whereFacts = (w) => el("div", { class: "card" }, facts([
  ["Message", w.id], ["State", inZone(w.answer)], ["Stored in", w.stream && `${w.stream}, sequence ${w.sequence}`],
    ["Target", w.target],
  ["Accepted", exactly(w.accepted)], ["Due", exactly(w.due)], ["Refused", refusals(w)], ["Last reason", w.last_error],
  ["Deferred", w.deferred], ["Next attempt", exactly(w.retry_at)], ["Code", w.code], ["Reason", w.reason],
  ["Delivered", exactly(w.delivered_at)], ["Late by", w.delivered_at && span(w.late_seconds ?? 0)],
]));

export const where = withContent(asking({
  title: "One message", about: "Its lane, or its end.", path: "where",
  fields: [["id", "Delay-Id, or stream and sequence", "DELAY_30m-12"]], draw: whereFacts,
}), (params) => ({ id: params.id }));

export const find = asking({
  title: "Search", about: "A Delay-Id, a key, a target or a Nats-Msg-Id, in lanes, timers and dead letters.",
    path: "find",
  fields: [["find", "Search for", "order-42"]],
  draw(d, params, again) {
    const word = params.find, some = d.pending.length + d.timers.length + d.letters.length > 0 || d.message?.found;
    return [
      d.trouble.length > 0 && el("p", { class: "warn" }, "Not searched: " + d.trouble.join("; ")),
      d.message && [el("h2", {}, "Message"), whereFacts(d.message),
        d.message.found && el("p", {}, el("a", { href: link("where", { id: d.message.id }) }, "Show the message"))],
      d.target && el("p", {}, "As a target: ", el("a", { href: link("pending", { target: word }) }, "pending"), " · ",
        el("a", { href: link("timers", { target: word }) }, "timers"), " · ",
          el("a", { href: link("letters", { target: word }) }, "dead letters"), " · ",
        el("a", { href: link("retrying", { target: word }) }, "retrying")),
      d.timers.length > 0 && [el("h2", {}, "Timers"), timerTable(d.timers, "", again)],
      d.pending.length > 0 && [el("h2", {}, "Pending"), pendingTable(d.pending, "")],
      d.letters.length > 0 && [el("h2", {}, "Dead letters"), letterTable(d.letters, "", again)],
      !some && el("p", { class: "none" }, `No match for ${word}. A delivered message is found by its Delay-Id, if there is a journal.`),
      d.partial && el("p", { class: "quiet" }, "There are more results: search in one of the tables."),
    ];
  },
});
