// The views, tables and buttons of the operations. The broker describes each operation once (api/operations), and each
// answer has its columns, so no operation needs a table of its own.

import { el, facts, idLink, link, linkTo } from "./dom.js";
import { access, get } from "./api.js";
import { buttons } from "./act.js";
import { bytes, capital, count, duration } from "./format.js";
import { exactTime, inZone, serverNow, shortTime, timeCell } from "./time.js";
import { more, rowsView } from "./view.js";
import { table } from "./table.js";

const all = new Map(); // by name

export async function loadOperations() {
  for (const o of await get("operations")) all.set(o.name, o);
}

export const operation = (name) => all.get(name);

const chip = (text) => el("code", { class: "chip" }, text);
const wide = (text) => el("span", { class: "wide" }, text);

// The planned time of a round. Its title is the local time in the schedule's zone.
const round = (n) => el("time", { class: "next", datetime: n.at, title: n.clock }, shortTime(n.at),
  n.clocks_changed_seconds && el("span", { class: "warn" }, " (clocks changed)"));

// For each kind of a column's values: the class of its cells, and their content.
const kinds = {
  number: ["n", count], bytes: ["n", bytes], time: ["tight", timeCell], code: ["tight", chip],
  late: ["n", duration],
  due: ["tight", (v, row) => (row.problem ? el("span", { class: "bad" }, "dead: " + row.problem) : timeCell(v))],
  letter: ["tight", (v) => linkTo(String(v), "letter", { id: v })],
  target: [undefined, (v) => linkTo(v, "pending", { target: v })],
  targets: ["n", (v, { code, reason }) => el("a",
    { href: link("dead", { code, reason, by: "code,target,reason" }) }, count(v))],
  key: [undefined, (v, row) => linkTo(v, "timer", { key: v, target: row.target })],
  id: ["tight", idLink],
  tries: ["n", (v, row) => (row.attempts_allowed ? `${v} of ${row.attempts_allowed}` : count(v))],
  state: ["tight", (v, row) => row.became ?? v],
  // With the body: see content.js. With the times of the message: see timeline.
  header: [undefined, () => null], refusals: [undefined, () => null],
  rounds: ["tight", (v) => v.slice(0, 1).map(round)],
};
const text = [undefined, (v, row) => wide(inZone(String(v === row.reason ? row.last_reason ?? v : v)))];

const valueOf = (row, c) => c.field.split(".").reduce((v, name) => v?.[name], row);
const isEmpty = (v) => v === undefined || v === null || v === "";
const titleOf = (c) => capital(c.name);

function cell(row, c) {
  const v = valueOf(row, c);
  return isEmpty(v) ? "–" : (kinds[c.kind] ?? text)[1](v, row);
}

const idOf = (row) => [row.number, row.key, row.id, row.target, row.code, row.state, row.pattern, row.reason].join(" ");
const labelOf = (row) => String(row.key ?? row.pattern ?? row.number ?? row.id ?? row.target ?? "row");

// The actions of an operation for rows. request(row, action, params) returns the fields of the change for one row, or
// null. params are those of the view.
const requestOf = (row, a) => Object.fromEntries(Object.entries(a.with).map(([name, field]) => [name, row[field]]));

function actionsOf(o, rows, request, onlyMany) {
  return o.actions.filter((a) => (!onlyMany || a.many)
    && rows.every((r) => (!a.states || a.states.includes(r.state ?? r.outcome)) && request(r, a)))
    .map((a) => ({ op: operation(a.operation), name: rows.length === 1 ? labelOf(rows[0]) : "",
      n: rows.reduce((n, r) => n + (r.letters ?? 1), 0), items: rows.map((r) => request(r, a)) }));
}

// Returns the table of an answer.
export function rowsTable(o, answer, reload, request = requestOf) {
  const columns = answer.columns.filter((c) => c.kind !== "header"
    && !(c.rare && answer.rows.every((row) => isEmpty(valueOf(row, c)))))
    .map((c) => ({ name: titleOf(c), kind: (kinds[c.kind] ?? text)[0], cell: (row) => cell(row, c),
      sort: c.kind === "rounds" ? undefined : (row) => valueOf(row, c) }));
  if (o.actions.length > 0) columns.push({ name: "", kind: "act", cell: (row) => acts(o, row, reload, request) });
  return table({
    rows: answer.rows, nothing: capital(answer.empty || "nothing matches"), id: idOf, label: labelOf, columns,
    bulk: access.actions && o.actions.some((a) => a.many) && ((rows) =>
      buttons(actionsOf(o, rows, request, true), reload)),
  });
}

function acts(o, row, reload, request, edits) {
  const list = actionsOf(o, [row], request);
  if (edits && access.bodies) list.splice(1, 0, { ...list[0], edit: true, label: "Edit and resend" });
  return el("span", { class: "acts" }, buttons(list, reload));
}

const notes = (answer) => answer.rows.length > 0 && answer.notes?.map((n) => el("p", { class: "quiet" }, n));

// Returns a view of the rows of an operation. request and above see rowsTable and rowsView. above(answer, params, reload)
// is drawn above the table.
export const listView = ({ view, op, request, above = () => null, ...rest }) => rowsView({
  ...rest, op, draw: (answer, params, reload) => [
    above(answer, params, reload),
    rowsTable(operation(op), answer, reload, request && ((row, a) => request(row, a, params))), notes(answer),
    answer.next && more(view, { ...params, ...answer.next }),
  ],
});

// The last runs of a schedule, from the journal.
const runs = (row, c) => row.runs && [el("h2", {}, titleOf(c)),
  rowsTable({ actions: [] }, { ...c, rows: row.runs, empty: "The journal has no run yet." }),
  !row.runs_complete && el("p", { class: "quiet" }, "The journal is incomplete, so runs may be missing.")];

// The value of a fact. A time is exact, and zero attempts are none.
function fact(row, c) {
  const v = valueOf(row, c);
  if (isEmpty(v) || v === 0 || c.kind === "runs") return null;
  if (c.kind === "rounds") return v.map(round);
  return c.kind === "time" ? exactTime(v) : cell(row, c);
}

// The history of a message: all its times, and its refusals with their reasons. The end is last: its time is that of
// another server, whose clock may be milliseconds behind.
function timeline(row, columns) {
  const refusals = row.refusals ?? [], before = (row.attempts ?? 0) - refusals.length;
  const isEnd = ([, what]) => what === "Dead since" || what === "Delivered";
  const events = columns.filter((c) => c.kind === "time").map((c) => [valueOf(row, c), titleOf(c)])
    .concat(refusals.map((r, n) => [r.at, `Refusal ${count(before + n + 1)}`, r.reason])).filter(([at]) => at)
    .sort((a, b) => isEnd(a) - isEnd(b) || new Date(a[0]) - new Date(b[0]));
  return el("ol", { class: "timeline" }, events.map(([at, what, reason]) => el("li", {
    class: new Date(at) > serverNow() ? "later" : reason ? "bad" : null }, el("b", {}, what), " ", exactTime(at),
  reason && el("span", { class: "sub wide" }, inZone(reason)))));
}

// The facts about an object. A message has a timeline in place of its times.
export const factsOf = (o, { columns, rows }, reload, edits = false) => rows.map((row) => {
  const travels = columns.some((c) => c.kind === "refusals");
  return [el("div", { class: "card" },
    facts(columns.filter((c) => !travels || c.kind !== "time").map((c) => [titleOf(c), fact(row, c)])),
    travels && row.found !== false && timeline(row, columns), acts(o, row, reload, requestOf, edits)),
  columns.filter((c) => c.kind === "runs").map((c) => runs(row, c))];
});

// Returns a view of one object. edits adds a button for an edit of the object.
export const factsView = ({ op, edits, ...rest }) => rowsView({
  ...rest, op, draw: (answer, _, reload) => (answer.rows.length > 0 ? factsOf(operation(op), answer, reload, edits)
    : el("p", { class: "none" }, capital(answer.empty || "it was not found"))),
});
