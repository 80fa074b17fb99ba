// The parts of the page around a view: the header, the tabs, the colour scheme, the time zone and the viewer's rights.

import { $, choice, el, heading, link, render } from "./dom.js";
import { access, get, startSession, useToken } from "./api.js";
import { onAccess, unlock } from "./act.js";
import { redraw as redrawCharts } from "./charts.js";
import { count, counted } from "./format.js";
import { connect, listen, live, notify } from "./live.js";
import { chooseUTC, fullTime, isUTC, said, setClock, shortTime } from "./time.js";
import { overview } from "./overview.js";
import { dead, find, letter, letters, paused, pending, retrying, schedules, timer, timers, where } from "./lists.js";
import { loadOperations } from "./operations.js";
import { targets } from "./targets.js";
import { lanes } from "./lanes.js";
import { publish } from "./publish.js";

const tabs = [["", "Overview", overview], ["pending", "Pending", pending], ["timers", "Timers", timers],
  ["schedules", "Schedules", schedules],
  ["retrying", "Retrying", retrying], ["dead", "Dead letters", dead], ["targets", "Targets", targets],
    ["lanes", "Lanes", lanes], ["publish", "Publish", publish]];
const otherViews = { where: [where, "pending"], find: [find, null], timer: [timer, "timers"], letters: [letters, "dead"],
  letter: [letter, "dead"], paused: [paused, "targets"] };

const unknownView = () => ({
  title: "Not found", stop() {},
  tree: () => [el("h1", { tabindex: "-1" }, "There is no such view"), el("p", {}, el("a", { href: "#/" }, "Overview"))],
});

let view = { stop() {}, tree: () => null, title: "" }, activeTab = "", visit = 0;

const go = (hash) => { location.hash = hash; };

function redraw() {
  // The key is new for each address, so Preact does not keep the form fields of the previous view.
  render(el("div", { key: visit }, view.tree()), $("main"));
}

function route(moved = true) {
  const [path, text = ""] = location.hash.replace(/^#\/?/, "").split("?");
  const params = Object.fromEntries(new URLSearchParams(text)), tab = tabs.find(([id]) => id === path);
  const [make, belongs] = tab ? [tab[2], path] : otherViews[path] ?? [unknownView, null];
  view.stop();
  activeTab = belongs;
  visit++;
  view = { stop() {}, tree: () => null };
  view = make(params, { redraw: () => view.title && redraw(), go });
  activeTab = view.tab ?? belongs;
  header();
  redraw();
  $("tabs").querySelector("[aria-current]")?.scrollIntoView({ block: "nearest", inline: "center" });
  if (moved) {
    window.scrollTo(0, 0);
    heading()?.focus({ preventScroll: true });
  }
}

// The colour scheme is that of the system until the viewer chooses one.
const scheme = "delaybroker-theme";
function setTheme(chosen) {
  if (chosen) document.documentElement.dataset.theme = chosen;
  else delete document.documentElement.dataset.theme;
  redrawCharts();
}
const isDark = () => (document.documentElement.dataset.theme ? document.documentElement.dataset.theme === "dark"
  : matchMedia("(prefers-color-scheme: dark)").matches);
function switchTheme() {
  const next = isDark() ? "light" : "dark";
  localStorage.setItem(scheme, next);
  setTheme(next);
}
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redrawCharts);

async function lockOrUnlock() {
  if (!access.token) return unlock();
  await useToken("");
  route(false);
}

// The worst of what the page knows: a class, and words.
function verdict() {
  const s = live.state, c = live.findings;
  if (live.lost) return ["bad", "no news since " + shortTime(live.lost)];
  if (!s) return ["", "connecting"];
  if (!s.ready) return ["bad", "not ready"];
  if (c?.critical > 0) return ["bad", `ready · ${count(c.critical)} critical`];
  return c?.warnings > 0 ? ["warn", "ready · " + counted(c.warnings, "warning")] : ["good", "ready"];
}

// The worst finding, on each view but the overview, which has all findings.
function news() {
  const c = live.findings, n = (c?.critical ?? 0) + (c?.warnings ?? 0);
  if (activeTab === "" || n === 0 || live.lost) return null;
  const worst = live.found?.findings.find((f) => f.state === "critical") ?? live.found?.findings[0];
  const words = worst ? `${worst.check}: ${said(worst.detail)}` + (n > 1 ? `, and ${n - 1} more` : "")
    : [c.critical > 0 && counted(c.critical, "critical finding"), c.warnings > 0 && counted(c.warnings, "warning")]
      .filter(Boolean).join(", ");
  return el("a", { href: "#/", class: c.critical > 0 ? "bad" : "warn" }, words);
}

async function takeFindings() {
  if (!live.findings) return;
  try {
    live.found = access.rows ? await get("findings") : null;
  } catch { /* the header shows that the broker does not answer */ }
  notify("found");
}

// The numbers in the navigation.
const numberOf = {
  pending: (s) => s.numbers.pending, retrying: (s) => s.numbers.retrying, dead: (s) => s.numbers.dead,
  timers: (s) => s.lanes.find((l) => l.kind === "timers")?.pending,
};

function header() {
  const s = live.state, late = s?.numbers.oldest_seconds >= 5, [color, words] = verdict();
  const versions = [...new Set((s?.instances ?? []).map((i) => i.version).filter(Boolean))];
  render([
    el("a", { id: "ready", href: "#/", class: "pill " + color, role: "status" }, words),
    el("span", { id: "version", class: "quiet" },
      s && `${versions.join(", ") || s.version} · ${counted(s.instances.length, "instance")}`),
  ], $("fleet"));
  render([
    choice("Time zone", [["UTC", "UTC"], ["local", "Local"]], isUTC() ? "UTC" : "local",
      (zone) => { chooseUTC(zone === "UTC"); header(); redraw(); redrawCharts(); }),
    access.tokens && el("button", { id: "token", type: "button", onclick: lockOrUnlock,
      title: access.token ? `Unlocked as ${access.who}` : null }, access.token ? `Lock (${access.who})` : "Unlock"),
    el("button", { id: "theme", type: "button", "aria-label": "Change between light and dark", onclick: switchTheme },
      "◐"),
  ], $("controls"));
  render(tabs.map(([id, title]) => {
    const n = s && numberOf[id]?.(s);
    return el("a", { href: "#/" + id, key: id, "aria-current": id === activeTab ? "page" : null }, title,
      n > 0 && el("span", { class: "size" }, count(n)));
  }), $("tabs"));
  render(news(), $("news"));
  $("news").hidden = !$("news").textContent;
  document.body.classList.toggle("stale", live.lost !== null);
  const others = (s?.instances ?? []).filter((i) => !i.self).map((i) => i.name);
  const known = [...(s?.failing ?? []).map((c) => `${c.name}: ${c.detail}`), s?.trouble].filter(Boolean).join("; ");
  const text = !live.lost ? problem || known : !s ? "This broker does not answer."
    : `This broker has not answered since ${fullTime(live.lost)}. The numbers are from that time.`
      + (others.length > 0 ? ` Other instances: ${others.join(", ")}.` : "");
  if ($("trouble").textContent !== text) $("trouble").textContent = text;
  $("trouble").hidden = !text;
  document.title = (late ? `(!) ${s.numbers.overdue ? count(s.numbers.overdue) + " late" : "late"} · ` : "")
    + (view.title ? view.title + " · " : "") + "delaybroker";
}

let problem = "";
$("find").addEventListener("submit", (e) => {
  e.preventDefault();
  const word = e.target.elements.find.value.trim();
  if (!word) return;
  const next = link("find", { find: word });
  if (next === location.hash) route();
  else go(next);
});
document.addEventListener("keydown", (e) => {
  if (e.key !== "/" || e.ctrlKey || e.metaKey || e.altKey || $("dialog").open
    || e.target.closest("input, textarea, select")) return;
  e.preventDefault();
  $("find").elements.find.focus();
});
setTheme(localStorage.getItem(scheme));
window.addEventListener("hashchange", () => route());
listen((kind) => {
  if (kind === "state") setClock(live.state.time);
  if (kind === "findings") takeFindings();
  header();
  redraw();
});
setInterval(() => !document.hidden && redraw(), 1000); // updates relative times
onAccess(() => { takeFindings(); route(false); });
$("menu").addEventListener("click", () => {
  const open = $("controls").classList.toggle("open");
  $("menu").setAttribute("aria-expanded", String(open));
});
try {
  await Promise.all([startSession(), loadOperations()]);
} catch (err) {
  problem = err.message;
}
route(false);
connect();
