"""A DynamoDB that keeps nothing, in a process of its own: it answers each request with a success,
so many milliseconds after it came.

Rule 1: It is for what a client takes by itself. Whoever has to know that a change counted asks an
engine.
Rule 2: A connection that pipelines gets its answers in order, because all wait equally long.
"""

import asyncio
import json
import re
import subprocess
import sys
import zlib
from typing import Annotated, Any, Self

import typer

HOST = "127.0.0.1"
TABLE = "bench"
NOTHING = {"TableName": TABLE, "CapacityUnits": 1.0}
CHANGES = 10  # that the gate of an answer holds
LENGTH = re.compile(rb"^content-length: *(\d+)", re.I | re.M)
TARGET = re.compile(rb"^x-amz-target: *\w+\.(\w+)", re.I | re.M)
HEAD = (
    b"HTTP/1.1 200 OK\r\nx-amzn-requestid: %b\r\nx-amz-crc32: %d\r\n"
    b"content-type: application/x-amz-json-1.0\r\ncontent-length: %d\r\n\r\n"
)
REQUEST_ID = b"A" * 52


def gate() -> dict[str, Any]:
    """The item of a limited counter at work, as an update shows it."""
    numbers = ("total", "count", "version", "epoch")
    return {
        "pk": {"S": "gate#x"},
        "sk": {"S": "gate"},
        "recent": {"M": {f"01KB{number:022}": {"N": "1"} for number in range(CHANGES)}},
        "held": {"M": {}},
        **{name: {"N": "0"} for name in numbers},
        **{name: {"S": "0" * 26} for name in ("low", "top")},
        **{name: {"N": str(10**9)} for name in ("up", "ceiling")},
    }


def answer(target: str, body: bytes) -> bytes:
    """The body of the answer to an operation."""
    found: dict[str, Any] = {"ConsumedCapacity": NOTHING}
    match target:
        case "UpdateItem" if b'"ALL_NEW"' in body:
            found["Attributes"] = gate()
        case "Query":
            found |= {"Items": [], "Count": 0, "ScannedCount": 0}
        case "BatchGetItem":
            found = {"Responses": {TABLE: []}, "UnprocessedKeys": {}, "ConsumedCapacity": [NOTHING]}
        case "BatchExecuteStatement":
            statements = body.count(b'"Statement"')
            found = {
                "Responses": [{"TableName": TABLE}] * statements,
                "ConsumedCapacity": [NOTHING | {"CapacityUnits": float(statements)}],
            }
    return json.dumps(found, separators=(",", ":")).encode()


class Connection(asyncio.Protocol):
    """One client's: it may ask again before it has its answer."""

    def __init__(self, delay_s: float) -> None:
        self._delay_s, self._received = delay_s, b""

    def connection_made(self, transport: Any) -> None:
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._received += data
        while (end := self._received.find(b"\r\n\r\n")) >= 0:
            head, length = self._received[:end], LENGTH.search(self._received[:end])
            last = end + 4 + (int(length[1]) if length else 0)
            if len(self._received) < last:
                return
            body, self._received = self._received[end + 4 : last], self._received[last:]
            self._answer(head, body)

    def _answer(self, head: bytes, body: bytes) -> None:
        target = TARGET.search(head)
        content = answer(target[1].decode() if target else "", body)
        sent = HEAD % (REQUEST_ID, zlib.crc32(content), len(content)) + content
        asyncio.get_running_loop().call_later(self._delay_s, self._transport.write, sent)


async def serve(delay_ms: float) -> None:
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: Connection(delay_ms / 1e3), HOST, 0, backlog=2_048)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


class Null:
    """`with Null(4) as null:`; `null.url` answers after 4 ms, until the block ends."""

    def __init__(self, delay_ms: float) -> None:
        self._delay_ms = delay_ms

    def __enter__(self) -> Self:
        arguments = [sys.executable, "-m", "lab.engines.null", str(self._delay_ms)]
        self._process = subprocess.Popen(arguments, stdout=subprocess.PIPE)
        assert self._process.stdout is not None
        self.url = f"http://{HOST}:{int(self._process.stdout.readline())}"
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.communicate()


def main(delay_ms: Annotated[float, typer.Argument(min=0)]) -> None:
    """Answer each request with a success, so many milliseconds after it came. Prints its port."""
    asyncio.run(serve(delay_ms))


if __name__ == "__main__":
    typer.run(main)
