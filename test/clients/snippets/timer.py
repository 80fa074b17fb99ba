# Python: pip install nats-py
import asyncio, os
import nats
from nats.js.errors import APIError

async def main():
    nc = await nats.connect(os.environ.get("NATS_URL", "nats://127.0.0.1:4222"))
    js = nc.jetstream()

    # Returns the generation of the stored entry, or 0 if the timer was set or cancelled meanwhile, or has fired.
    # After any other error, the entry may have been stored: publish again.
    async def timer(subject, headers, body=b"", expect=None):
        if expect is not None:
            headers = headers | {"Nats-Expected-Last-Subject-Sequence": str(expect)}
        try:
            ack = await js.publish(subject, body, headers=headers)
            return 0 if ack.duplicate else ack.seq
        except APIError as e:
            if e.err_code == 10071:
                return 0
            raise

    # sets the timer only if there is none
    g = await timer("delaytimer.order-42.orders.expire", {"Delay-For": "30m"}, b'{"id":42}', 0)
    # moves the timer, with its body, only if its generation is still g
    await timer("delaytimer.order-42.orders.expire", {"Delay-For": "2s"}, b'{"id":42}', g)
    # sets and cancels another timer, which will never be delivered
    g = await timer("delaytimer.order-43.orders.expire", {"Delay-For": "2s"}, b'{"id":43}')
    assert await timer("delaytimer.order-43.orders.expire", {"Delay-Cancel": "paid"}, b"", g)
    # the timer is cancelled already
    assert not await timer("delaytimer.order-43.orders.expire", {"Delay-Cancel": "paid"}, b"", g)
    await nc.drain()

asyncio.run(main())
