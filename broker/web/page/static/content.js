// The headers and the body of one message.

import { choice, el, facts } from "./dom.js";
import { access, get } from "./api.js";
import { bytes } from "./format.js";
import { refused } from "./view.js";

// Returns a function that draws the headers and the body. The page loads them only when the viewer requests them,
// because the broker logs each request.
function content(params, redraw) {
  let shown = null, error = null, form = null;
  async function load() {
    try {
      shown = await get("content", params);
      error = null;
    } catch (err) {
      error = err;
    }
    redraw();
  }
  function forms(b) {
    const all = b.text ? [["text", "Text", b.text]] : [];
    try {
      all.unshift(["json", "JSON", JSON.stringify(JSON.parse(b.text), null, 2)]);
    } catch { /* the body is not JSON */ }
    return [...all, ["hex", "Hex", b.hex]];
  }
  return () => {
    if (!access.bodies) {
      return el("p", { class: "quiet" }, "Headers and bodies are hidden: set DELAY_HTTP_BODIES=on to show them.");
    }
    if (error) return refused(error);
    if (!shown) return el("p", {}, el("button", { type: "button", onclick: load }, "Show headers and body"),
      el("span", { class: "quiet" }, " The broker logs the name of your token and the id of the message."));
    const b = shown.body, all = forms(b), one = all.find(([id]) => id === form) ?? all[0];
    const part = one[0] === "hex" ? b.hex_shown : b.shown;
    return [
      el("h2", {}, "Headers"), facts(Object.entries(shown.headers).map(([name, values]) => [name, values.join(", ")])),
      el("div", { class: "above" }, el("h2", {}, `Body, ${bytes(b.size)}`
        + (part < b.size ? `, the first ${bytes(part)}` : "")),
        b.size > 0 && choice("Show the body as", all.map(([id, name]) => [id, name]), one[0],
          (id) => { form = id; redraw(); })),
      b.size > 0 ? el("pre", { tabindex: "0", "aria-label": "Body", id: "body" }, one[2])
        : el("p", { class: "quiet" }, "The body is empty."),
    ];
  };
}

// Returns a view of one message, with its headers and its body below.
export const withContent = (view, choose) => (params, page) => {
  const inner = view(params, page), below = content(choose(params), page.redraw);
  return { ...inner, tree: () => [inner.tree(), el("div", { class: "card content" }, below())] };
};
