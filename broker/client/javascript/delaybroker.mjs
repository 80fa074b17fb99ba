// A client of the delay broker for nats.js: copy this file. It needs @nats-io/nats-core, which every transport of nats.js
// brings. Its names, errors and outcomes are those of the Go client; ../conformance.json is tested in all languages.
//
//   const delays = new Delays(jetstream(nc));
//   await delays.in("orders.expire", "30m", '{"id":42}', { id: "order-42/expire" });
//   const { sequence } = await delays.timer("order-42", "orders.expire", "30m", body, { ifAbsent: true });
//   await delays.cancelPending("order-42", "orders.expire");   // true: it will never be delivered
//
// A delay is a duration such as "1h30m", or a number of milliseconds. The client checks targets, keys and delays; any other
// invalid request becomes a dead letter.
import { headers } from "@nats-io/nats-core";

// A DelayError has one of these kinds. After ErrUnanswered and ErrForeign the message may be stored; after all others
// it is not. After ErrUnanswered repeat the call: in and at with the same id and delay, all others as they were.
//   ErrBadTarget ErrBadTime ErrBadKey ErrBadOption ErrNoBroker ErrTooLarge ErrFull ErrConflict ErrUnanswered ErrForeign
export class DelayError extends Error {
  constructor(kind, text, cause) {
    super(`${kind}: ${text}`, { cause });
    this.kind = kind;
  }
}

const units = { w: 604800000, d: 86400000, h: 3600000, m: 60000, s: 1000, ms: 1 };

// The durations with a subject in every broker, as in "Plain durations" of PROTOCOL.md: unit, first, last, step.
const plainRuns = [["ms", 10, 990, 10], ["ms", 1000, 5000, 500], ["ms", 10000, 60000, 10000], ["s", 0, 300, 1],
  ["s", 360, 900, 60], ["s", 1200, 3600, 600], ["s", 7200, 21600, 3600], ["s", 43200, 86400, 43200], ["m", 1, 300, 1],
  ["m", 360, 1440, 120], ["h", 1, 100, 1], ["h", 120, 720, 24], ["d", 1, 366, 1], ["w", 1, 52, 1]];
const plain = new Map();
for (const [unit, first, last, step] of plainRuns) {
  for (let n = first; n <= last; n += step) {
    const ms = n * units[unit], name = n + unit;
    if (!plain.has(ms) || name === format(ms)) plain.set(ms, name);
  }
}

function format(ms) {
  ms = Math.max(0, Math.ceil(ms));
  let text = "";
  for (const unit of ["d", "h", "m", "s", "ms"]) {
    const n = Math.floor(ms / units[unit]);
    if (n > 0) text += n + unit;
    ms %= units[unit];
  }
  return text || "0s";
}

// milliseconds returns a delay in whole milliseconds, rounded up.
function milliseconds(delay) {
  const text = typeof delay === "number" && Number.isFinite(delay) ? format(delay) : String(delay);
  let total = 0, longest = Infinity;
  const rest = text.replace(/(0|[1-9]\d*)(ms|[wdhms])/g, (_, n, unit) => {
    if (units[unit] >= longest) return "?"; // each unit once, the longest first
    total += n * (longest = units[unit]);
    return "";
  });
  if (rest || !text) throw new DelayError("ErrBadTime", `the delay ${text}: want a duration such as 1h30m`);
  return total;
}

const word = () => crypto.randomUUID().replaceAll("-", "");

export class Delays {
  // js is jetstream(nc). The options are prefix, the broker's DELAY_PREFIX, and timeout, in milliseconds.
  constructor(js, { prefix = "delay", timeout = 5000 } = {}) {
    Object.assign(this, { js, prefix, timeout, streams: prefix.toUpperCase() + "_" });
  }

  // The options of in, at and level: id, headers, spread, expires, deliver, maxAttempts, rateKey, ttl. All three resolve to
  // { stream, sequence, duplicate }.
  async in(target, delay, body = "", options = {}) {
    const ms = milliseconds(delay), level = plain.get(ms), text = format(ms);
    const intake = `${this.prefix}in.${text}.${this.#target(target)}`;
    if (!level) return this.#publish(intake, body, this.#headers(options));
    try {
      return await this.#publish(`${this.prefix}.${level}.${target}`, body, this.#headers(options));
    } catch (err) { // with an id, another subject could store the message twice
      if (err.kind !== "ErrNoBroker" || options.id) throw err;
      return this.#publish(intake, body, this.#headers(options));
    }
  }

  async at(target, date, body = "", options = {}) {
    return this.#publish(`${this.prefix}at.${this.#time(date)}.${this.#target(target)}`, body, this.#headers(options));
  }

  async level(target, level, body = "", options = {}) {
    milliseconds(level);
    return this.#publish(`${this.prefix}.${level}.${this.#target(target)}`, body, this.#headers(options));
  }

  // timer sets or replaces a named timer, due after a delay or at a Date. Further options: ifAbsent, and ifGeneration with
  // the sequence of the last set. If they do not hold, the error is ErrConflict.
  async timer(key, target, when, body = "", options = {}) {
    const h = this.#headers(options);
    if (options.id) throw new DelayError("ErrBadOption", "id is not for a named timer, whose key is its identity");
    if (when instanceof Date) h.set("Delay-Until", when.toISOString());
    else h.set("Delay-For", format(milliseconds(when)));
    const expected = options.ifAbsent ? 0 : options.ifGeneration;
    return this.#publish(this.#timer(key, target), body, h, expected, true);
  }

  // debounce sets a timer that each further call postpones by the delay, until maxWait has passed since the first call.
  async debounce(key, target, delay, maxWait, body = "", options = {}) {
    const h = { ...options.headers, "Delay-Max-Wait": format(milliseconds(maxWait)) };
    return this.timer(key, target, delay, body, { ...options, headers: h });
  }

  // cancel cancels a generation. If it resolves, that generation will never be delivered.
  async cancel(key, target, generation) {
    if (!generation) throw new DelayError("ErrBadOption", "cancel generation 0: want the sequence of a timer");
    const h = headers();
    h.set("Delay-Cancel", String(generation));
    await this.#publish(this.#timer(key, target), "", h, generation, true);
  }

  // cancelPending and movePending change the pending timer, with any generation. They resolve to whether the change was
  // in time, and need the permissions to publish to $JS.API.STREAM.MSG.GET and $JS.API.STREAM.INFO.
  async cancelPending(key, target) {
    return this.#change(this.#timer(key, target), (_, token) => {
      const h = headers();
      h.set("Delay-Cancel", token);
      return [h, ""];
    });
  }

  async movePending(key, target, delay) {
    const text = format(milliseconds(delay));
    return this.#change(this.#timer(key, target), (entry, token) => {
      const h = headers();
      for (const [name, values] of entry.header) {
        if (name === "Delay-First") throw new DelayError("ErrBadOption", `the timer ${key} recurs: use the control service`);
        if (/^(delay-(for|until|spread|word|max-wait)|nats-(?!msg-id$).*)$/i.test(name)) continue;
        if (/^delay-(every|cron)$/i.test(name)) {
          throw new DelayError("ErrBadOption", `the timer ${key} recurs: use the control service`);
        }
        for (const v of values) h.append(name, v);
      }
      h.set("Delay-For", text);
      h.set("Delay-Word", token);
      return [h, entry.data];
    });
  }

  // #change publishes a change of the pending timer until its outcome is certain. After a lost answer, it finds its own
  // entry by the token.
  async #change(subject, change) {
    const token = word(), end = Date.now() + this.timeout;
    let unanswered;
    for (;;) {
      const entry = await this.#last(subject, end);
      const has = (name) => entry?.header.has(name);
      if (entry && [entry.header.get("Delay-Word"), entry.header.get("Delay-Cancel")].includes(token)) return true;
      const recurs = has("Delay-First") || has("Delay-Every") || has("Delay-Cron");
      const cancels = has("Delay-Cancel") && !has("Delay-For") && !has("Delay-Until") && !recurs;
      if (!entry || has("Delay-Over") || cancels || has("Delay-Fired") && !has("Delay-First")) {
        if (unanswered) throw unanswered;
        return false;
      }
      const [h, body] = change(entry, token);
      try {
        await this.#publish(subject, body, h, entry.seq, true, Math.min(1000, this.timeout));
        return true;
      } catch (err) {
        if (err.kind === "ErrUnanswered") unanswered = err;
        else if (err.kind !== "ErrConflict") throw err;
        if (Date.now() > end) throw unanswered ?? new DelayError("ErrUnanswered", `change the timer on ${subject}`, err);
      }
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }

  // #last reads the last entry of a subject. A deposed leader may not have it. So null means that neither the leader that
  // a majority follows nor a read after its answer has an entry.
  async #last(subject, end) {
    const stream = this.streams + "TIMERS";
    try {
      const { streams } = await this.js.jetstreamManager(false);
      for (let none = false; ;) {
        const entry = await streams.getMessage(stream, { last_by_subj: subject });
        if (entry || none) return entry;
        const { cluster, state } = await streams.info(stream, { subjects_filter: subject });
        none = isFollowed(cluster) && !Object.keys(state.subjects ?? {}).length;
        if (none) continue;
        if (Date.now() > end) throw new DelayError("ErrUnanswered", `read ${subject}: the stream has no leader`);
        await new Promise((resolve) => setTimeout(resolve, 50));
      }
    } catch (err) {
      throw explain(err, `read ${subject}`);
    }
  }

  async #publish(subject, body, h, expected, timer = false, timeout = this.timeout) {
    const options = { headers: h, timeout };
    if (expected !== undefined) options.expect = { lastSubjectSequence: expected };
    let ack;
    try {
      ack = await this.js.publish(subject, body, options);
    } catch (err) {
      throw explain(err, `publish to ${subject}`);
    }
    const { stream, seq, duplicate = false } = ack;
    if (!seq || !String(stream).startsWith(this.streams) || timer && (duplicate || seq <= (expected ?? 0))) {
      throw new DelayError("ErrForeign", `the answer to ${subject} is ${JSON.stringify(ack)}`);
    }
    return { stream, sequence: seq, duplicate };
  }

  #headers({ id, headers: own = {}, spread, expires, deliver, maxAttempts, rateKey, ttl }) {
    const h = headers();
    for (const [name, value] of Object.entries(own)) h.append(name, String(value));
    const set = (name, value) => value !== undefined && h.set(name, String(value));
    set("Nats-Msg-Id", id);
    set("Delay-Spread", spread && format(milliseconds(spread)));
    set("Delay-Expires", expires instanceof Date ? expires.toISOString() : expires && format(milliseconds(expires)));
    set("Delay-Deliver", deliver);
    set("Delay-Max-Attempts", maxAttempts);
    set("Delay-Rate-Key", rateKey);
    set("Delay-TTL", ttl && (ttl === "never" ? ttl : format(milliseconds(ttl))));
    return h;
  }

  #target(target) {
    const root = new RegExp(`^${this.prefix}(in|at|timer|sys|dead|ctl)?$`), tokens = String(target).split(".");
    if (!/^[!-~]{1,256}$/.test(target) || /[*>]/.test(target) || /^[$_]/.test(target) || tokens.includes("") ||
      tokens.length > 16 || root.test(tokens[0])) {
      throw new DelayError("ErrBadTarget", `${target}: want at most 16 tokens of ASCII without wildcards, not below $, _ ` +
        "or a subject of the broker");
    }
    return target;
  }

  #timer(key, target) {
    if (!/^[!-~]{1,128}$/.test(key) || /^_|[.*>]/.test(key)) {
      throw new DelayError("ErrBadKey", `${key}: want one token of ASCII that does not begin with _`);
    }
    return `${this.prefix}timer.${key}.${this.#target(target)}`;
  }

  #time(date) {
    const ms = Math.ceil(Number(date));
    if (!(ms > 0)) throw new DelayError("ErrBadTime", `the time ${date}: want a Date`);
    return ms % 1000 ? String(ms) : new Date(ms).toISOString().replace(".000", "");
  }
}

// arrival returns the delay metadata of a delivered message, or null if no broker has delivered the message.
export function arrival(m) {
  const one = (name) => {
    const values = m.headers?.values(name) ?? [];
    return values.length === 1 ? values[0] : "";
  };
  const id = one("Delay-Id"), due = new Date(one("Delay-Due")), accepted = new Date(one("Delay-Accepted"));
  if (!id || isNaN(due) || isNaN(accepted)) return null;
  const number = (name) => (/^\d+$/.test(one(name)) ? Number(one(name)) : 0);
  return { id, due, accepted, msgId: one("Delay-Msg-Id"), attempts: number("Delay-Attempts"),
    series: number("Delay-Series"), round: number("Delay-Round") };
}

// isFollowed reports whether a majority of the replicas has recently answered the leader. Replicas answer once a second,
// and elect another leader after four seconds of silence.
function isFollowed(cluster) {
  if (!cluster) return true; // a server without a cluster
  const { leader, replicas = [] } = cluster;
  const heard = replicas.filter((r) => !r.offline && r.active < 3e9 && (r.current || r.active > 0)).length + 1;
  return Boolean(leader) && heard > (replicas.length + 1) / 2;
}

const codes = { 10071: "ErrConflict", 10054: "ErrTooLarge", 10077: "ErrFull", 10047: "ErrFull", 10002: "ErrFull",
  10023: "ErrFull", 10028: "ErrFull", 10167: "ErrFull", 10158: "ErrUnanswered", 10164: "ErrUnanswered" };

function explain(err, action) {
  const { code, name, message } = err;
  const noBroker = name === "JetStreamNotEnabled" || /no responders|503/i.test(`${code} ${message}`);
  const lost = /Timeout|Closed|Draining|Disconnect|Request/i.test(name);
  const kind = codes[code] ?? (noBroker ? "ErrNoBroker" : /max.?payload/i.test(message) ? "ErrTooLarge"
    : lost ? "ErrUnanswered" : undefined);
  return kind ? new DelayError(kind, `${action}: ${message}`, err) : err;
}
