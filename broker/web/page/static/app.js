// The parts that all views share: the tabs, the header, light and dark, the time zone, the viewer's rights.

import { $, choice, el, heading, link, render } from "./dom.js";
import { access, begin, use } from "./api.js";
import { onAccess, unlock } from "./act.js";
import { redraw as redrawCharts } from "./charts.js";
import { count, counted } from "./format.js";
import { connect, listen, now } from "./live.js";
import { chooseUTC, isUTC, moment, setClock } from "./time.js";
import { overview } from "./overview.js";
import { find, pending, where } from "./messages.js";
import { schedules, timer, timers } from "./timers.js";
import { dead, letter, letters } from "./letters.js";
import { retrying, targets } from "./targets.js";
import { lanes } from "./lanes.js";
import { publish } from "./publish.js";

const tabs = [["", "Overview", overview], ["pending", "Pending", pending], ["timers", "Timers", timers],
  ["schedules", "Schedules", schedules],
  ["retrying", "Retrying", retrying], ["dead", "Dead letters", dead], ["targets", "Targets", targets],
    ["lanes", "Lanes", lanes], ["publish", "Publish", publish]];
const others = { where: [where, "pending"], find: [find, null], timer: [timer, "timers"], letters: [letters, "dead"],
  letter: [letter, "dead"] };

const missing = () => ({
  title: "Not found", stop() {},
  tree: () => [el("h1", { tabindex: "-1" }, "There is no such view"), el("p", {}, el("a", { href: "#/" }, "Overview"))],
});

let view = { stop() {}, tree: () => null, title: "" }, under = "", visit = 0;

const go = (hash) => { location.hash = hash; };

function redraw() {
  // Views of different addresses have different fields, so each has its own key.
  render(el("div", { key: visit }, view.tree()), $("main"));
}

function route(moved = true) {
  const [path, text = ""] = location.hash.replace(/^#\/?/, "").split("?");
  const params = Object.fromEntries(new URLSearchParams(text)), tab = tabs.find(([id]) => id === path);
  const [make, belongs] = tab ? [tab[2], path] : others[path] ?? [missing, null];
  view.stop();
  under = belongs;
  visit++;
  view = { stop() {}, tree: () => null };
  view = make(params, { redraw: () => view.title && redraw(), go });
  header();
  redraw();
  $("tabs").querySelector("[aria-current]")?.scrollIntoView({ block: "nearest", inline: "center" });
  if (moved) {
    window.scrollTo(0, 0);
    heading()?.focus({ preventScroll: true });
  }
}

// Light and dark: the system's setting, until the viewer chooses.
const scheme = "delaybroker-theme";
function theme(kept) {
  if (kept) document.documentElement.dataset.theme = kept;
  else delete document.documentElement.dataset.theme;
  redrawCharts();
}
const isDark = () => (document.documentElement.dataset.theme ? document.documentElement.dataset.theme === "dark"
  : matchMedia("(prefers-color-scheme: dark)").matches);
function switchTheme() {
  const next = isDark() ? "light" : "dark";
  localStorage.setItem(scheme, next);
  theme(next);
}
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redrawCharts);

async function lock() {
  if (!access.token) return unlock();
  await use("");
  route(false);
}

function header() {
  const s = now.state, late = s?.numbers.oldest_seconds >= 5,
    words = now.lost ? "no connection" : s ? (s.ready ? "ready" : "not ready") : "connecting";
  const versions = [...new Set((s?.instances ?? []).map((i) => i.version).filter(Boolean))];
  render([
    el("span", { id: "ready", class: "pill " + (now.lost || s && !s.ready ? "bad" : s ? "good" : ""), role: "status" },
      words),
    el("span", { id: "version", class: "quiet" }, s && `${versions.join(", ") || s.version} · ${counted(s.instances.length, "instance")}`),
  ], $("fleet"));
  render([
    choice("Time zone", [["UTC", "UTC"], ["local", "Local"]], isUTC() ? "UTC" : "local",
      (zone) => { chooseUTC(zone === "UTC"); header(); redraw(); redrawCharts(); }),
    access.tokens && el("button", { id: "token", type: "button", onclick: lock,
      title: access.token ? `Unlocked as ${access.who}` : null }, access.token ? `Lock (${access.who})` : "Unlock"),
    el("button", { id: "theme", type: "button", "aria-label": "Change between light and dark", onclick: switchTheme },
      "◐"),
  ], $("controls"));
  render(tabs.map(([id, title]) => el("a", { href: "#/" + id, key: id, "aria-current": id === under ? "page" : null },
    title)), $("tabs"));
  document.body.classList.toggle("stale", now.lost !== null);
  const elsewhere = (s?.instances ?? []).filter((i) => !i.self).map((i) => i.name);
  const text = now.lost ? `This broker has not answered since ${moment(now.lost)}. The numbers are from that time.`
    + (elsewhere.length > 0 ? ` Other instances: ${elsewhere.join(", ")}.` : "")
    : problem || [...(s?.failing ?? []).map((c) => `${c.name}: ${c.detail}`), s?.trouble].filter(Boolean).join("; ");
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
theme(localStorage.getItem(scheme));
window.addEventListener("hashchange", () => route());
listen((kind) => {
  if (kind === "state") setClock(now.state.time);
  header();
  redraw();
});
setInterval(() => !document.hidden && redraw(), 1000); // relative times change
onAccess(() => route(false));
try {
  await begin();
} catch (err) {
  problem = err.message;
}
route(false);
connect();
