"""Runs broker/client/conformance.json with the Python client, on a script of answers in place of nats-py and a server.

The script has the methods of nats-py's JetStream context that the client calls, and its exceptions by their names.
"""
import asyncio
import json
import sys
from datetime import datetime
from types import SimpleNamespace

sys.path.insert(0, sys.argv[2])
from delaybroker import DelayError, Delays, arrival  # noqa: E402

failed = 0


class APIError(Exception):
    def __init__(self, err_code):
        super().__init__(f"err_code {err_code}")
        self.err_code = err_code


class NotFoundError(APIError):
    pass


class NoStreamResponseError(Exception):
    pass


def check(what, got, want):
    global failed
    if got != want:
        failed += 1
        print(f"{what}: got {got!r}, want {want!r}")


class Script:
    """Answers like a server: each answer is "what" or "what:next entry". Missing is the number of reads that do not find
    the entry. Leaders are the leaders that answer about the stream: "alone" or "holds", then the present leader."""

    def __init__(self, entry, answers, missing=0, leaders=()):
        self.answers, self.published, self.missing, self.leaders = list(answers), [], missing, list(leaders)
        self.last = None if entry is None else SimpleNamespace(headers=entry, seq=9, data=b"body")

    async def get_last_msg(self, stream, subject):
        assert stream == "DELAY_TIMERS", stream
        self.missing -= 1
        if self.last is None or self.missing >= 0:
            raise NotFoundError(10037)
        return self.last

    async def stream_info(self, name, subjects_filter=None):
        assert name == "DELAY_TIMERS", name
        alone = self.leaders and self.leaders.pop(0) == "alone"
        peer = SimpleNamespace(offline=None, current=not alone, active=5_000_000_000 if alone else 100_000_000)
        state = SimpleNamespace(subjects={subjects_filter: 1} if self.last and not alone else None)
        return SimpleNamespace(cluster=SimpleNamespace(leader="a", replicas=[peer, peer]), state=state)

    async def publish(self, subject, payload=b"", timeout=None, stream=None, headers=None):
        headers = headers or {}
        self.published.append((subject, headers))
        answer, _, following = (self.answers.pop(0) if self.answers else "unexpected").partition(":")
        seq = (self.last.seq if self.last else 9) + 1
        entries = {"own": headers, "set": {"Delay-For": "30m"}, "over": {"Delay-Over": "9 delivered"}}
        if following in entries:
            self.last = SimpleNamespace(headers=entries[following], seq=seq, data=payload)
        match answer:
            case "stored":
                return SimpleNamespace(stream="DELAY_30m", seq=seq, duplicate=None)
            case "duplicate":
                return SimpleNamespace(stream="DELAY_30m", seq=seq, duplicate=True)
            case "foreign":
                return SimpleNamespace(stream="ORDERS", seq=seq, duplicate=None)
            case "lost":
                raise asyncio.TimeoutError()
            case "no_broker":
                raise NoStreamResponseError()
        raise APIError({"conflict": 10071, "full": 10077, "too_large": 10054}[answer])


async def outcome(call):
    """Return the result of a call, or the kind of its error."""
    try:
        return await call, None
    except DelayError as e:
        return None, e.kind


async def main(file):
    for r in file["requests"]:
        script = Script(None, r.get("answers", ["stored"]))
        delays, options, target, delay = Delays(script), r.get("options", {}), r["target"], r.get("delay")
        when = datetime.fromisoformat(r["time"].replace("Z", "+00:00").replace(".250+", ".250000+")) if "time" in r else delay
        _, error = await outcome({
            "in": lambda: delays.in_(target, delay, b"body", **options),
            "at": lambda: delays.at(target, when, b"body", **options),
            "level": lambda: delays.level(target, delay, b"body", **options),
            "timer": lambda: delays.timer(r["key"], target, when, b"body", **options),
            "debounce": lambda: delays.debounce(r["key"], target, delay, r["max_wait"], b"body", **options),
            "cancel": lambda: delays.cancel(r["key"], target, r["generation"]),
        }[r["call"]]())
        check(f"{r}: error", error, r.get("error"))
        if "error" not in r:
            subject, headers = script.published[-1]
            if "Delay-Until" in headers:  # the same moment, with another number of digits
                headers["Delay-Until"] = headers["Delay-Until"].replace(".250000Z", ".250Z")
            check(f"{r}: subject", subject, r["subject"])
            check(f"{r}: headers", headers, r.get("headers", {}))
    for v in file["verdicts"]:
        for call in ("cancel_pending", "move_pending"):
            script = Script(v["entry"], v["answers"], v.get("missing", 0), v.get("leaders", ()))
            arguments = ("order-42", "orders.expire") + (("2h",) if call == "move_pending" else ())
            verdict, error = await outcome(getattr(Delays(script), call)(*arguments))
            check(f"{v['name']}: {call}", error or str(verdict).lower(), v["verdict"])
            check(f"{v['name']}: {call}: remaining answers", script.answers, [])
    for moved in file["moved"]:
        script = Script(moved["entry"], ["stored", "stored"])
        await Delays(script).move_pending("order-42", "orders.expire", "2h")
        await Delays(script).cancel_pending("order-42", "orders.expire")
        for i, token, change in ((0, "Delay-Word", moved), (1, "Delay-Cancel", file["cancelled"])):
            headers = script.published[i][1]
            check(f"the token in {token}", bool(headers.pop(token, "")), True)
            check(f"the headers beside {token}", headers, change["headers"])
    for a in file["arrivals"]:
        got = arrival(SimpleNamespace(headers=a["headers"]))
        if got:
            got = got._asdict()
            for name in ("due", "accepted"):
                got[name + "_ms"] = int(got.pop(name).timestamp() * 1000)
        check(f"arrival of {a['headers']}", got, a["arrival"])


with open(sys.argv[1]) as f:
    asyncio.run(main(json.load(f)))
sys.exit(1 if failed else 0)
