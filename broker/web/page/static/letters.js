// The views of dead letters: groups, a list, and one letter.

import { el, facts, linkTo, tokens } from "./dom.js";
import { access } from "./api.js";
import { buttons } from "./act.js";
import { bytes, count, counted } from "./format.js";
import { exactTime, timeCell } from "./time.js";
import { rowsView, limitField, targetField } from "./view.js";
import { table } from "./table.js";
import { withContent } from "./content.js";

const noun = "dead letter";
const letterButtons = (verbs, rest, reload) => el("span", { class: "acts" },
  buttons(verbs.map((verb) => ({ verb, noun, ...rest })), reload));
const repairs = () => (access.bodies ? ["resend", "edit", "remove"] : ["resend", "remove"]);

const chip = (code) => el("code", { class: "chip" }, code);

export const dead = rowsView({
  title: "Dead letters", about: "Messages that could not be delivered, in groups. The largest group is first.",
  path: "dead",
  fields: [targetField, ["by", "Group by", "", ["code,target,reason", "code,target", "code", "target", "reason"]]],
  draw: (d, params, reload) => [
    table({
      rows: d.groups, nothing: "No dead letters.", id: (g) => `${g.code} ${g.target} ${g.reason}`,
        label: (g) => `${g.code} ${g.target}`,
      columns: [
        { name: "Letters", kind: "n", sort: (g) => g.letters,
          cell: (g) => linkTo(count(g.letters), "letters", { code: g.code, target: targetOf(g, params) }) },
        { name: "Code", kind: "tight", cell: (g) => g.code && chip(g.code), sort: (g) => g.code },
        { name: "Target", cell: (g) => el("span", { class: "wide" }, tokens(g.target)), sort: (g) => g.target },
        { name: "Newest reason", sort: (g) => g.last_reason,
          cell: (g) => el("span", { class: "wide" }, g.last_reason || "–") },
        { name: "Newest", kind: "tight", sort: (g) => g.newest,
          cell: (g) => el("a", { href: `#/letter?number=${g.number}` }, timeCell(g.newest)) },
        { name: "", kind: "act", cell: (g) => g.code && targetOf(g) && letterButtons(["resend", "remove"],
          { n: g.letters, name: "", request: { code: g.code, target: targetOf(g) } }, reload) },
      ],
    }),
    el("p", { class: "quiet" }, `${counted(d.letters, "letter")} in ${counted(d.kinds, "group")}`
      + (d.partial ? ". The count is incomplete, because counting took too long." : ".")
      + (access.actions ? " An action applies to all letters with the code and the target of the row." : "")),
  ],
});

const targetOf = (g, params = {}) => (g.target === "-" ? "" : g.target ?? params.target);

export const letterTable = (rows, nothing, reload) => table({
  rows, nothing, id: (l) => String(l.number), label: (l) => `dead letter ${l.number}`,
  bulk: access.actions && ((picked) => buttons(["resend", "remove"].map((verb) =>
    ({ verb, noun, n: picked.length, request: { numbers: picked.map((l) => l.number) } })), reload)),
  columns: [
    { name: "Number", kind: "tight", sort: (l) => l.number,
      cell: (l) => linkTo(String(l.number), "letter", { number: l.number }) },
    { name: "Dead since", kind: "tight", cell: (l) => timeCell(l.dead_since), sort: (l) => l.dead_since },
    { name: "Code", kind: "tight", cell: (l) => chip(l.code), sort: (l) => l.code },
    { name: "Target", cell: (l) => el("span", { class: "wide" }, tokens(l.target || "–")), sort: (l) => l.target },
    { name: "Reason", cell: (l) => el("span", { class: "wide" }, l.reason || "–"), sort: (l) => l.reason },
    { name: "", kind: "act", cell: (l) => letterButtons(repairs(),
      { name: String(l.number), request: { number: l.number } }, reload) },
  ],
});

export const letters = rowsView({
  title: "Dead letters, one by one", about: "The oldest dead letter is first.", path: "letters",
  fields: [["find", "Id, Nats-Msg-Id or reason", ""], ["code", "Code", "undelivered"], targetField,
    ["since", "Since", "2h, or a time"], limitField],
  draw(d, params, reload) {
    const request = { code: params.code, target: params.target, since: params.since };
    return [
      (params.code || params.target || params.since) && !params.find && access.actions
        && el("p", {}, "All dead letters that match: ", letterButtons(["resend", "remove"], { all: true, request }, reload)),
      letterTable(d.letters, "No dead letter matches.", reload),
      d.more && el("p", { class: "quiet" }, "There are more dead letters. Choose a time, or use the command."),
    ];
  },
});

export const letter = withContent(rowsView({
  title: "One dead letter", about: "Why one message could not be delivered.", path: "letter",
  draw: (l, _, reload) => (l === null ? el("p", { class: "none" },
    "There is no such letter. It may have been resent or removed.")
    : el("div", { class: "card" }, facts([
    ["Number", String(l.number)], ["Dead since", exactTime(l.dead_since)], ["Code", chip(l.code)], ["Reason", l.reason],
      ["Unreadable", l.unreadable],
    ["Unproven", l.unproven], ["Message", l.id && linkTo(l.id, "where", { id: l.id })], ["Nats-Msg-Id", l.msg_id],
      ["Published on", l.subject], ["Target", l.target],
    ["Accepted", exactTime(l.accepted)], ["Due", exactTime(l.due)], ["Expires", exactTime(l.expires)],
    ["Refused", l.attempts > 0 && counted(l.attempts, "time")], ["Size", bytes(l.size)],
    ["Headers", Object.entries(l.headers).map(([name, size]) => `${name} (${bytes(size)})`).join(", ")],
  ]), letterButtons(repairs(), { name: String(l.number), request: { number: l.number } }, reload))),
}), (params) => ({ number: params.number }));
