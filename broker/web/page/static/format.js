// Numbers and times for people.

export function count(n) {
  if (n === undefined || n === null) return "–";
  return Math.round(n).toLocaleString("en").replaceAll(",", " ");
}

export function rate(n) {
  if (n === undefined || n === null) return "–";
  return n >= 100 ? count(n) : n === 0 ? "0" : n.toFixed(1);
}

export function span(seconds) {
  if (seconds === undefined || seconds === null) return "–";
  if (seconds < 0) return "-" + span(-seconds);
  if (seconds === 0) return "0s";
  if (seconds < 1) return Math.max(1, Math.round(seconds * 1000)) + "ms";
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

// A time, with how far it is from another by the server's clock.
export function moment(text) {
  if (!text) return "–";
  const t = new Date(text);
  return Number.isNaN(t.getTime()) ? text : t.toISOString().replace("T", " ").replace(/\.(\d{3})Z$/, (_, ms) => (ms === "000" ? "Z" : "." + ms + "Z"));
}

// The same to the second.
export const second = (text) => moment(text).slice(0, 19) + "Z";

export function until(text, now) {
  if (!text) return "–";
  const seconds = (new Date(text) - new Date(now)) / 1000;
  return seconds > 0 ? "in " + span(seconds) : seconds > -1 ? "now" : span(-seconds) + " ago";
}
