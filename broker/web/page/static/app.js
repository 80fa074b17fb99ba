// Puts the page together: which view is shown, light or dark, who may do what.

import { $, el } from "./dom.js";
import { access, begin, use } from "./api.js";
import { unlock } from "./act.js";
import { redraw } from "./charts.js";
import { connect, listen } from "./live.js";
import { overview } from "./overview.js";
import * as views from "./views.js";

const tabs = [["", "Overview", overview], ["pending", "Pending", views.pending], ["timers", "Timers", views.timers],
  ["schedules", "Schedules", views.schedules],
  ["retrying", "Retrying", views.retrying], ["dead", "Dead letters", views.dead], ["targets", "Targets", views.targets],
  ["lanes", "Lanes", views.lanes], ["publish", "Publish", views.publish]];
const others = { where: [views.where, "pending"], timer: [views.timer, "timers"], letters: [views.letters, "dead"], letter: [views.letter, "dead"] };

let leave = () => {};

function go(hash) {
  location.hash = hash;
}

function route(moved = true) {
  const [path, query = ""] = location.hash.replace(/^#\/?/, "").split("?");
  const params = Object.fromEntries(new URLSearchParams(query));
  if (path === "pending" && params.id) return location.replace(views.link("where", { id: params.id }));
  const tab = tabs.find(([id]) => id === path);
  const [view, under] = tab ? [tab[2], path] : others[path] ?? [overview, ""];
  leave();
  for (const node of $("tabs").children) {
    const current = node.getAttribute("href") === "#/" + under;
    if (current) node.setAttribute("aria-current", "page");
    else node.removeAttribute("aria-current");
    if (current) node.scrollIntoView({ block: "nearest", inline: "nearest" });
  }
  document.title = (tabs.find(([id]) => id === under)?.[1] ?? "") + " · delaybroker";
  leave = view($("main"), params, go) ?? (() => {});
  if (moved) {
    window.scrollTo(0, 0);
    $("main").focus({ preventScroll: true });
  }
}

// Light and dark: as the system says, until somebody says otherwise.
const scheme = "delaybroker-theme";
function theme(kept) {
  if (kept) document.documentElement.dataset.theme = kept;
  else delete document.documentElement.dataset.theme;
  redraw();
}
const isDark = () => document.documentElement.dataset.theme ? document.documentElement.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
$("theme").addEventListener("click", () => {
  const next = isDark() ? "light" : "dark";
  localStorage.setItem(scheme, next);
  theme(next);
});
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);

function showAccess() {
  $("token").hidden = !access.tokens;
  $("token").textContent = access.token ? "Lock" : "Unlock";
}
$("token").addEventListener("click", async () => {
  const changed = () => { showAccess(); route(false); };
  if (!access.token) return unlock(changed);
  await use("");
  changed();
});

function trouble(text) {
  $("trouble").textContent = text;
  $("trouble").hidden = !text;
}

function state(s) {
  const ready = $("ready");
  const word = s.ready ? "ready" : "not ready";
  if (ready.textContent !== word) ready.textContent = word;
  ready.className = "pill " + (s.ready ? "good" : "bad");
  $("version").textContent = `${s.version} · ${s.instances.length} ${s.instances.length === 1 ? "instance" : "instances"}`;
  $("durability").textContent = s.durability;
  trouble([...s.failing.map((c) => `${c.name}: ${c.detail}`), s.trouble].filter(Boolean).join("; "));
}

theme(localStorage.getItem(scheme));
$("tabs").append(...tabs.map(([id, title]) => el("a", { href: "#/" + id }, title)));
window.addEventListener("hashchange", () => route());
listen((kind, value) => kind === "state" && state(value));
try {
  await begin();
} catch (err) {
  trouble(err.message);
}
showAccess();
route(false);
connect((lost) => {
  if (!lost) return;
  $("ready").textContent = "no connection";
  $("ready").className = "pill bad";
});
