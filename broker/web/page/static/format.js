// Formats of numbers.

export function count(n) {
  if (n === undefined || n === null) return "–";
  return Math.round(n).toLocaleString("en").replaceAll(",", " ");
}

// "1 letter", "2 letters".
export const counted = (n, noun) => `${count(n)} ${noun}${n === 1 ? "" : "s"}`;

export function rate(n) {
  if (n === undefined || n === null) return "–";
  return n >= 100 ? count(n) : n === 0 ? "0" : n.toFixed(1);
}

// A short form for an axis or a bar: 1.4k, 2M.
export function short(n) {
  const a = Math.abs(n);
  if (a >= 1e6) return +(n / 1e6).toFixed(1) + "M";
  if (a >= 1e3) return +(n / 1e3).toFixed(1) + "k";
  return String(+n.toFixed(2));
}

export const capital = (text) => text[0].toUpperCase() + text.slice(1);

// Groups the digits of the counts in a sentence of the broker, as count does. Codes, ports, ids and times stay.
export const grouped = (sentence) => sentence?.replace(/(?<![\w.:=,-])(\d{4,}|\d{1,3}(,\d{3})+)(?![\w.:)-])/g,
  (n) => count(+n.replaceAll(",", "")));

export const perSecond = (n) => (n === undefined || n === null ? "–" : rate(n) + "/s");

export function duration(seconds) {
  if (seconds === undefined || seconds === null) return "–";
  if (seconds < 0) return "-" + duration(-seconds);
  if (seconds === 0) return "0s";
  if (seconds < 0.01) return +(seconds * 1000).toFixed(1) + "ms";
  if (seconds < 1) return Math.round(seconds * 1000) + "ms";
  if (seconds < 10) return seconds.toFixed(1) + "s";
  let left = Math.round(seconds);
  const parts = [];
  for (const [unit, length] of [["d", 86400], ["h", 3600], ["m", 60], ["s", 1]]) {
    const n = Math.floor(left / length);
    left -= n * length;
    if (n > 0) parts.push(n + unit);
    if (parts.length === 2) break;
  }
  return parts.join(" ");
}

export function bytes(n) {
  if (n === undefined || n === null) return "–";
  if (n < 1024) return n + " B";
  return n < 1 << 20 ? (n / 1024).toFixed(1) + " KB" : (n / (1 << 20)).toFixed(1) + " MB";
}
