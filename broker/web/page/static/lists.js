// The views of messages, timers, schedules and dead letters, and the search.

import { el, link } from "./dom.js";
import { access } from "./api.js";
import { buttons } from "./act.js";
import { withContent } from "./content.js";
import { factsOf, factsView, listView, operation, rowsTable } from "./operations.js";
import { rowsView } from "./view.js";

export const pending = listView({
  view: "pending", op: "pending ls", title: "Pending",
  about: "The waiting messages of all lanes, in the order of their due times.",
});

export const where = withContent(factsView({
  op: "where", title: "One message", name: (params) => params.id, about: "The lane of a message, or its outcome.",
}), (params) => ({ id: params.id }));

// The buttons for all objects that match a view's form.
const allThat = (names, request, reload) => access.actions && el("p", { class: "acts" }, "All that match: ",
  buttons(names.map((name) => ({ op: operation(name), all: true, items: [request] })), reload));

export const timers = listView({
  view: "timers", op: "timers ls", title: "Named timers", defaults: { order: "due" },
  about: "The next due is first. Timers that are not pending are in the order in which they were set.",
  above: (_, { key, target, due_after, due_before, state = "pending" }, reload) => target && state === "pending"
    && allThat(["timers cancel", "timers move"], { all: true, key, target, due_after, due_before }, reload),
});

export const schedules = listView({
  view: "schedules", op: "schedules ls", title: "Schedules",
  about: "Recurring timers, in the order in which their entries were set.",
});

export const timer = withContent(factsView({
  op: "timers show", title: "One timer", name: (params) => `${params.key} → ${params.target}`,
  about: "The state of a timer. An ended timer is shown while its history is kept.",
}), (params) => ({ key: params.key, target: params.target }));

// The changes of a group of dead letters: of those with its code, reason and target, among those of the view.
const groupRequest = ({ code, reason, target }, _, { limit, by, find, ...chosen }) => (code && target !== "-" && !find
  ? { ...chosen, code, reason, target: target ?? chosen.target } : null);

export const dead = listView({
  view: "dead", op: "dead ls", title: "Dead letters", request: groupRequest, defaults: { by: "code,reason" },
  about: "Messages that could not be delivered, by reason. The largest group is first.",
  above: (_, { by, reason, ...chosen }) => el("p", {}, reason && [`Only “${reason}”. `,
    el("a", { href: link("dead", chosen) }, "All reasons"), " · "],
  el("a", { href: link("letters", chosen) }, "One by one")),
});

export const retrying = listView({
  view: "retrying", op: "retrying", title: "Retrying",
  about: "Refused messages, their reasons and next attempts. The largest group is first.",
  request: (g) => (g.target.includes(" ") ? null : { pattern: g.target }),
});

export const paused = listView({
  view: "paused", op: "pauses", title: "Paused targets",
  about: "Due messages for these targets wait. After a resume, they are delivered.",
  above: (_, __, reload) => el("p", {}, el("span", { class: "acts" },
    buttons([{ op: operation("pause"), label: "Pause a target", items: [{}] }], reload))),
});

export const letters = listView({
  view: "letters", op: "dead ls", title: "Dead letters, one by one", about: "The oldest dead letter is first.",
  defaults: { by: "letter" },
  above: (_, { code, target, since, find }, reload) => (code || target || since) && !find
    && allThat(["dead resend", "dead rm"], { code, target, since }, reload),
});

export const letter = withContent(factsView({
  op: "dead show", title: "One dead letter", name: (params) => `Dead letter ${params.id}`, edits: true,
  about: "Why one message could not be delivered.",
}), (params) => ({ number: params.id }));

const headings = { "timers ls": "Timers", "pending ls": "Pending", "dead ls": "Dead letters" };

export const find = rowsView({
  title: "Search", about: "Search lanes, timers and dead letters for a Delay-Id, a key, a target or a Nats-Msg-Id.",
  path: "find", fields: [{ name: "find", label: "Search for", hint: "order-42" }],
  pieces: ["timers ls", "where", "dead ls", "pending ls"],
  draw(d, params, reload, busy) {
    const text = params.find, message = d.parts.where;
    return [
      d.trouble.length > 0 && el("p", { class: "warn" }, "A part of the search failed: " + d.trouble.join("; ")),
      message && [el("h2", {}, "Message"), factsOf(operation("where"), message, reload),
        message.rows[0].found && el("p", {}, el("a", { href: link("where", { id: message.rows[0].id }) },
          "Show the message"))],
      d.target && el("p", {}, "As a target: ", ["pending", "timers", "letters", "retrying"].flatMap((view, n) =>
        [n > 0 && " · ", el("a", { href: link(view, { target: text }) }, view)])),
      Object.entries(headings).map(([name, heading]) => d.parts[name] && [el("h2", {}, heading),
        rowsTable(operation(name), d.parts[name], reload)]),
      !busy && Object.keys(d.parts).length === 0 && el("p", { class: "none" },
        `No match for ${text}. A delivered message has a match ` + "only for its Delay-Id, and only if the broker has a journal."),
      d.partial && el("p", { class: "quiet" }, "There may be more matches. Search in one of the tables."),
    ];
  },
});
