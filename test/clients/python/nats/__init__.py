"""A stand-in for nats-py, for machines that cannot install it: the few calls that the snippets and the Python client
make, over the NATS protocol. It shows what they send to a real server and read from it, and not that nats-py agrees.
"""
import asyncio
import base64
import json
from types import SimpleNamespace
from urllib.parse import urlsplit

from nats.js.errors import APIError, NoStreamResponseError

_INBOX = "_INBOX.stand-in."


async def connect(url):
    address = urlsplit(url)
    reader, writer = await asyncio.open_connection(address.hostname, address.port)
    await reader.readline()  # INFO
    options = {"verbose": False, "headers": True, "no_responders": True}
    writer.write(f"CONNECT {json.dumps(options)}\r\nSUB {_INBOX}* 1\r\n".encode())
    return _Connection(reader, writer)


class _Connection:
    def __init__(self, reader, writer):
        self._reader, self._writer, self._waiting = reader, writer, {}
        self._loop = asyncio.create_task(self._read())

    def jetstream(self):
        return _JetStream(self)

    async def drain(self):
        self._loop.cancel()
        self._writer.close()

    async def _read(self):
        while line := (await self._reader.readline()).decode().split():
            if line[0] == "PING":
                self._writer.write(b"PONG\r\n")
            if line[0] not in ("MSG", "HMSG"):
                continue
            frame = await self._reader.readexactly(int(line[-1]) + 2)
            head = int(line[-2]) if line[0] == "HMSG" else 0
            self._waiting.pop(line[1]).set_result((frame[:head].decode(), frame[head:-2]))

    async def request(self, subject, body, headers, timeout):
        inbox = f"{_INBOX}{len(self._waiting)}-{id(body)}"
        answer = self._waiting[inbox] = asyncio.get_running_loop().create_future()
        if headers:
            head = ("NATS/1.0\r\n" + "".join(f"{n}: {v}\r\n" for n, v in headers.items()) + "\r\n").encode()
            line = f"HPUB {subject} {inbox} {len(head)} {len(head) + len(body)}\r\n"
        else:
            head, line = b"", f"PUB {subject} {inbox} {len(body)}\r\n"
        self._writer.write(line.encode() + head + body + b"\r\n")
        status, text = await asyncio.wait_for(answer, timeout)
        if " 503" in status:
            raise NoStreamResponseError(f"nats: no response from stream for {subject}")
        reply = json.loads(text)
        if "error" in reply:
            raise APIError(reply["error"])
        return reply


class _JetStream:
    def __init__(self, connection):
        self._connection = connection

    async def publish(self, subject, payload=b"", timeout=5, stream=None, headers=None):
        ack = await self._connection.request(subject, payload, headers, timeout)
        return SimpleNamespace(stream=ack["stream"], seq=ack["seq"], duplicate=ack.get("duplicate"))

    async def get_last_msg(self, stream_name, subject):
        body = json.dumps({"last_by_subj": subject}).encode()
        reply = await self._connection.request(f"$JS.API.STREAM.MSG.GET.{stream_name}", body, None, 5)
        m = reply["message"]
        lines = base64.b64decode(m.get("hdrs", "")).decode().split("\r\n")[1:]
        headers = dict(line.split(": ", 1) for line in lines if line)
        return SimpleNamespace(seq=m["seq"], data=base64.b64decode(m.get("data", "")), headers=headers)

    async def stream_info(self, name, subjects_filter=None):
        body = json.dumps({"subjects_filter": subjects_filter}).encode()
        reply = await self._connection.request(f"$JS.API.STREAM.INFO.{name}", body, None, 5)
        subjects = reply["state"].get("subjects")
        return SimpleNamespace(cluster=None, state=SimpleNamespace(subjects=subjects))  # of a server without a cluster
