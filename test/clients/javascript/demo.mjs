// Requests delays in four forms. Each message must arrive on its real subject, for a plain subscriber and in a stream,
// and not early. The exit code is 1 if a message is early, missing or different.
//
//   npm ci && NATS_URL=nats://127.0.0.1:4222 node demo.mjs
import { connect, headers } from "@nats-io/transport-node";
import { AckPolicy, jetstream, jetstreamManager } from "@nats-io/jetstream";

const target = "orders.js";
const patienceMS = 20_000;

const nc = await connect({ servers: process.env.NATS_URL ?? "nats://127.0.0.1:4222" });
const js = jetstream(nc);
const jsm = await jetstreamManager(nc);

// Consumers know nothing of delays.
await jsm.streams.add({ name: "ORDERS", subjects: ["orders.>"] });
await jsm.consumers.add("ORDERS", { durable_name: "demo", ack_policy: AckPolicy.Explicit });
const live = nc.subscribe(target);
await nc.flush();

// Each function requests a delay, and returns the earliest time at which its message may arrive.
const requests = {
  level: async (body) => {
    const earliest = Date.now() + 1_000;
    await js.publish("delay.1s.orders.js", body);
    return earliest;
  },
  duration: async (body) => {
    const earliest = Date.now() + 1_500;
    await js.publish("delayin.1500ms.orders.js", body);
    return earliest;
  },
  header: async (body) => {
    const at = new Date(Date.now() + 2_345);
    const h = headers();
    h.set("Delay-Until", at.toISOString());
    await js.publish("delay.1s.orders.js", body, { headers: h });
    return at.getTime();
  },
  subject: async (body) => {
    const at = new Date(Date.now() + 2_600); // not toISOString(): its dot would split the subject
    await js.publish(`delayat.${at.getTime()}.orders.js`, body);
    return at.getTime();
  },
};
const earliest = {};
for (const [name, request] of Object.entries(requests)) earliest[name] = await request(`{"id":"${name}"}`);

let failures = 0;
const expect = (ok, complaint) => { if (!ok) { failures++; console.error(`FAIL ${complaint}`); } };

function check(how, m, at) {
  const name = m.json().id;
  const due = Date.parse(m.headers.get("Delay-Due"));
  console.log(`${how} ${name}: ${(at - due).toFixed(1)} ms after it was due`);
  expect(m.subject === target, `${name} came on ${m.subject}`);
  expect(m.string() === `{"id":"${name}"}`, `${name} came as ${m.string()}`);
  expect(m.headers.get("Delay-Id") !== "", `${name} has no Delay-Id`);
  expect(due >= earliest[name], `${name} was due ${earliest[name] - due} ms before what was asked`);
  expect(at >= due, `${name} came ${due - at} ms early`);
  return name;
}

const tooLate = setTimeout(() => {
  console.error(`FAIL not all came within ${patienceMS} ms`);
  process.exit(1);
}, patienceMS);

const wanted = Object.keys(requests).sort().join(" ");
const seen = [];
for await (const m of live) {
  seen.push(check("core", m, Date.now()));
  if (seen.length === Object.keys(requests).length) break;
}
expect(seen.sort().join(" ") === wanted, `the subscriber saw ${seen}`);

// The stream has the messages too, each with the time at which it was stored.
const stored = [];
const consumer = await js.consumers.get("ORDERS", "demo");
for await (const m of await consumer.fetch({ max_messages: Object.keys(requests).length, expires: 2_000 })) {
  stored.push(check("stream", m, Math.round(m.info.timestampNanos / 1_000) / 1_000));
  m.ack();
}
expect(stored.sort().join(" ") === wanted, `the stream has ${stored}`);

clearTimeout(tooLate);
await nc.drain();
console.log(failures === 0 ? `ok: ${wanted}, never early` : `${failures} failures`);
process.exitCode = failures === 0 ? 0 : 1;
