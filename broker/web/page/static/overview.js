// The overview: findings, numbers, charts, instances.

import { choice, el } from "./dom.js";
import { count, counted, perSecond, rate, duration } from "./format.js";
import { Chart } from "./charts.js";
import { access, get } from "./api.js";
import { growth, listen, live } from "./live.js";
import { relativeTime, shortTime, timeCell } from "./time.js";
import { table } from "./table.js";
import { unlock } from "./act.js";

function trend(number) {
  const g = growth(number);
  return g && g.by > 0 ? `+${count(g.by)} in ${duration(Math.max(1, Math.round(g.seconds)))}` : "";
}

// Each card has an id, a label, an address, a number, a note, and a class for a number that is a problem.
const cards = [
  ["pending", "Pending", "#/pending", (n) => n.pending, (n) => `${perSecond(n.delivered_per_second)} delivered`],
  ["minute", "Due next minute", "#/pending?due_before=1m", (n) => n.minute,
    (n) => (n.minute === null ? "being counted" : "of the pending messages")],
  ["overdue", "Overdue", "#/lanes", (n) => n.overdue ?? (n.oldest_seconds < 1 ? 0 : null),
    (n) => (n.oldest_seconds > 0 ? `oldest by ${duration(n.oldest_seconds)}` : "nothing is late"),
      (n) => n.oldest_seconds >= 5 && "bad"],
  ["retrying", "Retrying", "#/retrying", (n) => n.retrying, (n) => `${perSecond(n.refused_per_second)} refused`,
    (n) => n.retrying > 0 && "warn"],
  ["dead", "Dead letters", "#/dead", (n) => n.dead,
    (n) => (n.dead === null ? "being counted" : trend("dead")
      || (n.paused > 0 ? `${counted(n.paused, "message")} paused` : "")),
    (n) => n.dead > 0 && (growth("dead")?.by > 0 ? "bad" : "warn")],
];

// The view that shows the object of a finding, by the name of the check.
const views = { lanes: "lanes", streams: "lanes", storage: "lanes", targets: "retrying", paused: "targets",
  "dead letters": "dead" };

export function overview(_, { redraw }) {
  let since = "1h", ahead = "1h", past = null, forecast = null, found = null;

  async function ask(path, span, take) {
    try {
      take(await get(path, { span }));
      redraw();
    } catch { /* the header shows that the broker does not answer */ }
  }
  const takePast = () => (since === "1h" ? (past = live.history)
    : ask("history", since, (p) => { if (since !== "1h") past = p; }));
  const takeAhead = () => (ahead === "1h" ? (forecast = live.ahead)
    : ask("ahead", ahead, (f) => { if (ahead !== "1h") forecast = f; }));
  async function takeFindings() {
    if (!access.rows) return;
    try {
      found = await get("findings");
    } catch { /* the header shows that the broker does not answer */ }
    redraw();
  }

  const stop = listen((kind) => {
    if (kind === "history" && since === "1h") past = live.history;
    if (kind === "ahead" && ahead === "1h") forecast = live.ahead;
    if (kind === "findings") takeFindings();
  });
  const slow = setInterval(() => { if (since !== "1h") takePast(); if (ahead !== "1h") takeAhead(); }, 60000);
  takePast();
  takeAhead();
  if (live.findings) takeFindings();

  return {
    title: "Overview",
    stop() {
      stop();
      clearInterval(slow);
    },
    tree() {
      const s = live.state, fresh = s && isFresh(s);
      return el("div", { class: "stack" },
        el("h1", { tabindex: "-1" }, "Overview"),
        attention(s, found),
        fresh && el("p", { class: "card" }, "No messages yet. ", el("a", { href: "#/publish" },
          "Publish your first delay →")),
        el("ul", { class: "numbers", "aria-label": "Now" }, cards.map((c) => card(c, s?.numbers))),
        el("div", { class: "above" }, el("h2", {}, "History (all instances)"),
          choice("How much of the past", [["1h", "1 h"], ["24h", "24 h"]], since,
            (v) => { since = v; takePast(); redraw(); })),
        el("div", { class: "charts" }, charts(past, forecast,
          choice("How far ahead", [["1h", "1 h"], ["7d", "7 d"]], ahead,
            (v) => { ahead = v; takeAhead(); redraw(); }))),
        el("h2", {}, "Instances"), instances(s),
        s && el("p", { class: "quiet", id: "durability" }, s.durability));
    },
  };
}

// Reports whether the broker has no messages and had no deliveries in the last hour.
const isFresh = (s) => s.numbers.pending === 0 && s.numbers.dead === 0 && !s.numbers.delivered_per_second
  && !live.history?.delivered.some((v) => v > 0);

function card([id, label, address, number, note, problem], n) {
  return el("li", { key: id }, el("a", { href: address }, el("span", { class: "label" }, label),
    el("span", { class: "value " + ((n && problem?.(n)) || ""), id: "n-" + id }, n ? count(number(n)) : "–"),
      el("span", { class: "note" }, n ? note(n) : "")));
}

// The findings of doctor, and the failed checks of this instance.
function attention(s, found) {
  const c = live.findings, n = c ? c.critical + c.warnings : 0;
  const rows = [...(s?.failing ?? []).map((f) => ({ check: f.name, state: "critical", detail: f.detail })),
    ...(found?.findings ?? [])];
  const head = el("div", { class: "above" }, el("h2", {}, "Needs attention"),
    el("span", { class: "quiet" }, c?.time ? "checked " + relativeTime(c.time) : "being checked",
      found?.trouble ? "; " + found.trouble : ""));
  const hidden = n > 0 && !access.rows;
  return el("section", { class: "card attention", id: "attention", "aria-label": "Needs attention" }, head,
    rows.length > 0 && el("ul", {}, rows.map((f) => el("li", { key: f.check + f.detail },
      el("span", { class: "chip " + (f.state === "critical" ? "bad" : "warn") },
        f.state === "critical" ? "critical" : "warning"),
      el("div", { class: "wide" }, views[f.check] ? el("a", { href: "#/" + views[f.check] }, f.check)
        : el("b", {}, f.check), ": ", f.detail,
        f.do && el("span", { class: "sub" }, f.do))))),
    hidden && el("p", {}, `${counted(c.critical, "critical finding")}, ${counted(c.warnings, "warning")}. `,
      access.tokens && el("button", { type: "button", class: "small", onclick: () => unlock() }, "Unlock to see the findings")),
    c?.time && rows.length === 0 && !hidden && el("p", { class: "good" }, "Nothing needs attention."));
}

// Returns the history from the first interval with data on, but at least the last twelfth of the history.
function knownPart(p) {
  if (!p) return null;
  const first = p.delivered.findIndex((v) => v !== null), steps = p.delivered.length, time = (i) => p.from + i * p.step;
  const from = first < 0 ? 0 : Math.min(first, Math.floor(steps * 11 / 12)), cut = (column) => column.slice(from);
  const since = first > steps / 10 ? "since " + shortTime(time(first) * 1000).replace(/^(\d\d:\d\d):\d\d$/, "$1") : "";
  return { times: cut(p.delivered.map((_, i) => time(i))), cut, since };
}

let drawnHistory = {}, drawnForecast = {}; // cached: a chart is drawn again if its data is a different object

function charts(past, f, extra) {
  if (drawnHistory.source !== past) {
    const k = knownPart(past);
    drawnHistory = { source: past, since: k?.since ?? "",
      flow: k && [k.times, k.cut(past.delivered), k.cut(past.refused)],
      late: k && [k.times, ...[past.p50, past.p99].map((c) =>
        k.cut(c).map((v) => (v === null ? null : Math.max(v / 1000, 0.0001))))],
      held: k && [k.times, k.cut(past.pending)] };
  }
  if (drawnForecast.source !== f) {
    // The first bucket begins now, within a minute or an hour. Its bar is drawn at the start of this minute or hour.
    const step = f?.step_seconds, from = (b) => Math.floor(new Date(b.from) / 1000 / step) * step;
    drawnForecast = { source: f, due: f && [f.buckets.map(from), f.buckets.map((b) => b.messages || null)] };
  }
  const d = drawnHistory;
  const open = (i) => {
    const at = drawnForecast.due[0][i], iso = (seconds) => new Date(seconds * 1000).toISOString().replace(".000Z", "Z");
    location.hash = `#/pending?due_after=${iso(at)}&due_before=${iso(at + f.step_seconds)}`;
  };
  return [
    el(Chart, { title: "Delivered and refused", series: [["delivered", "one", "/s"], ["refused", "two", "/s"]],
      data: d.flow, value: rate, since: d.since }),
    el(Chart, { title: "Lateness without retries", series: [["p50", "one", ""], ["p99", "two", ""]], data: d.late,
      value: duration, unit: duration, log: true, since: d.since }),
    el(Chart, { title: "Pending", series: [["messages", "three", ""]], data: d.held, value: count, since: d.since }),
    el(Chart, { title: "Due ahead", series: [["messages", "three", ""]], data: drawnForecast.due, bars: true, value: count,
      open, extra }),
  ];
}

function instances(s) {
  const formats = new Set((s?.instances ?? []).map((i) => i.format ?? 0));
  return table({
    rows: s?.instances ?? [], id: (i) => i.name, label: (i) => i.name, nothing: "No instance is known yet.",
    columns: [
      { name: "Instance", sort: (i) => i.name,
        cell: (i) => el("span", { class: "wide" }, i.name, i.self && el("span", { class: "sub" }, "this one")) },
      { name: "State", cell: stateOf, sort: (i) => i.ready },
      { name: "Version", cell: (i) => (i.version ? i.version + (formats.size > 1 ? ` (format ${i.format})` : "")
        : "older") },
      { name: "Started", kind: "tight", cell: (i) => timeCell(i.started) },
      { name: "Lanes", kind: "n", cell: (i) => count(i.lanes), sort: (i) => i.lanes },
      { name: "Pending", kind: "n", cell: (i) => count(i.pending), sort: (i) => i.pending },
      { name: "Delivered", kind: "n", sort: (i) => i.delivered_per_second ?? -1,
        cell: (i) => perSecond(i.delivered_per_second) },
      { name: "Refused", kind: "n", sort: (i) => i.refused_per_second ?? -1,
        cell: (i) => perSecond(i.refused_per_second) },
      { name: "Oldest overdue", kind: "n", sort: (i) => i.oldest_seconds,
        cell: (i) => (i.oldest_seconds > 0 ? duration(i.oldest_seconds) : "–") },
    ],
  });
}

function stateOf(i) {
  if (i.unproven) return el("span", { class: "bad" }, "unproven: report not authenticated");
  if (i.draining) return el("span", { class: "warn" }, "draining");
  return i.ready ? "ready" : el("span", { class: "warn" }, "starting");
}
