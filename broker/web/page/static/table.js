// A table whose rows can be sorted and selected. An update of the rows keeps the sorting and the selection.

import { Component, el } from "./dom.js";
import { counted } from "./format.js";

// A column is { name, kind, cell, sort }. cell(row) is the content of a cell, and sort(row) the value for sorting.
// id(row) identifies a row. label(row) is the name of a row for a screen reader. nothing is the text for a table
// without rows. If bulk is given, rows can be selected, and bulk(rows) returns the buttons for the selected rows.
class Table extends Component {
  state = { by: null, down: false, chosen: new Set() };

  sorted() {
    const { columns, rows } = this.props, { by, down } = this.state;
    const value = columns.find((c) => c.name === by)?.sort;
    if (!value) return rows;
    const order = (a, b) => (typeof a === "number" && typeof b === "number" ? a - b
      : String(a ?? "").localeCompare(String(b ?? ""), "en", { numeric: true }));
    return [...rows].sort((a, b) => (down ? -1 : 1) * order(value(a), value(b)));
  }

  sortBy(name) {
    this.setState(({ by, down }) => ({ by: name, down: by === name && !down }));
  }

  choose(ids, chosen) {
    this.setState((s) => {
      const next = new Set(s.chosen);
      for (const id of ids) if (chosen) next.add(id); else next.delete(id);
      return { chosen: next };
    });
  }

  head(c) {
    const { by, down } = this.state;
    if (!c.sort) return el("th", { scope: "col", class: c.kind }, c.name);
    const sorted = by === c.name ? (down ? "descending" : "ascending") : null;
    return el("th", { scope: "col", class: c.kind, "aria-sort": sorted },
      el("button", { type: "button", class: "sort", title: "Sort the rows of this page",
        onclick: () => this.sortBy(c.name) }, c.name,
      el("span", { "aria-hidden": "true" }, sorted === "descending" ? " ▾" : sorted ? " ▴" : "")));
  }

  render({ columns, rows, id, label, nothing, bulk }, { chosen }) {
    if (rows.length === 0) return el("div", { class: "sheet" }, el("p", { class: "none" }, nothing));
    const picked = rows.filter((r) => chosen.has(id(r)));
    const all = picked.length === rows.length;
    return el("div", {},
      bulk && el("label", { class: "check narrow" }, el("input",
        { type: "checkbox", checked: all, onchange: () => this.choose(rows.map(id), !all) }), "Select all"),
      bulk && picked.length > 0 && el("div", { class: "bulk", role: "group",
        "aria-label": "Actions for the selection" },
        el("b", { role: "status" }, counted(picked.length, "row") + " selected"), bulk(picked),
        el("button", { type: "button", class: "small", onclick: () => this.setState({ chosen: new Set() }) },
          "Clear the selection")),
      el("div", { class: "sheet" }, el("table", {},
        el("thead", {}, el("tr", {},
          bulk && el("th", { class: "pick" }, el("input", {
            type: "checkbox", "aria-label": "Select all rows", checked: all,
              onchange: () => this.choose(rows.map(id), !all),
          })), columns.map((c) => this.head(c)))),
        el("tbody", {}, this.sorted().map((r) => el("tr", { key: id(r), class: chosen.has(id(r)) ? "chosen" : null },
          bulk && el("td", { class: "pick" }, el("input", {
            type: "checkbox", "aria-label": "Select " + label(r), checked: chosen.has(id(r)),
              onchange: (e) => this.choose([id(r)], e.target.checked),
          })),
          columns.map((c) => el("td", { class: c.kind, "data-label": c.name }, el("span", {}, c.cell(r) ?? "–")))))))));
  }
}

export const table = (props) => el(Table, props);
