// Targets: their deliveries and refusals.

import { el, link, linkTo } from "./dom.js";
import { buttons } from "./act.js";
import { spark } from "./charts.js";
import { count, perSecond } from "./format.js";
import { rowsView } from "./view.js";
import { operation } from "./operations.js";
import { table } from "./table.js";

// The busiest targets have a row each. The row of all others has a pattern of one token.
const isOthers = (t) => /^([^.]+\.)?>$/.test(t.target);
const total = (perSec, n) => el("span", {}, perSecond(perSec), el("span", { class: "sub" }, count(n) + " in total"));

export const targets = rowsView({
  title: "Targets", about: "Deliveries and refusals by target: by its first two tokens, or by a pattern of DELAY_RATE.",
  path: "targets",
  draw: (d, _, reload) => [
    el("p", {}, el("a", { href: link("paused") }, "Paused targets")),
    table({
      rows: d.flows, nothing: "No message was delivered yet.", id: (f) => f.target, label: (f) => f.target,
      columns: [
        { name: "Target", sort: (f) => f.target, cell: (f) => el("span", {},
          linkTo(f.target, f.refused_per_second > 0 ? "retrying" : "pending", { target: f.target }),
          isOthers(f) && el("span", { class: "sub" }, "others")) },
        { name: "Delivered", kind: "n", sort: (f) => f.delivered,
          cell: (f) => total(f.delivered_per_second, f.delivered) },
        { name: "Refused", kind: "n", sort: (f) => f.refused, cell: (f) => total(f.refused_per_second, f.refused) },
        { name: "Last 5 minutes", kind: "tight", cell: (f) => spark(f.recent, "attempts in ten seconds") },
        { name: "Limit", kind: "n", sort: (f) => f.limit_per_second ?? 0,
          cell: (f) => (f.limit_per_second ? el("span", { title: f.rate }, count(f.limit_per_second) + "/s") : "–") },
        { name: "Paused", cell: (f) => f.paused ?? "–" },
        { name: "", kind: "act", cell: (f) => f.target && !f.paused && !isOthers(f) && el("span", { class: "acts" },
          buttons([{ op: operation("pause"), name: f.target, items: [{ pattern: f.target }] }], reload)) },
      ],
    }),
    el("p", { class: "quiet" }, "Rates are averages of the last ten seconds. Totals count from the first start of the "
      + "fleet. A limit applies to each target."),
  ],
});
