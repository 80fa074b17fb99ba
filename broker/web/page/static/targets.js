// Targets: deliveries, refusals and pauses.

import { choice, el, linkTo, tokens } from "./dom.js";
import { access } from "./api.js";
import { buttons } from "./act.js";
import { count, counted, perSecond } from "./format.js";
import { timeCell } from "./time.js";
import { rowsView, targetField } from "./view.js";
import { table } from "./table.js";

const actionButton = (verb, target, reload) => el("span", { class: "acts" },
  buttons([{ verb, noun: "target", name: target, request: { target } }], reload));
const pauseColumn = (reload) => ({ name: "", kind: "act", cell: (t) =>
  (t.target && !t.paused ? actionButton("pause", t.target, reload) : "") });

export const retrying = rowsView({
  title: "Retrying", about: "Refused messages, their reasons and next attempts. The largest group is first.",
    path: "retrying", fields: [targetField],
  draw: (d, params, reload) => [
    table({
      rows: d.groups, nothing: "No message waits in the retry lanes.", id: (g) => `${g.target} ${g.state} ${g.id}`,
        label: (g) => g.target,
      columns: [
        { name: "Target", sort: (g) => g.target,
          cell: (g) => (g.target ? linkTo(g.target, "retrying", { target: g.target }) : "all others") },
        { name: "Messages", kind: "n", cell: (g) => count(g.messages), sort: (g) => g.messages },
        { name: "Last reason", sort: (g) => g.last_reason,
          cell: (g) => el("span", { class: "wide" }, g.last_reason || "–", el("span", { class: "sub" }, g.state)) },
        { name: "Attempts", kind: "n", sort: (g) => g.attempts,
          cell: (g) => (g.attempts_allowed ? `${g.attempts} of ${g.attempts_allowed}` : count(g.attempts)) },
        { name: "Next", kind: "tight", cell: (g) => timeCell(g.next_attempt), sort: (g) => g.next_attempt },
        { name: "Example", cell: (g) => (g.id ? linkTo(g.id, "where", { id: g.id }) : "–") },
        pauseColumn(reload),
      ],
    }),
    d.messages < d.waiting && el("p", { class: "quiet" }, `The groups are incomplete: ${count(d.messages)} of `
      + `${count(d.waiting)} messages were read.`),
  ],
});

const parts = {
  paused: (d, reload) => [
    access.can_act && el("form", {
      class: "search", onsubmit: (e) => {
        e.preventDefault();
        const target = new FormData(e.target).get("pattern").trim();
        buttons([{ verb: "pause", noun: "target", name: target, request: { target } }], reload)[0].props.onclick();
      },
    }, el("label", {}, "Target, or a pattern", el("input", { name: "pattern", placeholder: "orders.>",
      autocomplete: "off" })), el("button", {}, "Pause target")),
    table({
      rows: d.paused, nothing: "No target is paused.", id: (p) => p.pattern, label: (p) => p.pattern,
      columns: [
        { name: "Pattern", cell: (p) => el("span", { class: "wide" }, tokens(p.pattern)), sort: (p) => p.pattern },
        { name: "State", kind: "tight", cell: (p) => p.state, sort: (p) => p.state },
        { name: "Since", kind: "tight", cell: (p) => timeCell(p.since), sort: (p) => p.since },
        { name: "Waiting", kind: "n", cell: (p) => count(p.waiting), sort: (p) => p.waiting },
        { name: "", kind: "act", cell: (p) => (p.state === "paused" ? actionButton("resume", p.pattern, reload) : "") },
      ],
    }),
  ],
  refusing: (d, reload) => table({
    rows: d.targets, nothing: "No target refuses messages.", id: (t) => t.target, label: (t) => t.target,
    columns: [
      { name: "Target", sort: (t) => t.target,
        cell: (t) => (t.target ? linkTo(t.target, "retrying", { target: t.target }) : "all others") },
      { name: "Waiting", kind: "n", cell: (t) => count(waiting(t)), sort: waiting },
      { name: "Last reason", cell: (t) => el("span", { class: "wide" },
        t.retrying[0].last_reason || t.retrying[0].state) },
      { name: "Rate", kind: "tight", cell: (t) => t.rate ?? "–" },
      { name: "Paused", cell: (t) => t.paused ?? "–" },
      pauseColumn(reload),
    ],
  }),
  delivered: (d, reload) => [
    table({
      rows: d.flows, nothing: "No message was delivered yet.", id: (f) => f.target, label: (f) => f.target,
      columns: [
        { name: "Target", cell: (f) => linkTo(f.target, "pending", { target: f.target }), sort: (f) => f.target },
        { name: "Delivered", kind: "n", sort: (f) => f.delivered,
          cell: (f) => total(f.delivered_per_second, f.delivered) },
        { name: "Refused", kind: "n", cell: (f) => total(f.refused_per_second, f.refused), sort: (f) => f.refused },
        { name: "Limit", kind: "n", sort: (f) => f.limit_per_second ?? 0,
          cell: (f) => (f.limit_per_second ? el("span", { title: f.rate }, count(f.limit_per_second) + "/s") : "–") },
        { name: "Paused", cell: (f) => f.paused ?? "–" },
        pauseColumn(reload),
      ],
    }),
    el("p", { class: "quiet" }, "Targets are grouped by their first two tokens, or by a pattern of DELAY_RATE. Rates are averages of the last ten seconds. Totals count from the start of the instances. A limit applies to each target, for all instances together."),
    d.silent > 0 && el("p", { class: "warn" }, counted(d.silent, "instance")
      + " sent no authenticated report, so the numbers are incomplete."),
  ],
};

const waiting = (t) => t.retrying.reduce((n, g) => n + g.messages, 0);
const total = (perSec, n) => el("span", {}, perSecond(perSec), el("span", { class: "sub" }, count(n) + " in total"));

export const targets = rowsView({
  title: "Targets", about: "Deliveries, refusals and pauses, by target.", path: "targets",
  draw(d, params, reload) {
    const part = parts[params.show] ? params.show : d.targets.length > 0 ? "refusing" : "delivered";
    const names = [["delivered", `Delivered (${d.flows.length})`], ["refusing", `Refusing (${d.targets.length})`],
      ["paused", `Paused (${d.paused.length})`]];
    return [choice("Which targets", names, part, (show) => { location.hash = "#/targets?show=" + show; }),
      el("div", { class: "stack", key: part }, parts[part](d, reload))];
  },
});
