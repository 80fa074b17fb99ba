// JavaScript: npm install @nats-io/transport-node @nats-io/jetstream
// Requests schedules from a broker with DELAY_SCHEDULES=schedules.orders.>=orders.>, in nats-server's format. Without
// this setting, there is no answer, and this client reports "jetstream is not enabled".
import { connect } from "@nats-io/transport-node";
import { jetstream } from "@nats-io/jetstream";

const nc = await connect({ servers: process.env.NATS_URL ?? "nats://127.0.0.1:4222" });
const js = jetstream(nc);

for (const id of [42, 43]) {
  await js.publish(`schedules.orders.${id}`, JSON.stringify({ id }), {
    schedule: { specification: new Date(Date.now() + 2000), target: "orders.expire" },
  });
}
// cancelled, by a message on another subject
await js.publish("schedules.orders.cancelled", "", { cancelSchedule: { scheduleSubject: "schedules.orders.43" } });
try {
  await js.publish("schedules.orders.44", "", { schedule: { specification: "soon", target: "orders.expire" } });
  throw new Error("soon is no schedule");
} catch (err) {
  if (err.code !== 10189) throw err;
}
await nc.drain();
