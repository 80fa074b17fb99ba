// Views that request rows. The address of a view contains the query. A view is { title, tree, stop }. The page draws
// the tree of the view again after each change, and each second. The function stop ends the view.

import { $, el, link, shell } from "./dom.js";
import { get } from "./api.js";
import { unlock } from "./act.js";
import { relativeTime, serverNow, setClock } from "./time.js";

const storageKey = "delaybroker-refresh", refreshInterval = 5000; // milliseconds
let refreshing = sessionStorage.getItem(storageKey) === "on";

export const targetField = ["target", "Target", "orders.>"];
export const dueFields = [["due_after", "Due after", "10m, or a time"], ["due_before", "Due before", "1h, or a time"]];
export const findField = ["find", "Id, key or Nats-Msg-Id", ""];
export const limitField = ["limit", "Rows", "", ["50", "100", "200"]];

// Returns a view. A field of the view's form is [name, label, hint, options]. draw gets the answer, the parameters of
// the address, and a function that requests the rows again.
export function rowsView({ title, about, path, fields = [], draw }) {
  return (params, { redraw, go }) => {
    const view = location.hash.slice(2).split("?")[0], stopped = new AbortController();
    let answer = null, error = null, loadedAt = 0, busy = true;

    async function load() {
      busy = true;
      redraw();
      try {
        answer = await get(path, params, stopped.signal);
        error = null;
        loadedAt = Date.now();
        if (answer.data?.time ?? answer.data?.at) setClock(answer.data.time ?? answer.data.at);
      } catch (err) {
        if (err.name === "AbortError") return;
        error = err;
      }
      busy = false;
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
    const field = ([name, label, hint, options]) => el("label", {}, label, options
      ? el("select", { name }, options.map((o) => el("option",
        { value: o, selected: (params[name] ?? options[0]) === o }, o)))
      : el("input", { name, placeholder: hint, defaultValue: params[name] ?? "", autocomplete: "off",
        spellcheck: "false" }));

    const age = () => el("div", { class: "age" },
      el("span", { class: "quiet" }, busy && !answer ? "loading…"
        : `updated ${relativeTime(loadedAt + (serverNow() - Date.now()))}`),
      el("button", { type: "button", class: "small", disabled: busy, "aria-label": "Update the rows", onclick: load },
        "Update"),
      el("label", { class: "check" }, el("input", {
        type: "checkbox", checked: refreshing, onchange: (e) => {
          refreshing = e.target.checked;
          sessionStorage.setItem(storageKey, refreshing ? "on" : "off");
        },
      }), "every 5 s"));

    load();
    return {
      title,
      stop() {
        clearInterval(timer);
        stopped.abort();
      },
      tree: () => [
        el("h1", { tabindex: "-1" }, title), about && el("p", { class: "quiet" }, about),
        fields.length > 0 && el("form", { class: "search", role: "search", onsubmit: search }, fields.map(field),
          el("button", { class: "main" }, "Search")),
        el("div", { class: "stack", id: "rows", "aria-busy": busy ? "true" : null },
          error && refused(error),
          answer && [el("div", { class: "above" }, shell(answer.shell), el("span", { class: "gap" }), age()),
            draw(answer.data, params, load)]),
      ],
    };
  };
}

// The error of a request, and the remedy.
export const refused = (error) => el("div", { role: "alert" }, el("p", { class: "bad wide" },
  error.status === 401 ? "This view needs a token." : error.message),
error.status === 401 && el("button", { type: "button", class: "main", onclick: () => unlock() }, "Unlock"));

export const more = (view, params) => el("p", {}, el("a", { href: link(view, params), class: "button" }, "Next page"));
