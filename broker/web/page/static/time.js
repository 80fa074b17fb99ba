// Times. The current time is that of the server's clock. The viewer chooses the zone. A time in a row is relative, as
// in "in 5m", with the short time beside it.

import { el } from "./dom.js";
import { duration, grouped } from "./format.js";

const storageKey = "delaybroker-zone";
let utc = localStorage.getItem(storageKey) === "UTC";
let offset = 0; // the server's clock minus the browser's clock, in milliseconds

export const isUTC = () => utc;

export function chooseUTC(wanted) {
  utc = wanted;
  localStorage.setItem(storageKey, wanted ? "UTC" : "local");
}

export function setClock(text) {
  const at = Date.parse(text);
  if (!Number.isNaN(at)) offset = at - Date.now();
}

export const serverNow = () => Date.now() + offset;

const padded = (n) => String(Math.abs(n)).padStart(2, "0");

// The parts of a time in the chosen zone.
function partsOf(at) {
  const shift = utc ? 0 : -at.getTimezoneOffset(); // minutes
  const there = new Date(at.getTime() + shift * 60000).toISOString();
  const zone = shift === 0 ? "UTC" : (shift < 0 ? "-" : "+") + padded(Math.trunc(shift / 60)) + ":" + padded(shift % 60);
  return { day: there.slice(0, 10), clock: there.slice(11, 19), ms: there.slice(19, 23), zone };
}

// The complete time: 2026-11-23 12:04:10.250 UTC.
export function fullTime(value) {
  const at = new Date(value);
  if (!value || Number.isNaN(at.getTime())) return value || "–";
  const p = partsOf(at);
  return `${p.day} ${p.clock}${p.ms === ".000" ? "" : p.ms} ${p.zone}`;
}

// Converts the times in a text of the broker to the chosen zone.
export const inZone = (text) => text?.replace(/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z/g, fullTime);

// A sentence of the broker, with times and counts as everywhere on the page.
export const said = (sentence) => inZone(grouped(sentence));

// A time of today without its date, or any other time with its date and without seconds: 12:04:10, or 11-24 03:00.
export function shortTime(value) {
  const p = partsOf(new Date(value)), today = partsOf(new Date(serverNow())).day;
  if (p.day === today) return p.clock;
  return (p.day.slice(0, 4) === today.slice(0, 4) ? p.day.slice(5) : p.day) + " " + p.clock.slice(0, 5);
}

const whole = (seconds) => (seconds < 10 ? seconds + "s" : duration(seconds));

export function relativeTime(value) {
  const seconds = (new Date(value) - serverNow()) / 1000;
  if (seconds > 0) return "in " + whole(Math.ceil(seconds));
  return seconds > -1 ? "now" : whole(Math.floor(-seconds)) + " ago";
}

// A time in a table: the relative time, with the short time beside it.
export function timeCell(value) {
  if (!value) return "–";
  return el("time", { class: "when", datetime: value, title: fullTime(value) }, relativeTime(value),
    el("span", { class: "sub" }, shortTime(value)));
}

// A time in a list of facts: the full time, with the relative time beside it.
export const exactTime = (value) => value && el("time", { datetime: value },
  `${fullTime(value)} (${relativeTime(value)})`);
