// JavaScript: npm install @nats-io/transport-node @nats-io/jetstream
import { connect, headers } from "@nats-io/transport-node";
import { jetstream } from "@nats-io/jetstream";

const nc = await connect({ servers: process.env.NATS_URL ?? "nats://127.0.0.1:4222" });
const js = jetstream(nc);

// Resolves to the generation of the stored entry, or to 0 if the timer was set or cancelled meanwhile, or has fired.
// After any other error, the entry may have been stored: publish again.
async function timer(subject, header, value, body = "", expect) {
  const h = headers();
  h.set(header, value);
  try {
    const ack = await js.publish(subject, body, { headers: h, expect: { lastSubjectSequence: expect } });
    return ack.duplicate ? 0 : ack.seq;
  } catch (err) {
    if (err.code === 10071) return 0;
    throw err;
  }
}

// sets the timer only if there is none
let g = await timer("delaytimer.order-42.orders.expire", "Delay-For", "30m", '{"id":42}', 0);
// moves the timer, with its body, only if its generation is still g
await timer("delaytimer.order-42.orders.expire", "Delay-For", "2s", '{"id":42}', g);
// sets and cancels another timer, which will never be delivered
g = await timer("delaytimer.order-43.orders.expire", "Delay-For", "2s", '{"id":43}');
if (!await timer("delaytimer.order-43.orders.expire", "Delay-Cancel", "paid", "", g)) throw new Error("not cancelled");
// the timer is cancelled already
if (await timer("delaytimer.order-43.orders.expire", "Delay-Cancel", "paid", "", g)) throw new Error("cancelled twice");
await nc.drain();
