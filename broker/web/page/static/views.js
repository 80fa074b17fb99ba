// The views with rows. Each has an address that says what is searched for, and the line of a shell that shows the same.

import { choice, copy, el, facts, row, sheet, table, verb } from "./dom.js";
import { access, get, query } from "./api.js";
import { buttons } from "./act.js";
import { bytes, count, moment, rate, second, span, until } from "./format.js";
import { listen, now } from "./live.js";

export const link = (view, params = {}) => "#/" + view + query(params);

const a = (text, view, params) => el("a", { href: link(view, params), class: "wide" }, text);
const two = (text, sub) => el("span", { class: "wide" }, text, sub ? el("span", { class: "sub" }, sub) : null);

// A view asks, and draws what comes. Fields are [name, label, hint]; draw gets the answer.
function asking(title, about, { path, fields = [], defaults = {}, draw }) {
  return (main, params, go) => {
    const view = location.hash.slice(2).split("?")[0];
    const out = el("div", { class: "stack", id: "rows", "aria-live": "polite" });
    const stop = new AbortController();
    const form = fields.length === 0 ? null : el("form", {
      class: "search", role: "search", onsubmit: (e) => {
        e.preventDefault();
        const next = link(view, Object.fromEntries(new FormData(e.target)));
        if (next === location.hash) load();
        else go(next);
      },
    }, fields.map(([name, label, hint, options]) => el("label", {}, label, options
      ? el("select", { name }, options.map((o) => el("option", { value: o, selected: (params[name] ?? options[0]) === o }, o)))
      : el("input", { name, placeholder: hint, value: params[name] ?? "", autocomplete: "off", spellcheck: "false" }))),
    el("button", { class: "main" }, "Search"));
    main.replaceChildren(el("h1", {}, title), el("p", { class: "quiet" }, about), form ?? "", out);
    async function load() {
      out.setAttribute("aria-busy", "true");
      try {
        const answer = await get(path, { ...defaults, ...params }, stop.signal);
        const held = out.contains(document.activeElement); // or the keyboard would begin at the top of the page
        out.replaceChildren(verb(answer.shell), ...draw(answer.data, params, load, out).filter(Boolean));
        if (held) main.focus({ preventScroll: true });
      } catch (err) {
        if (err.name === "AbortError") return;
        out.replaceChildren(el("p", { class: "bad wide", role: "alert" }, err.message),
          err.status === 401 ? el("p", {}, "Unlock, above, takes the token.") : "");
      }
      out.removeAttribute("aria-busy");
    }
    load();
    return () => stop.abort();
  };
}

const more = (text, view, params) => el("p", {}, el("a", { href: link(view, params), class: "button" }, text));
const targetField = ["target", "Target", "orders.>"];

export const pending = asking("Pending", "What waits in all lanes, the first due first.", {
  path: "pending",
  fields: [["id", "Delay-Id", "DELAY_30m-12-…"], targetField, ["due_after", "Due after", "10m, or a time"], ["due_before", "Due before", "1h, or a time"]],
  draw(d, params) {
    return [
      sheet([["Due", "tight"], ["Target", ""], ["Delay-Id", ""], ["Lane", ""], ["Bytes", "n"], ["Refused", "n"]], d.rows.map((m) => [
        m.problem ? el("span", { class: "bad" }, "dead: " + m.problem) : two(until(m.due, d.time), moment(m.due)),
        m.target || "–", a(m.id, "where", { id: m.id }), m.stream, count(m.bytes), count(m.attempts),
      ]), "Nothing waits here."),
      d.silent ? el("p", { class: "warn" }, "Left out: " + d.silent.join(", ")) : null,
      d.more && d.cursor ? more("Go on", "pending", { ...params, cursor: d.cursor }) : null,
      d.more && !d.cursor ? el("p", { class: "warn" }, "There is more than the page reads: choose a target or a time, or ask in a shell.") : null,
    ];
  },
});

export const where = asking("One message", "Where it is, or what became of it.", {
  path: "where", fields: [["id", "Delay-Id, or stream and sequence", "DELAY_30m-12"]],
  draw: (w) => [el("div", { class: "card" }, facts([
    ["message", w.id], ["is", w.answer], ["stored", w.stream && `${w.stream}, sequence ${w.sequence}`], ["target", w.target],
    ["accepted", w.accepted && moment(w.accepted)], ["due", w.due && moment(w.due)],
    ["refused", w.attempts > 0 ? `${w.attempts} times` + (w.attempts_allowed ? ` of ${w.attempts_allowed}` : "") : ""],
    ["last reason", w.last_error], ["put off", w.deferred], ["next attempt", w.retry_at && moment(w.retry_at)],
    ["code", w.code], ["reason", w.reason], ["delivered", w.delivered_at && moment(w.delivered_at)],
  ]))],
});

function timerButtons(t, again) {
  const deed = { key: t.key, target: t.target, generation: t.generation };
  switch (t.state ?? t.outcome) {
    case "pending": return buttons([["cancel", deed], ["move", deed], ["fire", deed], ...t.recurring ? [["pause", deed]] : []], again);
    case "paused": return buttons([["cancel", deed], ["resume", deed]], again);
    default: return [];
  }
}

const recurs = (t) => (t.recurring ? `${t.recurring.table}, round ${t.recurring.round}` : "");

export const timers = asking("Named timers", "In the order in which they were set.", {
  path: "timers",
  fields: [["key", "Key", "order-*"], targetField, ["due_after", "Due after", "10m, or a time"], ["due_before", "Due before", "1h, or a time"],
    ["state", "State", "", ["pending", "paused", "fired", "cancelled", "all"]]],
  draw(d, params, again) {
    const many = { all: true, key: params.key, target: params.target, due_after: params.due_after, due_before: params.due_before };
    return [
      params.target && access.actions && (params.state ?? "pending") === "pending"
        ? el("p", {}, "All that match: ", ...buttons([["cancel", many], ["move", many]], again)) : null,
      sheet([["Key", ""], ["Target", ""], ["Due", "tight"], ["State", ""], ["Bytes", "n"], ["", "act"]], d.timers.map((t) => [
        a(t.key, "timer", { key: t.key, target: t.target }), two(t.target, recurs(t)), two(until(t.due, d.at), t.due && moment(t.due)),
        t.became || t.state, count(t.size), el("span", {}, timerButtons(t, again)),
      ]), "No such timers."),
      d.next ? more("Go on", "timers", { ...params, after: d.next }) : null,
    ];
  },
});

export const schedules = asking("Schedules", "Timers that recur, in the order in which their pending rounds were stored.", {
  path: "schedules", fields: [["key", "Name", "night*"], targetField],
  draw(d, params, again) {
    return [
      sheet([["Name", ""], ["Target", ""], ["Recurs", ""], ["Round", "n"], ["Due", "tight"], ["Then", "tight"], ["", "act"]], d.schedules.map((t) => [
        a(t.key, "timer", { key: t.key, target: t.target }), t.target, two(t.recurring.table, t.recurring.set && "set " + t.recurring.set),
        count(t.recurring.round), t.recurring.paused ? "paused" : two(until(t.due, d.at), moment(t.due)),
        el("span", {}, ...t.next.map((n) => el("span", { class: "sub" }, n.at + " " + n.zone + (n.clocks_changed_seconds ? " (clocks changed)" : "")))),
        el("span", {}, timerButtons(t, again)),
      ]), "No schedules."),
      d.next ? more("Go on", "schedules", { ...params, after: d.next }) : null,
    ];
  },
});

export const timer = asking("One timer", "What became of it, as long as its history is kept.", {
  path: "timer",
  draw: (t, _, again) => [el("div", { class: "card" }, facts([
    ["key", t.key], ["target", t.target], ["is", t.became ? `${t.outcome} (${t.became})` : t.outcome], ["due", t.due && moment(t.due)],
    ["recurs", recurs(t)],
    ["generation", t.generation ? String(t.generation) : ""], ["because", t.why], ["at", moment(t.at)],
  ]), el("div", {}, timerButtons(t, again)))],
});

const letterButtons = (deed, again) => buttons([["resend", deed], ["remove", deed]], again);

export const retrying = asking("Retrying", "What targets refuse, the most first: why, and when it is tried again.", {
  path: "retrying", fields: [targetField],
  draw: (d, params, again) => [
    sheet([["Target", ""], ["Messages", "n"], ["Last reason", ""], ["Attempts", "n"], ["Next", ""], ["", "act"]], d.groups.map((g) => [
      g.target ? a(g.target, "retrying", { target: g.target }) : "all others", count(g.messages),
      two(g.last_reason || "–", g.state), g.attempts_allowed ? `${g.attempts} of ${g.attempts_allowed}` : count(g.attempts),
      two(until(g.next_attempt, d.time), g.id ? a("such as", "where", { id: g.id }) : ""),
      el("span", {}, g.target ? buttons([["pause", { target: g.target }]], again) : []),
    ]), "Nothing waits in the retry lanes."),
    d.messages < d.waiting ? el("p", { class: "quiet" }, `${count(d.messages)} of ${count(d.waiting)} were looked at.`) : null,
  ],
});

export const dead = asking("Dead letters", "What could not be delivered, by code, target and reason, the most first.", {
  path: "dead", fields: [targetField],
  draw: (d, params, again) => [
    sheet([["Letters", "n"], ["Code", "tight"], ["Target", ""], ["Reason", ""], ["Newest", ""], ["", "act"]], d.groups.map((g) => {
      const target = g.target === "-" ? "" : g.target;
      return [a(count(g.letters), "letters", { code: g.code, target }), g.code ?? "–", g.target ?? "–", g.reason ?? "–",
        a(second(g.newest), "letter", { number: g.number }), el("span", {}, g.code && target ? letterButtons({ code: g.code, target }, again) : [])];
    }), "No dead letters."),
    el("p", { class: "quiet" }, `${count(d.letters)} letters of ${count(d.kinds)} kinds` + (d.partial ? ", and more: there was no time to count all." : ".")
      + (access.actions ? " Actions here are on all letters of the code and target, whatever the reason." : "")),
  ],
});

export const letters = asking("Dead letters, one by one", "The oldest first.", {
  path: "letters", fields: [["code", "Code", "undelivered"], targetField, ["since", "Since", "2h, or a time"]],
  draw(d, params, again) {
    const chosen = { code: params.code, target: params.target, since: params.since };
    return [
      (params.code || params.target || params.since) && access.actions
        ? el("p", {}, "All that match: ", ...letterButtons(chosen, again)) : null,
      sheet([["Number", ""], ["Dead since", "tight"], ["Code", "tight"], ["Target", ""], ["Reason", ""], ["", "act"]], d.letters.map((l) => [
        a(String(l.number), "letter", { number: l.number }), second(l.dead_since), l.code, l.target || "–", l.reason || "–",
        el("span", {}, letterButtons({ number: l.number }, again)),
      ]), "No such letters."),
      d.more ? el("p", { class: "quiet" }, "There are more. Choose a time, or ask in a shell.") : null,
    ];
  },
});

// A body as text, JSON or bytes. All of it becomes one text node.
function body(b) {
  const forms = [];
  if (b.text !== undefined) forms.push(["text", "Text"]);
  let json = null;
  try {
    json = JSON.stringify(JSON.parse(b.text), null, 2);
    forms.push(["json", "JSON"]);
  } catch { /* it is none */ }
  forms.push(["hex", "Hex"]);
  const pre = el("pre", { tabindex: "0", "aria-label": "Body", id: "body" });
  const show = (form) => { pre.textContent = form === "json" ? json : form === "hex" ? b.hex : b.text; };
  show(forms[0][0]);
  return el("div", {}, el("div", { class: "above" }, el("h2", {}, `Body, ${bytes(b.size)}` + (b.shown < b.size ? `, the first ${bytes(b.shown)}` : "")),
    choice("Show the body as", forms, forms[0][0], show)), b.size ? pre : el("p", { class: "quiet" }, "empty"));
}

export const letter = asking("One dead letter", "With what it carries.", {
  path: "letter",
  draw: (l, _, again) => (l === null ? [el("p", { class: "none" }, "There is no such letter: it was resent or removed.")] : [
    el("div", { class: "card" }, facts([
      ["number", String(l.number)], ["dead since", moment(l.dead_since)], ["code", l.code], ["reason", l.reason], ["unreadable", l.unreadable],
      ["unproven", l.unproven], ["message", l.id], ["published on", l.subject], ["target", l.target], ["accepted", l.accepted && moment(l.accepted)],
      ["due", l.due && moment(l.due)], ["expires", l.expires && moment(l.expires)], ["refused", l.attempts ? `${l.attempts} times` : ""],
      ["size", bytes(l.size)],
    ]), el("div", {}, letterButtons({ number: l.number }, again))),
    Object.keys(l.headers).length ? el("div", { class: "card" }, el("h2", {}, "Headers"),
      facts(Object.entries(l.headers).map(([name, values]) => [name, values.join(", ")]))) : null,
    el("div", { class: "card" }, l.body ? body(l.body)
      : el("p", { class: "quiet" }, "Bodies are hidden: DELAY_HTTP_BODIES=on shows them. ", "delaybroker dead show has them, too.")),
  ]),
});

export const targets = asking("Targets", "What is delivered to each, what refuses, and what is paused.", {
  path: "targets",
  draw(d, _, again) {
    const input = el("input", { name: "pattern", placeholder: "orders.>", "aria-label": "Pattern to pause", autocomplete: "off" });
    return [
      el("h2", {}, "Paused"),
      access.actions ? el("div", { class: "above" }, input, el("button", {
        type: "button", onclick: () => buttons([["pause", { target: input.value.trim() }]], again)[0].click(),
      }, "Pause")) : null,
      sheet([["Pattern", ""], ["State", ""], ["Since", ""], ["Waiting", "n"], ["", "act"]], d.paused.map((p) => [
        p.pattern, p.state, second(p.since), count(p.waiting),
        el("span", {}, p.state === "paused" ? buttons([["resume", { target: p.pattern }]], again) : []),
      ]), "Nothing is paused."),
      el("h2", {}, "Refusing"),
      sheet([["Target", ""], ["Waiting", "n"], ["Last reason", ""], ["Rate", ""], ["Paused", ""], ["", "act"]], d.targets.map((t) => [
        t.target ? a(t.target, "retrying", { target: t.target }) : "all others", count(t.retrying.reduce((n, g) => n + g.messages, 0)),
        t.retrying[0].last_reason || t.retrying[0].state, t.rate ?? "–", t.paused ?? "–",
        el("span", {}, t.target && !t.paused ? buttons([["pause", { target: t.target }]], again) : []),
      ]), "No target refuses anything."),
      el("h2", {}, "Delivered"),
      sheet([["Target", ""], ["Delivered", "n"], ["Refused", "n"], ["Rate, each", "n"], ["Paused", ""], ["", "act"]], d.flows.map((f) => [
        a(f.target, "pending", { target: f.target }), two(perSecond(f.delivered_per_second), count(f.delivered) + " in all"),
        two(perSecond(f.refused_per_second), count(f.refused) + " in all"),
        f.limit_per_second ? two(`${count(f.limit_per_second)}/s`, f.rate === f.target ? "" : f.rate) : "–", f.paused ?? "–",
        el("span", {}, f.paused ? [] : buttons([["pause", { target: f.target }]], again)),
      ]), "Nothing was delivered yet."),
      el("p", { class: "quiet" }, "By the first two tokens, as of the last ten seconds; in all is since the instances started. A rate holds for each target and instance."),
      d.silent ? el("p", { class: "warn" }, `${d.silent} of the instances ${d.silent === 1 ? "does" : "do"} not say what ${d.silent === 1 ? "it delivers" : "they deliver"}, and ${d.silent === 1 ? "is" : "are"} left out.`) : null,
    ];
  },
});

const perSecond = (n) => (n === null || n === undefined ? "–" : rate(n) + "/s");

// The lanes come with the stream of events, and change in place.
export function lanes(main) {
  const columns = [["Lane", ""], ["Pending", "n"], ["In memory", "n"], ["Oldest overdue", "n"], ["State", ""], ["Owner", ""]];
  const body = el("tbody"), rest = el("p", { class: "quiet" });
  let all = false;
  main.replaceChildren(el("h1", {}, "Lanes"), el("p", { class: "quiet" }, "The streams that messages pass, the busiest first."), verb("delaybroker levels --watch"),
    el("div", { class: "above" }, choice("Which lanes", [["busy", "Busy"], ["all", "All"]], "busy", (v) => { all = v === "all"; if (now.state) draw(now.state); })),
    table(columns, body), rest);
  function draw(s) {
    const idle = (l) => l.pending === 0 && (l.state === "read" || l.state === "rests");
    const shown = s.lanes.filter((l) => all || !idle(l)).sort((x, y) => (y.pending ?? -1) - (x.pending ?? -1));
    body.replaceChildren(...shown.map((l) => row(columns, [
      two(l.stream, l.kind + (l.level ? " " + l.level : "")), count(l.pending), count(l.held), l.oldest_seconds > 0 ? span(l.oldest_seconds) : "–",
      el("span", { class: ["not read", "nobody reads it", "in doubt", "waits for a newer broker"].includes(l.state) ? "bad" : "" }, l.state + (l.state === "rests" ? ", on " + until(l.resumes_at, s.time) : "")),
      l.owner || "–",
    ])));
    rest.textContent = `${s.lanes.length - shown.length} idle`;
    rest.hidden = s.lanes.length === shown.length;
  }
  if (now.state) draw(now.state);
  return listen((kind, value) => kind === "state" && draw(value));
}

// The form "publish a delay" shows a line for each language. It publishes nothing.
export function publish(main) {
  const field = (name, label, value, hint) => el("label", {}, label, el("input", { name, value, placeholder: hint, autocomplete: "off", spellcheck: "false" }));
  const out = el("div", { id: "lines" });
  const form = el("form", { class: "search", onsubmit: (e) => e.preventDefault(), oninput: draw },
    field("target", "Target", "orders.expire"), field("when", "After, or at", "30m", "1h30m, or 2026-12-24T18:00:00Z"), field("body", "Body", '{"id":42}'));
  main.replaceChildren(el("h1", {}, "Publish a delay"),
    el("p", { class: "quiet" }, "Any client that can publish to JetStream can ask for one. The page itself publishes nothing."), form, out);
  let known = null;
  get("lines").then((v) => { known = v; draw(); }, (err) => out.replaceChildren(el("p", { class: "bad" }, err.message)));
  function draw() {
    if (!known) return;
    const given = new FormData(form);
    const target = given.get("target").trim(), when = given.get("when").trim(), body = given.get("body");
    const problem = check(target, when);
    if (problem) return out.replaceChildren(el("p", { class: "bad", role: "alert" }, problem));
    const way = isTime(when) ? "at" : "in";
    const subject = `${known.prefix}${way}.${when}.${target}`;
    const line = `delaybroker pub '${inShell(target)}' '${inShell(body)}' --${way} ${when}`;
    out.replaceChildren(el("p", {}, "Publish to ", el("code", { class: "wide" }, subject)),
      ...[{ language: "Shell", line }, ...known.lines.map((l) => ({ ...l, line: l.line.replace("SUBJECT", () => subject).replace("BODY", () => within(l, body)) }))]
        .map((l) => el("div", { class: "line" }, el("b", {}, l.language), el("code", {}, l.line), copy(l.line))));
  }
  return () => {};
}

const inShell = (text) => text.replaceAll("'", "'\\''");

// within is a body inside the quotes of a language.
function within(l, body) {
  switch (l.language) {
    case "NATS CLI": return inShell(body);
    case "JavaScript": case "Python": return body.replaceAll("\\", "\\\\").replaceAll("'", "\\'").replaceAll("\n", "\\n");
    case "Go": return body.replaceAll("`", "` + \"`\" + `");
    default: return body;
  }
}

function check(target, when) {
  if (!/^[^\s.*>]+(\.[^\s.*>]+)*$/.test(target)) return "A target is tokens separated by dots, without wildcards.";
  if (/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(Z|[+-]\d\d:\d\d)$/.test(when)) return "";
  if (!/^(\d+(ms|s|m|h|d|w))+$/.test(when)) return "When? A duration such as 30m or 1h30m, or a time with a zone such as 2026-12-24T18:00:00Z.";
  return "";
}

const isTime = (when) => /^\d{4}/.test(when);
