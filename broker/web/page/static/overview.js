// The overview: findings, numbers, charts, instances.

import { choice, el } from "./dom.js";
import { count, counted, perSecond, rate, duration } from "./format.js";
import { Chart } from "./charts.js";
import { access, get } from "./api.js";
import { listen, live } from "./live.js";
import { relativeTime, said, shortTime, timeCell } from "./time.js";
import { table } from "./table.js";
import { unlock } from "./act.js";

// Each card has an id, a label, an address, a number, a note, and a class for a number that is a problem.
const cards = [
  ["pending", "Pending", "#/pending", (n) => n.pending, (n) => `${perSecond(n.delivered_per_second)} delivered`],
  ["minute", "Due next minute", "#/pending?due_before=1m", (n) => n.minute,
    (n) => (n.minute === null ? "being counted" : "of the pending")],
  ["overdue", "Overdue", "#/lanes", (n) => n.overdue ?? (n.oldest_seconds < 1 ? 0 : null),
    (n) => (n.oldest_seconds > 0 ? `oldest by ${duration(n.oldest_seconds)}` : "nothing is late"),
      (n) => n.oldest_seconds >= 5 && "bad"],
  ["retrying", "Retrying", "#/retrying", (n) => n.retrying, (n) => `${perSecond(n.refused_per_second)} refused`,
    (n) => n.retrying > 0 && "warn"],
  ["paused", "Paused", "#/paused", (n) => n.paused,
    (n) => (n.paused > 0 ? "wait for their targets" : "no message waits"), (n) => n.paused > 0 && "warn"],
  ["dead", "Dead letters", "#/dead", (n) => n.dead,
    (n) => (n.dead === null ? "being counted" : n.dead > 0 ? "not delivered" : "none"), (n) => n.dead > 0 && "warn"],
];

// The view that shows the object of a finding, by the name of the check.
const views = { lanes: "lanes", streams: "lanes", storage: "lanes", targets: "retrying", paused: "paused",
  "dead letters": "dead" };

export function overview(_, { redraw }) {
  let since = "1h", ahead = "1h", past = null, forecast = null;

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
  const stop = listen((kind) => {
    if (kind === "history" && since === "1h") past = live.history;
    if (kind === "ahead" && ahead === "1h") forecast = live.ahead;
  });
  const slow = setInterval(() => { if (since !== "1h") takePast(); if (ahead !== "1h") takeAhead(); }, 60000);
  takePast();
  takeAhead();

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
        attention(s, live.found),
        fresh && el("p", { class: "card" }, "No messages yet. ", el("a", { href: "#/publish" },
          "Publish your first delay →")),
        el("ul", { class: "numbers", "aria-label": "Now" }, cards.map((c) => card(c, s?.numbers))),
        el("div", { class: "above" }, el("h2", {}, "History"),
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
const isFresh = (s) => s.numbers.known && s.numbers.pending === 0 && s.numbers.dead === 0 && !s.numbers.delivered_per_second
  && !live.history?.delivered.some((v) => v > 0);

function card([id, label, address, number, note, problem], n) {
  const known = n && (n.known || id === "dead");
  return el("li", { key: id }, el("a", { href: address }, el("span", { class: "label" }, label),
    el("span", { class: "value " + ((known && problem?.(n)) || ""), id: "n-" + id }, known ? count(number(n)) : "–"),
      el("span", { class: "note" }, known ? note(n) : n ? "not known" : "")));
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
        : el("b", {}, f.check), ": ", said(f.detail),
        f.do && el("span", { class: "sub" }, f.do))))),
    hidden && el("p", {}, `${counted(c.critical, "critical finding")}, ${counted(c.warnings, "warning")}. `,
      access.tokens && el("button", { type: "button", class: "small", onclick: () => unlock() },
        "Unlock to see the findings")),
    c?.time && rows.length === 0 && !hidden && el("p", { class: "good" }, "Nothing needs attention."));
}

// Returns a function that keeps its last result: a chart is drawn again if its data is another object.
function remembered(f) {
  let source, result = {};
  return (v) => {
    if (v && v !== source) [source, result] = [v, f(v)];
    return result;
  };
}

// The data of the charts of a history: from the first interval with data on, but at least the last twelfth.
const pastOf = remembered((p) => {
  const first = p.delivered.findIndex((v) => v !== null), steps = p.delivered.length, time = (i) => p.from + i * p.step;
  const from = first < 0 ? 0 : Math.min(first, Math.floor(steps * 11 / 12)), cut = (column) => column.slice(from);
  const times = cut(p.delivered.map((_, i) => time(i)));
  const seconds = (column) => cut(column).map((v) => (v === null ? null : Math.max(v / 1000, 0.0001)));
  return {
    since: first > steps / 10 ? "since " + shortTime(time(first) * 1000).replace(/^(\d\d:\d\d):\d\d$/, "$1") : "",
    marks: p.marks?.map((m) => ({ at: new Date(m.at) / 1000, text: m.text })),
    flow: [times, cut(p.delivered), cut(p.refused)], late: [times, seconds(p.p50), seconds(p.p99)],
    held: [times, cut(p.pending)],
  };
});

// The bars of a forecast. If a message of a sample stands for many, a narrow bar would show the chance of the sample, so
// several intervals share a bar. The first bucket begins now, and its bar at the start of its minute or hour.
const coarse = 50, shared = 5;
const barsOf = remembered((f) => {
  const step = f.step_seconds * (f.of > coarse * f.sampled ? shared : 1), bars = new Map();
  for (const b of f.buckets) {
    const at = Math.floor(new Date(b.from) / 1000 / step) * step, bar = bars.get(at) ?? { messages: 0, squares: 0 };
    bars.set(at, { messages: bar.messages + b.messages, squares: bar.squares + b.within ** 2 });
  }
  const all = [...bars.values()];
  return { step, due: [[...bars.keys()], all.map((b) => b.messages || null)],
    errors: all.some((b) => b.squares > 0) ? all.map((b) => Math.sqrt(b.squares)) : null,
    note: f.sampled < f.of ? `estimated from ${count(f.sampled)} of ${count(f.of)}, with the error at 95 %` : "" };
});

function charts(past, forecast, extra) {
  const { since, marks, flow, late, held } = pastOf(past), { step, due, errors, note } = barsOf(forecast);
  const open = (i) => {
    const iso = (seconds) => new Date(seconds * 1000).toISOString().replace(".000Z", "Z");
    location.hash = `#/pending?due_after=${iso(due[0][i])}&due_before=${iso(due[0][i] + step)}`;
  };
  return [
    el(Chart, { title: "Delivered and refused", series: [["delivered", "one", "/s"], ["refused", "two", "/s"]],
      data: flow, value: rate, since, marks, nothing: "No delivery yet." }),
    el(Chart, { title: "Lateness without retries", series: [["p50", "one", ""], ["p99", "two", ""]], data: late,
      value: duration, unit: duration, log: true, since, marks, nothing: "No delivery yet." }),
    el(Chart, { title: "Pending", series: [["messages", "three", ""]], data: held, value: count, since, marks,
      nothing: "No message was pending." }),
    el(Chart, { title: "Due ahead", series: [["messages", "three", ""]], data: due, bars: true, value: count, open, extra,
      errors, since: note, nothing: "No message is due." }),
  ];
}

function instances(s) {
  const formats = new Set((s?.instances ?? []).map((i) => i.format ?? 0));
  return table({
    rows: s?.instances ?? [], id: (i) => i.name, label: (i) => i.name, nothing: "No instance is known yet.",
    columns: [
      { name: "Instance", sort: (i) => i.name,
        cell: (i) => el("span", { class: "wide" }, i.name, i.self && el("span", { class: "sub" }, "this one")) },
      { name: "State", cell: stateOf, sort: (i) => (i.active ? 0 : i.ready ? 1 : 2) },
      { name: "Version", cell: (i) => (i.version || "–") + (formats.size > 1 ? ` (format ${i.format})` : "") },
      { name: "Started", kind: "tight", cell: (i) => timeCell(i.started), sort: (i) => i.started },
    ],
  });
}

function stateOf(i) {
  if (i.unproven) return el("span", { class: "bad" }, "unproven: report not authenticated");
  if (i.draining) return el("span", { class: "warn" }, "draining");
  if (i.active) return el("span", { class: "good" }, "active: works all lanes");
  return i.ready ? "stands by" : el("span", { class: "warn" }, "starting");
}
