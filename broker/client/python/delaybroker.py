"""A client of the delay broker for nats-py: copy this file. Its names, errors and outcomes are those of the Go client;
../conformance.json is tested in all languages.

    delays = Delays(nc.jetstream())
    await delays.in_("orders.expire", "30m", b'{"id":42}', id="order-42/expire")
    r = await delays.timer("order-42", "orders.expire", "30m", body, if_absent=True)
    await delays.cancel_pending("order-42", "orders.expire")   # True: it will never be delivered

A delay is a duration such as "1h30m", a timedelta, or a number of milliseconds. The client checks targets, keys and
delays; any other invalid request becomes a dead letter.
"""
import asyncio
import math
import re
import time
import uuid
from collections import namedtuple
from datetime import datetime, timedelta, timezone

Receipt = namedtuple("Receipt", "stream sequence duplicate")
Arrival = namedtuple("Arrival", "id due accepted msg_id attempts series round")


class DelayError(Exception):
    """An error with one of these kinds. After ErrUnanswered and ErrForeign the message may be stored; after all others
    it is not. After ErrUnanswered repeat the call: in_ and at with the same id and delay, all others as they were.
    ErrBadTarget ErrBadTime ErrBadKey ErrBadOption ErrNoBroker ErrTooLarge ErrFull ErrConflict ErrUnanswered ErrForeign
    """

    def __init__(self, kind, text):
        super().__init__(f"{kind}: {text}")
        self.kind = kind


_UNITS = {"w": 604800000, "d": 86400000, "h": 3600000, "m": 60000, "s": 1000, "ms": 1}
# The durations with a subject in every broker, as in "Plain durations" of PROTOCOL.md: unit, first, last, step.
_PLAIN_RUNS = [("ms", 10, 990, 10), ("ms", 1000, 5000, 500), ("ms", 10000, 60000, 10000), ("s", 0, 300, 1),
               ("s", 360, 900, 60), ("s", 1200, 3600, 600), ("s", 7200, 21600, 3600), ("s", 43200, 86400, 43200),
               ("m", 1, 300, 1), ("m", 360, 1440, 120), ("h", 1, 100, 1), ("h", 120, 720, 24), ("d", 1, 366, 1),
               ("w", 1, 52, 1)]
_CODES = {10071: "ErrConflict", 10054: "ErrTooLarge", 10077: "ErrFull", 10047: "ErrFull", 10002: "ErrFull",
          10023: "ErrFull", 10028: "ErrFull", 10167: "ErrFull", 10158: "ErrUnanswered", 10164: "ErrUnanswered"}


def _format(ms):
    ms, text = max(0, math.ceil(ms)), ""
    for unit in ("d", "h", "m", "s", "ms"):
        n, ms = divmod(ms, _UNITS[unit])
        if n:
            text += f"{n}{unit}"
    return text or "0s"


_PLAIN = {}
for _unit, _first, _last, _step in _PLAIN_RUNS:
    for _n in range(_first, _last + 1, _step):
        _ms, _name = _n * _UNITS[_unit], f"{_n}{_unit}"
        if _ms not in _PLAIN or _name == _format(_ms):
            _PLAIN[_ms] = _name


def _milliseconds(delay):
    """Return a delay in whole milliseconds, rounded up."""
    if isinstance(delay, timedelta):
        return max(0, -(-delay // timedelta(milliseconds=1)))
    if isinstance(delay, (int, float)):
        return max(0, math.ceil(delay))
    total, longest, end = 0, math.inf, 0
    for m in re.finditer(r"(0|[1-9]\d*)(ms|[wdhms])", delay):
        if m.start() != end or _UNITS[m[2]] >= longest:  # each unit once, the longest first
            break
        longest, end = _UNITS[m[2]], m.end()
        total += int(m[1]) * longest
    if not delay or end != len(delay):
        raise DelayError("ErrBadTime", f"the delay {delay}: want a duration such as 1h30m")
    return total


def _rfc3339(t):
    return t.astimezone(timezone.utc).isoformat().replace("+00:00", "Z")


class Delays:
    """A client on js, which is nc.jetstream(). Prefix is the broker's DELAY_PREFIX, and timeout is in seconds."""

    def __init__(self, js, prefix="delay", timeout=5.0):
        self._js, self._prefix, self._timeout, self._streams = js, prefix, timeout, prefix.upper() + "_"

    # The options of in_, at and level: id, headers, spread, expires, deliver, max_attempts, rate_key, ttl.
    async def in_(self, target, delay, body=b"", **options):
        ms = _milliseconds(delay)
        intake = f"{self._prefix}in.{_format(ms)}.{self._target(target)}"
        if ms not in _PLAIN:
            return await self._publish(intake, body, _headers(**options))
        try:
            return await self._publish(f"{self._prefix}.{_PLAIN[ms]}.{target}", body, _headers(**options))
        except DelayError as e:  # with an id, another subject could store the message twice
            if e.kind != "ErrNoBroker" or options.get("id"):
                raise
        return await self._publish(intake, body, _headers(**options))

    async def at(self, target, when, body=b"", **options):
        ms = -(-(when - datetime.fromtimestamp(0, timezone.utc)) // timedelta(milliseconds=1))
        token = str(ms) if ms % 1000 else time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(ms // 1000))
        return await self._publish(f"{self._prefix}at.{token}.{self._target(target)}", body, _headers(**options))

    async def level(self, target, level, body=b"", **options):
        _milliseconds(level)
        return await self._publish(f"{self._prefix}.{level}.{self._target(target)}", body, _headers(**options))

    async def timer(self, key, target, when, body=b"", if_absent=False, if_generation=None, **options):
        """Set or replace a named timer, due after a delay or at a datetime. If if_absent or if_generation does not
        hold, the error is ErrConflict. Receipt.sequence is the generation."""
        if options.get("id"):
            raise DelayError("ErrBadOption", "id is not for a named timer, whose key is its identity")
        h = _headers(**options)
        if isinstance(when, datetime):
            h["Delay-Until"] = _rfc3339(when)
        else:
            h["Delay-For"] = _format(_milliseconds(when))
        return await self._publish(self._timer(key, target), body, h, 0 if if_absent else if_generation, True)

    async def debounce(self, key, target, delay, max_wait, body=b"", **options):
        """Set a timer that each further call postpones by the delay, until max_wait has passed since the first call."""
        own = dict(options.pop("headers", None) or {})
        own["Delay-Max-Wait"] = _format(_milliseconds(max_wait))
        return await self.timer(key, target, delay, body, headers=own, **options)

    async def cancel(self, key, target, generation):
        """Cancel a generation. If cancel returns, that generation will never be delivered."""
        if not generation:
            raise DelayError("ErrBadOption", "cancel generation 0: want the sequence of a timer")
        await self._publish(self._timer(key, target), b"", {"Delay-Cancel": str(generation)}, generation, True)

    # cancel_pending and move_pending change the pending timer, with any generation. They return whether the change was
    # in time, and need the permissions to publish to $JS.API.STREAM.MSG.GET and $JS.API.STREAM.INFO.
    async def cancel_pending(self, key, target):
        return await self._change(self._timer(key, target), lambda h, body, token: ({"Delay-Cancel": token}, b""))

    async def move_pending(self, key, target, delay):
        text = _format(_milliseconds(delay))

        def move(h, body, token):
            if any(re.fullmatch(r"delay-(first|every|cron)", name, re.I) for name in h):
                raise DelayError("ErrBadOption", f"the timer {key} recurs: use the control service")
            drop = re.compile(r"delay-(for|until|spread|word|max-wait)|nats-(?!msg-id$).*", re.I)
            kept = {name: value for name, value in h.items() if not drop.fullmatch(name)}
            return {**kept, "Delay-For": text, "Delay-Word": token}, body

        return await self._change(self._timer(key, target), move)

    async def _change(self, subject, change):
        """Publish a change of the pending timer until its outcome is certain. After a lost answer, find the own entry
        by the token."""
        token, end, unanswered = uuid.uuid4().hex, time.monotonic() + self._timeout, None
        while True:
            entry = await self._last(subject, end)
            h = (entry.headers or {}) if entry else {}
            if token in (h.get("Delay-Word"), h.get("Delay-Cancel")):
                return True
            recurs = not h.keys().isdisjoint({"Delay-First", "Delay-Every", "Delay-Cron"})
            cancels = "Delay-Cancel" in h and "Delay-For" not in h and "Delay-Until" not in h and not recurs
            if not entry or "Delay-Over" in h or cancels or "Delay-Fired" in h and "Delay-First" not in h:
                if unanswered:
                    raise unanswered
                return False
            headers, body = change(h, entry.data or b"", token)
            try:
                await self._publish(subject, body, headers, entry.seq, True, min(1.0, self._timeout))
                return True
            except DelayError as e:
                if e.kind == "ErrUnanswered":
                    unanswered = e
                elif e.kind != "ErrConflict":
                    raise
            if time.monotonic() > end:
                raise unanswered or DelayError("ErrUnanswered", f"change the timer on {subject}")
            await asyncio.sleep(0.05)

    async def _last(self, subject, end):
        """Read the last entry of a subject. A deposed leader may not have it. So None means that neither the leader that
        a majority follows nor a read after its answer has an entry."""
        stream, none = self._streams + "TIMERS", False
        try:
            while True:
                entry = await self._get_last(stream, subject)
                if entry or none:
                    return entry
                info = await self._js.stream_info(stream, subjects_filter=subject)
                none = _is_followed(info.cluster) and not info.state.subjects
                if none:
                    continue
                if time.monotonic() > end:
                    raise DelayError("ErrUnanswered", f"read {subject}: the stream has no leader")
                await asyncio.sleep(0.05)
        except Exception as e:
            raise _explain(e, f"read {subject}") from e

    async def _get_last(self, stream, subject):
        try:
            return await self._js.get_last_msg(stream, subject)
        except Exception as e:
            if getattr(e, "err_code", None) == 10037:  # no message found
                return None
            raise

    async def _publish(self, subject, body, headers, expected=None, timer=False, timeout=None):
        if expected is not None:
            headers["Nats-Expected-Last-Subject-Sequence"] = str(expected)
        body = body.encode() if isinstance(body, str) else body
        try:
            ack = await self._js.publish(subject, body, timeout=timeout or self._timeout, headers=headers or None)
        except Exception as e:
            raise _explain(e, f"publish to {subject}") from e
        duplicate = bool(ack.duplicate)
        if not ack.seq or not ack.stream.startswith(self._streams) or timer and (duplicate or ack.seq <= (expected or 0)):
            raise DelayError("ErrForeign", f"the answer to {subject} is {ack}")
        return Receipt(ack.stream, ack.seq, duplicate)

    def _target(self, target):
        tokens = target.split(".")
        if (not re.fullmatch(r"[!-~]{1,256}", target) or re.search(r"[*>]", target) or target[0] in "$_" or "" in tokens
                or len(tokens) > 16 or re.fullmatch(self._prefix + "(in|at|timer|sys|dead|ctl)?", tokens[0])):
            raise DelayError("ErrBadTarget", f"{target}: want at most 16 tokens of ASCII without wildcards, not below "
                                             "$, _ or a subject of the broker")
        return target

    def _timer(self, key, target):
        if not re.fullmatch(r"[!-~]{1,128}", key) or key[0] == "_" or re.search(r"[.*>]", key):
            raise DelayError("ErrBadKey", f"{key}: want one token of ASCII that does not begin with _")
        return f"{self._prefix}timer.{key}.{self._target(target)}"


def _headers(id=None, headers=None, spread=None, expires=None, deliver=None, max_attempts=None, rate_key=None,
             ttl=None):
    h = {name: str(value) for name, value in (headers or {}).items()}
    if isinstance(expires, datetime):
        expires = _rfc3339(expires)
    elif expires is not None:
        expires = _format(_milliseconds(expires))
    if spread is not None:
        spread = _format(_milliseconds(spread))
    if ttl is not None and ttl != "never":
        ttl = _format(_milliseconds(ttl))
    for name, value in (("Nats-Msg-Id", id), ("Delay-Spread", spread), ("Delay-Expires", expires),
                        ("Delay-Deliver", deliver),
                        ("Delay-Max-Attempts", max_attempts), ("Delay-Rate-Key", rate_key), ("Delay-TTL", ttl)):
        if value is not None:
            h[name] = str(value)
    return h


def arrival(m):
    """Return the delay metadata of a delivered message, or None if no broker has delivered the message."""
    h = m.headers or {}

    def moment(name):  # nanoseconds become microseconds
        text = re.sub(r"(\.\d{6})\d*", r"\1", h.get(name, "")).replace("Z", "+00:00")
        text = re.sub(r"\.(\d+)", lambda f: "." + f[1].ljust(6, "0"), text)
        return datetime.fromisoformat(text)

    def number(name):
        return int(h[name]) if re.fullmatch(r"\d+", h.get(name, "")) else 0

    try:
        due, accepted, id = moment("Delay-Due"), moment("Delay-Accepted"), h["Delay-Id"]
    except (KeyError, ValueError):
        return None
    return Arrival(id, due, accepted, h.get("Delay-Msg-Id", ""), number("Delay-Attempts"), number("Delay-Series"),
                   number("Delay-Round"))


def _is_followed(cluster):
    """Report whether a majority of the replicas has recently answered the leader. Replicas answer once a second, and
    elect another leader after four seconds of silence."""
    if cluster is None:  # a server without a cluster
        return True
    replicas = cluster.replicas or []
    heard = [r for r in replicas if not r.offline and (r.active or 0) < 3e9 and (r.current or r.active)]
    return bool(cluster.leader) and len(heard) + 1 > (len(replicas) + 1) / 2


def _explain(e, action):
    name, code = type(e).__name__, getattr(e, "err_code", None)
    if code in _CODES:
        kind = _CODES[code]
    elif name in ("NoStreamResponseError", "NoRespondersError", "ServiceUnavailableError"):
        kind = "ErrNoBroker"
    elif name == "MaxPayloadError":
        kind = "ErrTooLarge"
    elif isinstance(e, asyncio.TimeoutError) or name in ("ConnectionClosedError", "ConnectionDrainingError"):
        kind = "ErrUnanswered"
    else:
        return e
    return DelayError(kind, f"{action}: {e}")
