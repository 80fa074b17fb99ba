// The overview: numbers, charts, instances. It is made once, and changed in place.

import { choice, el, row, table } from "./dom.js";
import { count, rate, span } from "./format.js";
import { Chart } from "./charts.js";
import { get } from "./api.js";
import { listen, now } from "./live.js";

const cards = [
  ["pending", "Pending", "#/pending", (n) => [count(n.pending), `${rate(n.delivered_per_second)}/s delivered`]],
  ["minute", "Due next minute", "#/pending?due_before=1m", (n) => [count(n.minute), n.minute === null ? "being counted" : "of what is pending"]],
  ["overdue", "Overdue", "#/lanes", (n) => [count(n.overdue ?? (n.oldest_seconds < 1 ? 0 : null)), n.oldest_seconds > 0 ? `the oldest by ${span(n.oldest_seconds)}` : "nothing is late"]],
  ["retrying", "Retrying", "#/retrying", (n) => [count(n.retrying), `${rate(n.refused_per_second)}/s refused`]],
  ["dead", "Dead letters", "#/dead", (n) => [count(n.dead), n.dead === null ? "being counted" : n.paused > 0 ? `${count(n.paused)} wait for paused targets` : ""]],
];

function times(past) {
  return past.delivered.map((_, i) => past.from + i * past.step);
}

export function overview(main) {
  const fields = {};
  const numbers = el("ul", { class: "numbers", "aria-label": "Now" }, cards.map(([id, label, to]) => {
    fields[id] = { value: el("span", { class: "value", id: "n-" + id }, "–"), note: el("span", { class: "note" }) };
    return el("li", {}, el("a", { href: to }, el("span", { class: "label" }, label), fields[id].value, fields[id].note));
  }));

  let since = "1h", ahead = "1h", gone = false;
  const spans = choice("How much of the past", [["1h", "1 h"], ["24h", "24 h"]], since, (v) => { since = v; past(); });
  const far = choice("How far ahead", [["1h", "1 h"], ["7d", "7 d"]], ahead, (v) => { ahead = v; forecast(); });
  const flow = new Chart("Delivered and refused", [["delivered", "one", "/s"], ["refused", "two", "/s"]], { value: rate });
  const late = new Chart("Lateness", [["p50", "one", " ms"], ["p99", "two", " ms"]], { value: (v) => String(+v.toFixed(1)) });
  const held = new Chart("Pending", [["messages", "three", ""]], { value: count });
  const due = new Chart("Due ahead", [["messages", "three", ""]], { bars: true, extra: far, value: count });
  const charts = [flow, late, held, due];

  const columns = [["Instance", ""], ["State", ""], ["Lanes", "n"], ["Pending", "n"], ["Delivered", "n"], ["Refused", "n"], ["Oldest overdue", "n"]];
  const body = el("tbody");
  main.replaceChildren(el("div", { class: "stack" },
    el("h1", {}, "Overview"), numbers,
    el("div", { class: "above" }, el("span", { class: "quiet" }, "The past, of all instances"), spans),
    el("div", { class: "charts" }, charts.map((c) => c.node)),
    table(columns, body)));

  function draw(p) {
    const t = times(p);
    flow.set([t, p.delivered, p.refused]);
    late.set([t, p.p50, p.p99]);
    held.set([t, p.pending]);
  }
  async function past() {
    if (since === "1h" && now.history) return draw(now.history);
    try {
      const p = await get("history", { span: since });
      if (!gone && String(p.step * p.delivered.length) === { "1h": "3600", "24h": "86400" }[since]) draw(p);
    } catch { /* the stream says that the broker does not answer */ }
  }
  async function forecast() {
    let f = now.ahead;
    if (ahead !== "1h") {
      try {
        f = await get("ahead", { span: ahead });
      } catch { return; }
    }
    if (gone || !f || (f.step_seconds > 60) !== (ahead === "7d")) return;
    // The first bucket is a part of a minute or an hour: as the others, it is drawn where it would begin.
    due.set([f.buckets.map((b) => Math.floor(new Date(b.from) / 1000 / f.step_seconds) * f.step_seconds), f.buckets.map((b) => b.messages)]);
  }
  function state(s) {
    for (const [id, , , words] of cards) {
      const [value, note] = words(s.numbers);
      if (fields[id].value.textContent !== value) fields[id].value.textContent = value;
      if (fields[id].note.textContent !== note) fields[id].note.textContent = note;
    }
    fields.overdue.value.classList.toggle("bad", s.numbers.oldest_seconds >= 5);
    const formats = new Set(s.instances.map((i) => i.format ?? 0));
    body.replaceChildren(...s.instances.map((i) => row(columns, [
      el("span", { class: "wide" }, i.name), stateOf(i, formats.size > 1), count(i.lanes), count(i.pending), rate(i.delivered_per_second) + "/s",
      rate(i.refused_per_second) + "/s", i.oldest_seconds > 0 ? span(i.oldest_seconds) : "–",
    ])));
  }
  const stop = listen((kind, value) => {
    if (kind === "state") state(value);
    else if (kind === "ahead") { if (ahead === "1h") forecast(); }
    else if (since === "1h") draw(value);
  });
  const slow = setInterval(() => { if (since !== "1h") past(); if (ahead !== "1h") forecast(); }, 60000);
  if (now.state) state(now.state);
  if (now.history) draw(now.history);
  if (now.ahead) forecast();
  return () => {
    gone = true;
    stop();
    clearInterval(slow);
    for (const c of charts) c.remove();
  };
}

function stateOf(i, mixed) {
  const version = i.version ? `, ${i.version}${mixed ? ` (format ${i.format})` : ""}` : "";
  const self = version + (i.self ? ", this one" : "");
  if (i.unproven) return el("span", { class: "bad" }, "unproven: anybody may have said so");
  if (i.draining) return el("span", { class: "warn" }, "draining" + self);
  if (!i.ready) return el("span", { class: "warn" }, "starting" + self);
  return (i.older ? "ready, an older version" : "ready") + self;
}
