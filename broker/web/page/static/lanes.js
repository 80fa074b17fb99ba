// The view of the lanes. They arrive in the event stream.

import { choice, el, shell } from "./dom.js";
import { count, counted, span } from "./format.js";
import { now } from "./live.js";
import { brief } from "./time.js";
import { table } from "./table.js";

// The meanings of the states of a lane, and the states that are a problem.
const meanings = {
  reading: "its owner reads it and delivers due messages", idle: "nothing in it is due soon; its owner waits until then",
  full: "its owner's memory is full; the owner reads on when messages leave",
    "no owner": "no instance reads it; its messages will be late",
  "not reading": "its owner cannot read it now", "ownership uncertain": "nothing is delivered while its owner is uncertain",
  "waits for a newer broker": "it contains messages of a newer broker, which its owner cannot read",
};
const bad = new Set(["no owner", "not reading", "ownership uncertain", "waits for a newer broker"]);

const idle = (l) => l.pending === 0 && (l.state === "reading" || l.state === "idle");
const name = (l) => l.kind + (l.level ? " " + l.level : "");

function stateOf(l) {
  const until = l.state === "idle" && l.resumes_at ? ` until ${brief(l.resumes_at)}` : "";
  return el("span", { class: bad.has(l.state) ? "bad" : null, title: meanings[l.state] }, l.state + until);
}

// The levels from the shortest to the longest delay. The height of each is its number of messages, on a log scale.
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
      const s = now.state;
      if (!s) return [el("h1", { tabindex: "-1" }, "Lanes"), el("p", { class: "quiet" }, "loading…")];
      const shown = s.lanes.filter((l) => all || !idle(l)).sort((x, y) => (y.pending ?? -1) - (x.pending ?? -1)),
        rest = s.lanes.length - shown.length;
      return el("div", { class: "stack" },
        el("h1", { tabindex: "-1" }, "Lanes"), el("p", { class: "quiet" },
          "The streams through which messages pass, the busiest first."), shell("delaybroker levels --watch"),
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
              cell: (l) => (l.oldest_seconds > 0 ? span(l.oldest_seconds) : "–") },
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
