// Charts, drawn by uPlot. A canvas ignores the stylesheet, so each drawing reads the colours from the stylesheet. The
// charts are drawn again when the colour scheme changes.

import { Component, el } from "./dom.js";
import { short } from "./format.js";
import { isUTC, shortTime } from "./time.js";

const drawn = new Set();
const height = 190; // pixels

// Returns the colour of a class in the stylesheet.
function colorOf(kind) {
  const probe = Object.assign(document.createElement("i"), { className: kind, hidden: true });
  document.body.append(probe);
  const color = getComputedStyle(probe).color;
  probe.remove();
  return color;
}

const translucent = (color) => color.replace(/^rgb\((.*)\)$/, "rgba($1, 0.13)");

// Properties of a chart: title is the heading. series is a list of [name, class, unit]. data has the format of uPlot: a
// column of times, and a column for each series. If bars is set, the chart has bars with an edge, so that a small bar is
// visible beside a large bar. If log is set, the scale is logarithmic. value(n) formats a number in the caption, and
// unit(n) a number of the axis. since is a text in the caption, and extra an element after the text. open(i) is called
// when the viewer chooses a bar, with the mouse, or with arrow keys and Enter. nothing replaces a chart without a value.
// errors are the maximum errors of the bars, and marks a list of { at, text } of moments, in unix seconds.
export class Chart extends Component {
  state = { at: null };

  shouldComponentUpdate(next, state) {
    if (next.data !== this.props.data) this.fresh = true;
    return this.fresh || state.at !== this.state.at || next.extra !== this.props.extra || next.since !== this.props.since;
  }

  componentDidMount() {
    this.size = new ResizeObserver(() => (this.chart ? this.chart.setSize({ width: this.plot.clientWidth, height })
      : this.draw()));
    this.size.observe(this.plot);
    drawn.add(this);
    this.draw();
  }

  componentDidUpdate() {
    if (!this.fresh) return;
    this.fresh = false;
    const few = this.isFew();
    if (this.chart && this.few === few) this.chart.setData(this.props.data);
    else this.draw();
  }

  componentWillUnmount() {
    drawn.delete(this);
    this.size.disconnect();
    this.chart?.destroy();
  }

  // A line needs two neighbouring values, so a column with few values is drawn as points.
  isFew = () => this.props.data?.slice(1).every((c) => c.filter((v) => v !== null).length < 12);

  // The value of a series at the cursor. Without a cursor, the newest known value.
  currentValue(n) {
    const { data, bars } = this.props, { at } = this.state, column = data?.[n + 1] ?? [];
    if (at !== null) return column[at];
    return bars ? null : column.findLast((v) => v !== null);
  }

  text(n) {
    const [name, , unit] = this.props.series[n], v = this.currentValue(n);
    return v === null || v === undefined ? name : `${name} ${this.props.value(v)}${unit}`;
  }

  key = (e) => {
    const { data, open } = this.props, last = (data?.[0].length ?? 0) - 1, at = this.state.at ?? -1;
    const next = { ArrowRight: Math.min(at + 1, last), ArrowLeft: Math.max(at - 1, 0), Home: 0, End: last }[e.key];
    if (next !== undefined) {
      e.preventDefault();
      this.chart?.setCursor({ left: this.chart.valToPos(data[0][next], "x") + 1, top: 1 });
      this.setState({ at: next });
    } else if (e.key === "Enter" && at >= 0) open(at);
  };

  // Reports whether no value is above zero.
  isEmpty = () => this.props.data && !this.props.data.slice(1).some((c) => c.some((v) => v > 0));

  // The moment near the cursor, if there is one.
  markAt() {
    const { data, marks = [] } = this.props, { at } = this.state;
    if (at === null || !data) return "";
    const step = (data[0].at(-1) - data[0][0]) / Math.max(1, data[0].length - 1);
    return marks.filter((m) => Math.abs(m.at - data[0][at]) <= 2 * step).map((m) => m.text).join("; ");
  }

  render({ title, series, data, open, extra, since, nothing = "No value yet." }, { at }) {
    const empty = this.isEmpty();
    const all = series.map((_, n) => this.text(n)).join(", "),
      where = at !== null && data ? shortTime(data[0][at] * 1000) : "";
    return el("figure", {},
      el("figcaption", {}, el("h2", {}, title), series.map(([name, kind], n) =>
        el("span", { class: "key", key: name }, el("i", { class: kind }), this.text(n))),
        el("span", { class: "key" }, where ? [where, this.markAt()].filter(Boolean).join(" · ") : since),
        el("span", { class: "gap" }), extra),
      empty && el("p", { class: "none" }, nothing),
      el("div", open ? {
        class: "plot opens", hidden: empty, role: "slider", tabindex: "0", onkeydown: this.key,
          onclick: () => this.state.at !== null && open(this.state.at),
        "aria-label": title + ": arrow keys choose, Enter opens", "aria-valuetext": where ? `${where}, ${all}` : all,
        "aria-valuemin": "0", "aria-valuemax": String((data?.[0].length ?? 1) - 1), "aria-valuenow": String(at ?? 0),
        ref: (node) => { this.plot = node; },
      } : {
        class: "plot", hidden: empty, role: "img", "aria-label": `${title}: ${all}`,
          ref: (node) => { this.plot = node; },
      }));
  }

  // The upper ends of the errors.
  tops = () => (this.props.errors ?? []).map((e, i) => (this.props.data[1][i] ?? 0) + e);

  draw() {
    const { data, series, bars, log, value, unit } = this.props, bad = colorOf("warn"), ink = colorOf("ink");
    if (!data || !this.plot?.clientWidth) return;
    this.chart?.destroy();
    this.few = this.isFew();
    const quiet = colorOf("quietly"), line = colorOf("lines");
    const axis = { stroke: quiet, font: "12px system-ui, sans-serif", grid: { stroke: line, width: 1 },
      ticks: { show: false } };
    this.chart = new window.uPlot({
      width: this.plot.clientWidth, height, padding: [8, 16, 0, 0],
      tzDate: (seconds) => (isUTC() ? window.uPlot.tzDate(new Date(seconds * 1000), "Etc/UTC")
        : new Date(seconds * 1000)),
      cursor: { y: false, drag: { x: false, y: false }, points: { size: 7 } },
      legend: { show: false },
      scales: { x: { time: true }, y: log ? { distr: 3, log: 10 }
        : { range: (_, low, high) => [0, high > 0 ? Math.max(high, ...this.tops()) * 1.08 : 1] } },
      axes: [
        { ...axis, grid: { show: false }, space: 70, size: 28,
          values: (_, ticks) => ticks.map((t) => shortTime(t * 1000).replace(/^(\d\d:\d\d):00$/, "$1")) },
        { ...axis, ...(log && { grid: { ...axis.grid, filter: decades }, filter: decades }), size: 56, space: 34,
          values: (_, ticks) => ticks.map((t) => (t === null ? "" : (unit ?? short)(t))) },
      ],
      series: [{}, ...series.map(([name, kind]) => {
        const color = colorOf(kind);
        return {
          label: name, stroke: color, width: bars ? 2 : 1.6, fill: bars ? color : log ? undefined : translucent(color),
            points: { show: this.few && !bars, size: 5, fill: color },
          paths: bars ? window.uPlot.paths.bars({ size: [0.82, 40], align: 1 }) : undefined,
            value: (_, v) => (v === null ? "–" : value(v)),
        };
      })],
      hooks: {
        draw: [(u) => annotate(u, this.props, bad, ink)],
        setCursor: [(u) => { if (u.cursor.event) this.setState({ at: u.cursor.idx ?? null }); }],
      },
    }, data, this.plot);
  }
}

// Draws a line at each moment of marks, and the errors of bars.
function annotate(u, { marks = [], errors, data }, bad, ink) {
  const { ctx, bbox } = u, line = (x, from, to, color) => {
    ctx.strokeStyle = color;
    ctx.beginPath();
    ctx.moveTo(x, from);
    ctx.lineTo(x, to);
    ctx.stroke();
  };
  ctx.save();
  ctx.lineWidth = devicePixelRatio;
  const [low, high] = [u.scales.x.min, u.scales.x.max];
  ctx.setLineDash([3 * devicePixelRatio, 3 * devicePixelRatio]);
  for (const { at } of marks) {
    if (at >= low && at <= high) line(u.valToPos(at, "x", true), bbox.top, bbox.top + bbox.height, bad);
  }
  ctx.setLineDash([]);
  const half = data[0].length > 1 ? 0.41 * (data[0][1] - data[0][0]) : 0;
  errors?.forEach((e, i) => {
    if (!e) return;
    const v = data[1][i] ?? 0;
    const y = (value) => u.valToPos(value, "y", true);
    line(u.valToPos(data[0][i] + half, "x", true), y(Math.max(0, v - e)), y(v + e), ink);
  });
  ctx.restore();
}

// A small chart of numbers in a row, without axes. what are the numbers of.
export function spark(values = [], what = "") {
  const most = Math.max(1, ...values), last = values.length - 1, width = 29; // steps
  return last > 0 && el("svg", { class: "spark", viewBox: `0 0 ${width} 20`, preserveAspectRatio: "none", role: "img",
    "aria-label": `${what}: at most ${short(most)}, now ${short(values[last])}` },
  el("polyline", { points: values.map((v, i) => `${width - last + i},${19 - 18 * v / most}`).join(" ") }));
}

const decades = (_, ticks) => ticks.map((v) => (Math.log10(v) % 1 === 0 ? v : null));

export function redraw() {
  for (const chart of drawn) chart.draw();
}
