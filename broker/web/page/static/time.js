// Times by the server's clock, in the zone that the viewer has chosen. A time is shown relative to now, with the exact
// time beside it.

import { el } from "./dom.js";
import { span } from "./format.js";

const kept = "delaybroker-zone";
let utc = localStorage.getItem(kept) === "UTC";
let ahead = 0; // the server's clock minus the browser's, in milliseconds

export const isUTC = () => utc;

export function chooseUTC(wanted) {
  utc = wanted;
  localStorage.setItem(kept, wanted ? "UTC" : "local");
}

export function setClock(text) {
  const at = Date.parse(text);
  if (!Number.isNaN(at)) ahead = at - Date.now();
}

export const serverNow = () => Date.now() + ahead;

const two = (n) => String(Math.abs(n)).padStart(2, "0");

// The parts of a time in the chosen zone.
function partsOf(at) {
  const shift = utc ? 0 : -at.getTimezoneOffset(); // minutes
  const there = new Date(at.getTime() + shift * 60000).toISOString();
  const zone = utc ? "UTC" : (shift < 0 ? "-" : "+") + two(Math.trunc(shift / 60)) + ":" + two(shift % 60);
  return { day: there.slice(0, 10), clock: there.slice(11, 19), ms: there.slice(19, 23), zone };
}

// The complete time: 2026-11-23 12:04:10.250 UTC.
export function moment(value) {
  const at = new Date(value);
  if (!value || Number.isNaN(at.getTime())) return value || "–";
  const p = partsOf(at);
  return `${p.day} ${p.clock}${p.ms === ".000" ? "" : p.ms} ${p.zone}`;
}

// A sentence of the broker, with its times in the chosen zone.
export const inZone = (sentence) => sentence?.replace(/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z/g, moment);

// A time without its date if that is today: 12:04:10, or 11-24 03:00.
export function brief(value) {
  const p = partsOf(new Date(value)), today = partsOf(new Date(serverNow())).day;
  if (p.day === today) return p.clock;
  return (p.day.slice(0, 4) === today.slice(0, 4) ? p.day.slice(5) : p.day) + " " + p.clock.slice(0, 5);
}

const whole = (seconds) => (seconds < 10 ? seconds + "s" : span(seconds));

export function away(value) {
  const seconds = (new Date(value) - serverNow()) / 1000;
  if (seconds > 0) return "in " + whole(Math.ceil(seconds));
  return seconds > -1 ? "now" : whole(Math.floor(-seconds)) + " ago";
}

// A time in a table: "in 5m", with the exact time.
export function when(value) {
  if (!value) return "–";
  return el("time", { class: "when", datetime: value, title: moment(value) }, away(value),
    el("span", { class: "sub" }, brief(value)));
}

// A time in a list of facts: the exact time, and the time relative to now.
export const exactly = (value) => value && el("time", { datetime: value }, `${moment(value)} (${away(value)})`);
