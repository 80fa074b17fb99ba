# Python: pip install nats-py
import asyncio, os
from datetime import datetime, timedelta, timezone
import nats

async def main():
    nc = await nats.connect(os.environ.get("NATS_URL", "nats://127.0.0.1:4222"))
    js = nc.jetstream()
    await js.publish("delay.5s.orders.expire", b'{"id":42}')
    await js.publish("delayin.1500ms.orders.expire", b'{"id":43}')

    at = datetime.now(timezone.utc) + timedelta(seconds=6.5)  # with a zone, and at least five seconds ahead
    await js.publish("delay.5s.orders.expire", b'{"id":44}', headers={"Delay-Until": at.isoformat()})
    await nc.drain()

asyncio.run(main())
