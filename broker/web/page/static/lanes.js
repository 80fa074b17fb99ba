// The view of the lanes. The states of the lanes arrive in the event stream.

import { el, facts, shell } from "./dom.js";
import { count, counted, duration, short } from "./format.js";
import { spark } from "./charts.js";
import { live } from "./live.js";
import { shortTime } from "./time.js";
import { table } from "./table.js";

// The meanings of the states of a lane, and the states that are a problem.
const meanings = {
  reading: "the owner reads the lane and delivers due messages",
  idle: "no message in the lane is due soon, so the owner waits",
  full: "the owner's memory is full; the owner reads more messages after it has delivered some",
  "no owner": "no instance reads the lane, so its due messages wait",
  "not reading": "the owner cannot read the lane now",
  "ownership uncertain": "the owner delivers no message until it is certain that it owns the lane",
  "waits for a newer broker": "the lane contains messages of a newer broker, which the owner cannot read",
};
const bad = new Set(["no owner", "not reading", "ownership uncertain", "waits for a newer broker"]);

const idle = (l) => l.pending === 0 && (l.state === "reading" || l.state === "idle");
const name = (l) => l.kind + (l.level ? " " + l.level : "");

function stateOf(l) {
  const state = l.state === "idle" && l.oldest_seconds > 0 ? "reading" : l.state; // the owner delivers what is due
  const until = state === "idle" && l.resumes_at ? ` until ${shortTime(l.resumes_at)}` : "";
  return el("span", { class: bad.has(state) ? "bad" : null, title: meanings[state] }, state + until);
}

// The levels, from the shortest delay to the longest. The height of a bar is the number of messages, which is above it.
function strip(lanes) {
  const levels = lanes.filter((l) => l.kind === "level").sort((a, b) => a.delay_seconds - b.delay_seconds);
  const most = Math.max(1, ...levels.map((l) => l.pending ?? 0));
  const size = (l) => (l.pending > 0 ? 3 + 42 * l.pending / most : 0); // pixels
  const words = (l) => `${counted(l.pending ?? 0, "message")}, ${l.state}`;
  return levels.some((l) => l.pending > 0) && el("ol",
    { class: "strip", "aria-label": "Levels, from the shortest delay to the longest" },
    levels.map((l) => el("li",
      { key: l.stream, title: `${l.stream}: ${words(l)}`, class: bad.has(l.state) ? "bad" : null },
      el("span", { class: "size", "aria-hidden": "true" }, l.pending > 0 ? short(l.pending) : ""),
      el("span", { class: "fill", style: { height: size(l) + "px" } }), el("span", { class: "name" }, l.level),
      el("span", { class: "out" }, ": " + words(l)))));
}

const columns = [
  { name: "Lane", sort: (l) => l.stream, cell: (l) => el("span", {}, l.stream, el("span", { class: "sub" }, name(l))) },
  { name: "Pending", kind: "n", cell: (l) => count(l.pending), sort: (l) => l.pending ?? -1 },
  { name: "Last 5 minutes", kind: "tight", cell: (l) => spark(live.history?.lanes?.[l.stream], "pending messages") },
  { name: "In memory", kind: "n", cell: (l) => count(l.held), sort: (l) => l.held },
  { name: "Oldest overdue", kind: "n", sort: (l) => l.oldest_seconds,
    cell: (l) => (l.oldest_seconds > 0 ? duration(l.oldest_seconds) : "–") },
  { name: "State", cell: stateOf, sort: (l) => l.state },
  { name: "Owner", cell: (l) => l.owner || "–", sort: (l) => l.owner },
];
const lanesTable = (rows) => table({
  rows: rows.toSorted((x, y) => (y.pending ?? -1) - (x.pending ?? -1)), nothing: "All lanes are idle.", columns,
  id: (l) => l.stream, label: (l) => l.stream,
});

export const lanes = () => ({
  title: "Lanes",
  stop() {},
  tree() {
    const all = live.state?.lanes ?? [], rest = all.filter(idle);
    return el("div", { class: "stack" }, el("h1", { tabindex: "-1" }, "Lanes"),
      el("p", { class: "quiet about" },
        "Messages pass through these streams. The stream with the most messages is first."),
      shell("delaybroker levels --watch"),
      live.state ? [strip(all), lanesTable(all.filter((l) => !idle(l)))]
        : el("p", { class: "quiet" }, "Reading the lanes…"),
      rest.length > 0 && el("details", {}, el("summary", {}, counted(rest.length, "idle lane")), lanesTable(rest)),
      el("details", {}, el("summary", {}, "What the states mean"), facts(Object.entries(meanings))));
  },
});
