// The views of the pending messages, of one message, and of the search.

import { el, facts, link, linkTo } from "./dom.js";
import { count, counted, duration } from "./format.js";
import { exactTime, inZone, timeCell } from "./time.js";
import { rowsView, dueFields, findField, limitField, more, targetField } from "./view.js";
import { table } from "./table.js";
import { withContent } from "./content.js";
import { letterTable } from "./letters.js";
import { timerTable } from "./timers.js";

const pendingTable = (rows, nothing) => table({
  rows, nothing, id: (m) => m.id, label: (m) => m.id,
  columns: [
    { name: "Due", kind: "tight", sort: (m) => m.due,
      cell: (m) => (m.problem ? el("span", { class: "bad" }, "dead: " + m.problem) : timeCell(m.due)) },
    { name: "Target", cell: (m) => linkTo(m.target || "–", "pending", { target: m.target }), sort: (m) => m.target },
    { name: "Delay-Id", cell: (m) => linkTo(m.id, "where", { id: m.id }), sort: (m) => m.id },
    { name: "Key or Nats-Msg-Id", sort: (m) => m.key ?? m.msg_id,
      cell: (m) => (m.key ? linkTo(m.key, "timer", { key: m.key, target: m.target })
        : el("span", { class: "wide" }, m.msg_id)) },
    { name: "Lane", kind: "tight", cell: (m) => m.stream, sort: (m) => m.stream },
    { name: "Bytes", kind: "n", cell: (m) => count(m.bytes), sort: (m) => m.bytes },
    { name: "Refused", kind: "n", cell: (m) => count(m.attempts), sort: (m) => m.attempts },
  ],
});

export const pending = rowsView({
  title: "Pending", about: "The waiting messages of all lanes, in the order of their due times.", path: "pending",
  fields: [findField, targetField, ...dueFields, limitField],
  draw: (d, params) => [
    pendingTable(d.rows, "No waiting message matches."),
    d.silent && el("p", { class: "warn" }, "These lanes were not read: " + d.silent.join(", ")),
    d.more && d.cursor && more("pending", { ...params, cursor: d.cursor }),
    d.more && !d.cursor && el("p", { class: "warn" }, "The page has not read all messages. Choose a target or a time, or use the command."),
  ],
});

const refusals = (w) => w.attempts > 0 && counted(w.attempts, "time")
  + (w.attempts_allowed ? ` of ${w.attempts_allowed}` : "");

const whereFacts = (w) => el("div", { class: "card" }, facts([
  ["Message", w.id], ["State", inZone(w.answer)], ["Stored in", w.stream && `${w.stream}, sequence ${w.sequence}`],
    ["Target", w.target],
  ["Accepted", exactTime(w.accepted)], ["Due", exactTime(w.due)], ["Refused", refusals(w)], ["Last reason", w.last_error],
  ["Deferred", w.deferred], ["Next attempt", exactTime(w.retry_at)], ["Code", w.code], ["Reason", w.reason],
  ["Delivered", exactTime(w.delivered_at)], ["Late by", w.delivered_at && duration(w.late_seconds ?? 0)],
]));

export const where = withContent(rowsView({
  title: "One message", about: "The lane of a message, or its outcome.", path: "where",
  fields: [["id", "Delay-Id, or stream and sequence", "DELAY_30m-12"]], draw: whereFacts,
}), (params) => ({ id: params.id }));

export const find = rowsView({
  title: "Search", about: "Search lanes, timers and dead letters for a Delay-Id, a key, a target or a Nats-Msg-Id.",
  path: "find",
  fields: [["find", "Search for", "order-42"]],
  draw(d, params, reload) {
    const text = params.find, some = d.pending.length + d.timers.length + d.letters.length > 0 || d.message?.found;
    return [
      d.trouble.length > 0 && el("p", { class: "warn" }, "A part of the search failed: " + d.trouble.join("; ")),
      d.message && [el("h2", {}, "Message"), whereFacts(d.message),
        d.message.found && el("p", {}, el("a", { href: link("where", { id: d.message.id }) }, "Show the message"))],
      d.target && el("p", {}, "As a target: ", el("a", { href: link("pending", { target: text }) }, "pending"), " · ",
        el("a", { href: link("timers", { target: text }) }, "timers"), " · ",
          el("a", { href: link("letters", { target: text }) }, "dead letters"), " · ",
        el("a", { href: link("retrying", { target: text }) }, "retrying")),
      d.timers.length > 0 && [el("h2", {}, "Timers"), timerTable(d.timers, "", reload)],
      d.pending.length > 0 && [el("h2", {}, "Pending"), pendingTable(d.pending, "")],
      d.letters.length > 0 && [el("h2", {}, "Dead letters"), letterTable(d.letters, "", reload)],
      !some && el("p", { class: "none" }, `No match for ${text}. A delivered message has a match only `
        + "for its Delay-Id, and only if the broker has a journal."),
      d.partial && el("p", { class: "quiet" }, "There may be more matches. Search in one of the tables."),
    ];
  },
});
