// Views that request rows. The address of a view contains the query. A view is { title, tree, stop }. The page draws
// the tree of the view again after each change, and each second. The function stop ends the view.

import { $, el, link, shell } from "./dom.js";
import { get } from "./api.js";
import { capital, counted } from "./format.js";
import { live } from "./live.js";
import { unlock } from "./act.js";
import { operation } from "./operations.js";
import { relativeTime, serverNow, setClock } from "./time.js";

const storageKey = "delaybroker-refresh", refreshInterval = 5000; // milliseconds
let refreshing = sessionStorage.getItem(storageKey) === "on";

// The answers of earlier visits, by address. A view shows them in grey until the new answer comes.
const earlier = new Map(), maxEarlier = 20;

// Returns a view of an answer: of an operation, with the fields of its form, or of another path. Defaults are parameters
// that the address may lack. draw gets the answer, the parameters of the address, a function that requests the rows
// again, and whether a part of the answer is still to come. name returns the title of one object, from the parameters.
// The pieces of an answer are requested at the same time, and shown as they come.
export function rowsView({
  title, name, about, op, path = "look/" + op?.replaceAll(" ", "/"), fields, defaults = {}, pieces, draw,
}) {
  return (params, { redraw, go }) => {
    const view = location.hash.slice(2).split("?")[0], stopped = new AbortController();
    const address = location.hash, heading = name?.(params) || title;
    let answer = earlier.get(address) ?? null, error = null, loadedAt = 0, busy = true, open = false;

    async function loadPiece(part, take) {
      try {
        take(await get(path, { ...defaults, ...params, part }, stopped.signal));
      } catch (err) {
        if (err.name !== "AbortError") error = err;
      }
      redraw();
    }
    async function load() {
      let fresh = null;
      busy = true;
      error = null;
      redraw();
      await Promise.all((pieces ?? [undefined]).map((part) => loadPiece(part, (a) => {
        fresh = fresh ? { ...fresh, parts: { ...fresh.parts, ...a.parts }, trouble: [...fresh.trouble, ...a.trouble],
          partial: fresh.partial || a.partial } : a;
        answer = fresh;
        loadedAt = Date.now();
        if (a.time ?? a.at) setClock(a.time ?? a.at);
      })));
      if (stopped.signal.aborted) return;
      busy = false;
      if (fresh && !error) {
        earlier.delete(address);
        earlier.set(address, fresh);
        if (earlier.size > maxEarlier) earlier.delete(earlier.keys().next().value);
      }
      redraw();
    }
    const mayReload = () => refreshing && !busy && !document.hidden && !$("dialog").open
      && !document.querySelector(".bulk");
    const timer = setInterval(() => { if (mayReload()) load(); }, refreshInterval);

    function search(e) {
      e.preventDefault();
      const next = link(view, Object.fromEntries(new FormData(e.target)));
      if (next === location.hash) load();
      else go(next);
    }
    const field = ({ name, label, hint, choices, default: standard = "" }) => el("label", {}, capital(label), choices
      ? el("select", { name }, (standard ? choices : ["", ...choices]).map((o) => el("option",
        { value: o, selected: (params[name] ?? standard) === o }, o)))
      : el("input", { name, placeholder: hint, defaultValue: params[name] ?? "", autocomplete: "off",
        spellcheck: "false" }));
    const formFields = () => fields ?? operation(op)?.fields ?? [];

    const age = () => el("div", { class: "age" },
      el("span", { class: "quiet" }, loadedAt === 0 ? "from your last visit"
        : `updated ${relativeTime(loadedAt + (serverNow() - Date.now()))}`),
      el("button", { type: "button", class: "small", disabled: busy, "aria-label": "Update the rows", onclick: load },
        "Update"),
      el("label", { class: "check" }, el("input", {
        type: "checkbox", checked: refreshing, onchange: (e) => {
          refreshing = e.target.checked;
          sessionStorage.setItem(storageKey, refreshing ? "on" : "off");
        },
      }), "every 5 s"));

    const reading = () => (live.state ? `Reading ${heading}: ${counted(live.state.numbers.pending, "message")} in the lanes…`
      : `Reading ${heading}…`);
    const filter = (n) => el("button", { type: "button", class: "small filter", "aria-expanded": String(open),
      onclick: () => { open = !open; redraw(); } }, n > 0 ? `Filter (${n}) ⋯` : "Filter ⋯");

    load();
    return {
      title: heading,
      stop() {
        clearInterval(timer);
        stopped.abort();
      },
      tree: () => [
        el("h1", { tabindex: "-1" }, heading), about && el("p", { class: "quiet about" }, about),
        formFields().length > 0 && filter(formFields().filter((f) => params[f.name]).length),
        formFields().length > 0 && el("form", { class: "search" + (open ? " open" : ""), role: "search",
          onsubmit: search }, formFields().map(field), el("button", { class: "main" }, "Search")),
        el("div", { class: "stack" + (busy && loadedAt === 0 ? " old" : "") + (open ? " open" : ""), id: "rows",
          "aria-busy": busy ? "true" : null },
          error && refused(error),
          answer && [el("div", { class: "above" }, shell(answer.shell), el("span", { class: "gap" }), age()),
            draw(answer, params, load, busy)],
          busy && (!answer || pieces) && el("p", { class: "quiet reading", role: "status" }, reading())),
      ],
    };
  };
}

// The error of a request, and the remedy.
export const refused = (error) => el("div", { role: "alert" }, el("p", { class: "bad wide" },
  error.status === 401 ? "This view needs a token." : error.message),
error.status === 401 && el("button", { type: "button", class: "main", onclick: () => unlock() }, "Unlock"));

export const more = (view, params) => el("p", {}, el("a", { href: link(view, params), class: "button" }, "Next page"));
