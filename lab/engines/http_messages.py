"""HTTP/1.1 messages on asyncio streams: as much of it as boto3 and the engines speak, and no more."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace

HEAD_END = b"\r\n\r\n"
LIMIT_BYTES = 32 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Message:
    """A request or an answer. `start` is its first line; names of headers are lower case."""

    start: str
    headers: dict[str, str]
    body: bytes

    @property
    def path(self) -> str:
        return self.start.split(" ")[1]

    @property
    def status(self) -> int:
        return int(self.start.split(" ")[1])

    def to(self, path: str) -> Message:
        """The same request to another path."""
        method, _, version = self.start.split(" ")
        return replace(self, start=f"{method} {path} {version}")

    def spelled(self) -> bytes:
        headers = self.headers | {"content-length": str(len(self.body)), "connection": "keep-alive"}
        headers.pop("transfer-encoding", None)
        lines = [self.start, *(f"{name}: {value}" for name, value in headers.items())]
        return "\r\n".join(lines).encode() + HEAD_END + self.body


def answer(status: int, body: bytes) -> Message:
    """An answer of our own."""
    return Message(f"HTTP/1.1 {status} Fault", {"content-type": "application/x-amz-json-1.0"}, body)


async def read(stream: asyncio.StreamReader) -> Message:
    """The next message. Raises IncompleteReadError when the other side has ended."""
    head = await stream.readuntil(HEAD_END)
    start, *lines = head[: -len(HEAD_END)].decode("latin-1").split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    if "chunked" in headers.get("transfer-encoding", ""):
        return Message(start, headers, await _chunks(stream))
    return Message(start, headers, await stream.readexactly(int(headers.get("content-length", "0"))))


async def _chunks(stream: asyncio.StreamReader) -> bytes:
    body = b""
    while len(body) < LIMIT_BYTES:
        size = int((await stream.readline()).split(b";")[0], 16)
        body += (await stream.readexactly(size + 2))[:-2]
        if size == 0:
            return body
    raise ValueError(f"an answer of more than {LIMIT_BYTES} bytes")
