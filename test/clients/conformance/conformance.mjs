// Runs broker/client/conformance.json with the JavaScript client, on a script of answers in place of a server.
import { readFileSync } from "node:fs";
import { headers } from "@nats-io/nats-core";
import { arrival, Delays } from "./delaybroker.mjs";

const file = JSON.parse(readFileSync(process.argv[2]));
const codes = { conflict: 10071, full: 10077, too_large: 10054 };
let failed = 0;

function check(what, got, want) {
  if (got !== want) {
    failed++;
    console.log(`${what}: got ${got}, want ${want}`);
  }
}

const sorted = (object) => JSON.stringify(Object.fromEntries(Object.entries(object).sort()));
const headersOf = (object) => {
  const h = headers();
  for (const [name, value] of Object.entries(object)) h.set(name, value);
  return h;
};
const objectOf = (h) => Object.fromEntries([...h].map(([name, values]) => [name, values[0]]));

// A script answers like a server: each answer is "what" or "what:next entry". Missing is the number of reads that do not
// find the entry. Leaders are the leaders that answer about the stream: "alone" or "holds", then the present leader.
function script(entry, answers, missing = 0, leaders = []) {
  let last = entry && { header: headersOf(entry), seq: 9, data: "body" };
  const js = { published: [] };
  js.jetstreamManager = async () => ({
    streams: {
      getMessage: async () => (missing-- > 0 ? null : last),
      info: async (stream, { subjects_filter: subject }) => {
        const alone = leaders.shift() === "alone", peer = { current: !alone, active: alone ? 5e9 : 1e8 };
        return { cluster: { leader: "a", replicas: [peer, peer] }, state: { subjects: last && !alone ? { [subject]: 1 } : undefined } };
      },
    },
  });
  js.publish = async (subject, body, { headers: h, expect }) => {
    if (expect) h.set("Nats-Expected-Last-Subject-Sequence", String(expect.lastSubjectSequence));
    js.published.push({ subject, headers: objectOf(h) });
    const [answer, next] = (answers.shift() ?? "unexpected").split(":");
    const seq = (last?.seq ?? 9) + 1;
    if (next === "own") last = { header: h, seq, data: body };
    if (next === "set") last = { header: headersOf({ "Delay-For": "30m" }), seq, data: "" };
    if (next === "over") last = { header: headersOf({ "Delay-Over": "9 delivered" }), seq, data: "" };
    const fail = (properties) => { throw Object.assign(new Error(answer), properties); };
    switch (answer) {
      case "stored": return { stream: "DELAY_30m", seq };
      case "duplicate": return { stream: "DELAY_30m", seq, duplicate: true };
      case "foreign": return { stream: "ORDERS", seq };
      case "lost": return fail({ name: "TimeoutError" });
      case "no_broker": return fail({ name: "JetStreamNotEnabled" });
      default: return fail({ name: "JetStreamApiError", code: codes[answer] });
    }
  };
  return js;
}

for (const r of file.requests) {
  const js = script(null, [...(r.answers ?? ["stored"])]), delays = new Delays(js), o = r.options ?? {};
  const options = { ...o, maxAttempts: o.max_attempts, rateKey: o.rate_key, ifAbsent: o.if_absent, ifGeneration: o.if_generation };
  const when = r.time ? new Date(r.time) : r.delay;
  const calls = {
    in: () => delays.in(r.target, r.delay, "body", options),
    at: () => delays.at(r.target, when, "body", options),
    level: () => delays.level(r.target, r.delay, "body", options),
    timer: () => delays.timer(r.key, r.target, when, "body", options),
    debounce: () => delays.debounce(r.key, r.target, r.delay, r.max_wait, "body", options),
    cancel: () => delays.cancel(r.key, r.target, r.generation),
  };
  let error;
  await calls[r.call]().catch((err) => { error = err.kind ?? err.stack; });
  check(`${JSON.stringify(r)}: error`, error, r.error);
  if (!r.error) {
    const { subject, headers } = js.published.at(-1);
    check(`${JSON.stringify(r)}: subject`, subject, r.subject);
    check(`${JSON.stringify(r)}: headers`, sorted(headers), sorted(r.headers ?? {}));
  }
}
for (const v of file.verdicts) {
  for (const call of ["cancelPending", "movePending"]) {
    const answers = [...v.answers], delays = new Delays(script(v.entry, answers, v.missing, [...v.leaders ?? []]));
    const verdict = await delays[call]("order-42", "orders.expire", "2h").then(String, (err) => err.kind ?? err.stack);
    check(`${v.name}: ${call}`, verdict, v.verdict);
    check(`${v.name}: ${call}: remaining answers`, answers.length, 0);
  }
}
for (const moved of file.moved) {
  const js = script(moved.entry, ["stored", "stored"]);
  await new Delays(js).movePending("order-42", "orders.expire", "2h");
  await new Delays(js).cancelPending("order-42", "orders.expire");
  for (const [i, token, want] of [[0, "Delay-Word", moved], [1, "Delay-Cancel", file.cancelled]]) {
    const { [token]: value, ...others } = js.published[i].headers;
    check(`the token in ${token}`, Boolean(value), true);
    check(`the headers beside ${token}`, sorted(others), sorted(want.headers));
  }
}
for (const a of file.arrivals) {
  const got = arrival({ headers: headersOf(a.headers) });
  const { id, due, accepted, msgId, attempts, series, round } = got ?? {};
  check(`arrival of ${JSON.stringify(a.headers)}`, got && sorted({ id, due_ms: +due, accepted_ms: +accepted, msg_id: msgId,
    attempts, series, round }), a.arrival && sorted(a.arrival));
}
process.exit(failed ? 1 : 0);
