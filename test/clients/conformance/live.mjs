// Uses the JavaScript client on a server: a delay, a moved timer, and a cancelled one.
import { connect } from "@nats-io/transport-node";
import { jetstream } from "@nats-io/jetstream";
import { arrival, Delays } from "./delaybroker.mjs";

const nc = await connect({ servers: process.env.NATS_URL });
const delays = new Delays(jetstream(nc)), sub = nc.subscribe("live.>");
const arrived = (async () => {
  const all = [];
  for await (const m of sub) {
    const late = Date.now() - arrival(m).due;
    all.push(`${m.subject} ${m.string()}${late < -2 ? " early" : ""}`);
    if (all.length === 3) return all;
  }
})();

const first = await delays.in("live.in", "1s", "a", { id: "live" });
const again = await delays.in("live.in", "1s", "a", { id: "live" });
await delays.at("live.at", new Date(Date.now() + 1500), "b");
const { sequence } = await delays.timer("moved", "live.timer", "1h", "c", { ifAbsent: true });
const conflict = await delays.timer("moved", "live.timer", "1h", "d", { ifAbsent: true }).catch((err) => err.kind);
const moved = await delays.movePending("moved", "live.timer", "2s");
await delays.timer("cancelled", "live.timer", "1s", "x");
const cancelled = await delays.cancelPending("cancelled", "live.timer");
const twice = await delays.cancelPending("cancelled", "live.timer");
const none = await delays.cancelPending("never-set", "live.timer");
console.log(JSON.stringify({ duplicate: [first.duplicate, again.duplicate], set: sequence > 0, conflict, moved, cancelled,
  twice, none, arrived: (await arrived).sort() }));
await nc.drain();
