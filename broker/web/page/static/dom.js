// Makes elements. Text becomes text nodes, whatever is in it: nothing here, or elsewhere, makes HTML from text.

export function el(tag, props = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(props)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (name === "class") node.className = value;
    else node.setAttribute(name, value === true ? "" : value);
  }
  for (const child of children.flat(Infinity)) {
    if (child !== undefined && child !== null && child !== false) node.append(child);
  }
  return node;
}

export const $ = (id) => document.getElementById(id);

// A row of buttons of which one is pressed.
export function choice(label, options, chosen, onchoose) {
  const buttons = options.map(([value, text]) => el("button", {
    type: "button", "aria-pressed": String(value === chosen),
    onclick: () => {
      for (const [at, b] of buttons.entries()) b.setAttribute("aria-pressed", String(options[at][0] === value));
      onchoose(value);
    },
  }, text));
  return el("span", { class: "switch", role: "group", "aria-label": label }, buttons);
}

export function copy(text) {
  const button = el("button", {
    type: "button", class: "small", onclick: async () => {
      try {
        await navigator.clipboard.writeText(text);
        button.textContent = "Copied";
      } catch {
        button.textContent = "Select and copy";
      }
      setTimeout(() => { button.textContent = "Copy"; }, 1500);
    },
  }, "Copy");
  return button;
}

// The line of a shell that does the same.
export function verb(line) {
  return el("p", { class: "verb" }, "The same in a shell:", el("code", {}, line), copy(line));
}

// A table. Columns are [title, class]; rows are arrays of cells, each a node or text.
export function sheet(columns, rows, nothing) {
  if (rows.length === 0) return el("div", { class: "sheet" }, el("p", { class: "none" }, nothing));
  return table(columns, el("tbody", {}, rows.map((cells) => row(columns, cells))));
}

// A table whose body changes in place.
export function table(columns, body) {
  return el("div", { class: "sheet" }, el("table", {},
    el("thead", {}, el("tr", {}, columns.map(([title, kind]) => el("th", { scope: "col", class: kind }, title)))), body));
}

export function row(columns, cells) {
  return el("tr", {}, cells.map((cell, at) =>
    el("td", { class: columns[at][1], "data-label": columns[at][0] }, cell instanceof Node ? cell : el("span", {}, cell ?? "–"))));
}

export function facts(pairs) {
  return el("dl", { class: "facts" }, pairs.filter(([, value]) => value !== undefined && value !== null && value !== "")
    .map(([name, value]) => [el("dt", {}, name), el("dd", {}, value)]));
}
