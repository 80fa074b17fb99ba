// JavaScript: npm install @nats-io/transport-node @nats-io/jetstream
import { connect, headers } from "@nats-io/transport-node";
import { jetstream } from "@nats-io/jetstream";

const nc = await connect({ servers: process.env.NATS_URL ?? "nats://127.0.0.1:4222" });
const js = jetstream(nc);
await js.publish("delay.5s.orders.expire", '{"id":42}');
await js.publish("delayin.1500ms.orders.expire", '{"id":43}');

const h = headers(); // at a time, at least five seconds ahead
h.set("Delay-Until", new Date(Date.now() + 6_500).toISOString());
await js.publish("delay.5s.orders.expire", '{"id":44}', { headers: h });
await nc.drain();
