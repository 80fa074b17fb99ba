// JavaScript: npm install @nats-io/transport-node @nats-io/jetstream; copy broker/client/javascript/delaybroker.mjs
import { connect } from "@nats-io/transport-node";
import { jetstream } from "@nats-io/jetstream";
import { Delays } from "./delaybroker.mjs";

const nc = await connect({ servers: process.env.NATS_URL ?? "nats://127.0.0.1:4222" });
const delays = new Delays(jetstream(nc));
await delays.timer("order-42", "orders.expire", "30m", '{"id":42}');
await delays.movePending("order-42", "orders.expire", "2s");
await delays.timer("order-43", "orders.expire", "2s", '{"id":43}');
const cancelled = await delays.cancelPending("order-43", "orders.expire");
if (!cancelled) throw new Error("too late");
await nc.drain();
