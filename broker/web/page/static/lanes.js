// The view of the lanes. The states of the lanes arrive in the event stream.

import { choice, el, shell } from "./dom.js";
import { count, counted, duration } from "./format.js";
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
  const until = l.state === "idle" && l.resumes_at ? ` until ${shortTime(l.resumes_at)}` : "";
  return el("span", { class: bad.has(l.state) ? "bad" : null, title: meanings[l.state] }, l.state + until);
}

// The levels, from the shortest delay to the longest. The height of a bar is the number of messages, on a log scale.
function strip(lanes) {
  const levels = lanes.filter((l) => l.kind === "level").sort((a, b) => a.delay_seconds - b.delay_seconds);
  const size = (l) => (l.pending > 0 ? Math.min(100, 12 + 14 * Math.log10(l.pending)) : 0);
  return levels.length > 1 && el("ol", { class: "strip", "aria-label": "Levels, from the shortest delay to the longest" }, levels.map((l) => el("li", {
    key: l.stream, title: `${l.stream}: ${counted(l.pending ?? 0, "message")}, ${l.state}`,
      class: bad.has(l.state) ? "bad" : null,
  }, el("span", { class: "fill", style: { height: size(l) + "%" } }), el("span", { class: "name" }, l.level),
    el("span", { class: "out" }, `: ${counted(l.pending ?? 0, "message")}, ${l.state}`))));
}

export function lanes(_, { redraw }) {
  let all = false;
  return {
    title: "Lanes",
    stop() {},
    tree() {
      const s = live.state;
      if (!s) return [el("h1", { tabindex: "-1" }, "Lanes"), el("p", { class: "quiet" }, "loading…")];
      const shown = s.lanes.filter((l) => all || !idle(l)).sort((x, y) => (y.pending ?? -1) - (x.pending ?? -1)),
        rest = s.lanes.length - shown.length;
      return el("div", { class: "stack" },
        el("h1", { tabindex: "-1" }, "Lanes"), el("p", { class: "quiet" },
          "Messages pass through these streams. The stream with the most messages is first."), shell("delaybroker levels --watch"),
        strip(s.lanes),
        choice("Which lanes", [["busy", "Busy"], ["all", "All"]], all ? "all" : "busy",
          (v) => { all = v === "all"; redraw(); }),
        table({
          rows: shown, nothing: "All lanes are idle.", id: (l) => l.stream, label: (l) => l.stream,
          columns: [
            { name: "Lane", sort: (l) => l.stream,
              cell: (l) => el("span", {}, l.stream, el("span", { class: "sub" }, name(l))) },
            { name: "Pending", kind: "n", cell: (l) => count(l.pending), sort: (l) => l.pending ?? -1 },
            { name: "In memory", kind: "n", cell: (l) => count(l.held), sort: (l) => l.held },
            { name: "Oldest overdue", kind: "n", sort: (l) => l.oldest_seconds,
              cell: (l) => (l.oldest_seconds > 0 ? duration(l.oldest_seconds) : "–") },
            { name: "State", cell: stateOf, sort: (l) => l.state },
            { name: "Owner", cell: (l) => l.owner || "–", sort: (l) => l.owner },
          ],
        }),
        rest > 0 && el("p", { class: "quiet" }, counted(rest, "idle lane")),
        el("details", {}, el("summary", {}, "What the states mean"),
          el("dl", { class: "facts" }, Object.entries(meanings).flatMap(([state, text]) =>
          [el("dt", {}, state), el("dd", {}, text)]))));
    },
  };
}
