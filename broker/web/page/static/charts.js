// Charts, drawn by uPlot. A canvas knows no stylesheet: colours are read from it, and again when the scheme changes.

import { el } from "./dom.js";

const drawn = new Set();

function ink(kind) {
  const probe = el("i", { class: kind, hidden: true });
  document.body.append(probe);
  const color = getComputedStyle(probe).color;
  probe.remove();
  return color;
}

const soft = (color) => color.replace(/^rgb\((.*)\)$/, "rgba($1, 0.13)");

// series are [name, class, unit]; bars draws columns.
export class Chart {
  constructor(title, series, { bars = false, extra = null, value = String } = {}) {
    this.series = series;
    this.bars = bars;
    this.value = value;
    this.plot = el("div", { class: "plot", role: "img" });
    this.title = title;
    this.keys = series.map(([name, kind]) => {
      const text = el("span", {}, name);
      return { text, node: el("span", { class: "key" }, el("i", { class: kind }), text) };
    });
    this.node = el("figure", {}, el("figcaption", {}, el("h2", {}, title), this.keys.map((k) => k.node), el("span", { class: "gap" }), extra), this.plot);
    this.size = new ResizeObserver(() => this.chart?.setSize({ width: this.plot.clientWidth, height: 190 }));
    this.size.observe(this.plot);
    drawn.add(this);
  }

  // data is as uPlot takes it: times, then a column for each series.
  set(data) {
    this.data = data;
    if (this.chart) this.chart.setData(data);
    else this.draw();
    this.say();
  }

  // say tells the newest numbers to who does not see them, and those at the cursor to who points.
  say(at) {
    const times = this.data[0];
    const parts = this.series.map(([name, , unit], n) => {
      const column = this.data[n + 1];
      let i = at ?? column.length - 1;
      while (at === undefined && !this.bars && i > 0 && column[i] === null) i--;
      const v = this.bars && at === undefined ? null : column[i];
      const text = v === null || v === undefined ? name : `${name} ${this.value(v)}${unit}`;
      this.keys[n].text.textContent = text;
      return text;
    });
    if (at !== undefined) return;
    this.plot.setAttribute("aria-label", `${this.title}: ${parts.join(", ")}; ${times.length} steps`);
  }

  draw() {
    if (!this.data || !this.plot.isConnected || this.plot.clientWidth === 0) return;
    this.chart?.destroy();
    const quiet = ink("quietly"), line = ink("lines");
    const axis = { stroke: quiet, font: "12px system-ui, sans-serif", grid: { stroke: line, width: 1 }, ticks: { show: false } };
    this.chart = new window.uPlot({
      width: this.plot.clientWidth, height: 190, padding: [8, 8, 0, 0],
      cursor: { y: false, drag: { x: false, y: false }, points: { size: 7 } },
      legend: { show: false },
      scales: { x: { time: true }, y: { range: (_, low, high) => [0, high > 0 ? high * 1.08 : 1] } },
      axes: [
        { ...axis, grid: { show: false }, space: 70, size: 28, values: (_, ticks, __, ___, step) => ticks.map((t) => label(t, step)) },
        { ...axis, size: 52, space: 34, values: (_, ticks) => ticks.map((t) => short(t)) },
      ],
      series: [{}, ...this.series.map(([name, kind]) => {
        const color = ink(kind);
        return {
          label: name, stroke: color, width: this.bars ? 0 : 1.6, fill: this.bars ? color : soft(color), points: { show: false },
          paths: this.bars ? window.uPlot.paths.bars({ size: [0.82, 40], align: 1 }) : undefined,
        };
      })],
      hooks: { setCursor: [(u) => this.say(u.cursor.idx ?? undefined)] },
    }, this.data, this.plot);
  }

  remove() {
    drawn.delete(this);
    this.size.disconnect();
    this.chart?.destroy();
    this.chart = null;
  }
}

function label(seconds, step) {
  const t = new Date(seconds * 1000);
  const two = (n) => String(n).padStart(2, "0");
  if (step >= 86400) return two(t.getMonth() + 1) + "-" + two(t.getDate());
  return two(t.getHours()) + ":" + two(t.getMinutes());
}

function short(n) {
  const a = Math.abs(n);
  if (a >= 1e6) return +(n / 1e6).toFixed(1) + "M";
  if (a >= 1e3) return +(n / 1e3).toFixed(1) + "k";
  return String(+n.toFixed(2));
}

export function redraw() {
  for (const chart of drawn) {
    chart.draw();
  }
}
