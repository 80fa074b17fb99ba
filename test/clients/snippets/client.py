# Python: pip install nats-py; copy broker/client/python/delaybroker.py
import asyncio, os
import nats
from delaybroker import Delays

async def main():
    nc = await nats.connect(os.environ.get("NATS_URL", "nats://127.0.0.1:4222"))
    delays = Delays(nc.jetstream())
    await delays.timer("order-42", "orders.expire", "30m", b'{"id":42}')
    await delays.move_pending("order-42", "orders.expire", "2s")
    await delays.timer("order-43", "orders.expire", "2s", b'{"id":43}')
    cancelled = await delays.cancel_pending("order-43", "orders.expire")
    assert cancelled, "too late"
    await nc.drain()

asyncio.run(main())
