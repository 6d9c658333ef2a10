"""The fault proxy: a process between every client and the engine that does to requests what proxy_faults.py decides.

Rule 1: Loopback only. A request's path says where its caller stands; the Region that it asks is in its signature.
Rule 2: It decides nothing: what happens to a request is a Fault. What it did is counted by kind.
Rule 3: A partition resets what one Region's callers send to another Region; callers outside reach every Region.
Rule 4: It speaks as much of HTTP/1.1 as boto3 and the engines do, and no more: no message comes in chunks.
Rule 5: PartiQL goes on item by item (`partiql`), because this engine's streams and replicas see none.
Rule 6: A request goes on to the engine also when its caller has hung up: a network does not take packets back.
"""

import asyncio
import contextlib
import random
import re
import socket
from collections import Counter
from dataclasses import dataclass, field, replace
from multiprocessing.connection import Connection
from typing import Any

from lab.engines import partiql
from lab.engines.children import CONTEXT, Children
from lab.engines.ministack import HOST, Engine
from lab.engines.proxy_faults import REFUSALS, Fault, Mix, decide, refusal

OUTSIDE = "outside"  # where writers and readers stand: no partition lies between them and a Region
HEAD_END = b"\r\n\r\n"
LIMIT_BYTES = 32 * 1024 * 1024
_REGION = re.compile(r"Credential=[^/]*/[^/]*/([^/]*)/")
PARTITION = Fault("cut off by the partition", times=0, answer="reset")
PLAIN = Fault("")
ENGINE_TIMEOUT_S = 60
SILENCE_S = 20
UNDER_WAY = "under way"


@dataclass(frozen=True, slots=True)
class Message:
    """An HTTP/1.1 request or answer. `start` is its first line; names of headers are lower case."""

    start: str
    headers: dict[str, str]
    body: bytes

    @property
    def path(self) -> str:
        return self.start.split(" ")[1]

    @property
    def status(self) -> int:
        return int(self.start.split(" ")[1])

    def spelled(self) -> bytes:
        headers = self.headers | {"content-length": str(len(self.body)), "connection": "keep-alive"}
        headers.pop("transfer-encoding", None)
        lines = [self.start, *(f"{name}: {value}" for name, value in headers.items())]
        return "\r\n".join(lines).encode() + HEAD_END + self.body


def main(engine_port: int, seed: int, mixed: Mix, control: Connection) -> None:
    """Sends its port, then serves until it is killed.

    It takes ("partition", bool), ("storm", how many times as many faults), ("refuse", one of REFUSALS or "" for none, a
    place or "" for everybody); anything else it answers by the counts so far.
    """
    asyncio.run(_Proxy(engine_port, random.Random(f"{seed} proxy"), mixed, control).run())


def start(children: Children, engine: Engine, seed: int, mixed: Mix) -> tuple[Connection, str]:
    """A proxy in front of the engine, as one of `children`: what it takes its commands by, and its endpoint."""
    control, theirs = CONTEXT.Pipe()
    children.start("proxy", main, int(engine.endpoint_url.rpartition(":")[2]), seed, mixed, theirs)
    return control, f"http://{HOST}:{control.recv()}"


@dataclass(slots=True)
class _Proxy:
    _engine_port: int
    _rng: random.Random
    _mix: Mix
    _control: Connection
    _times: float = 1.0
    _partitioned: bool = False
    _refused: tuple[str, str] = ("", "")
    _counts: Counter[str] = field(default_factory=Counter)
    _idle: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = field(default_factory=list)
    _late: set[asyncio.Task[Any]] = field(default_factory=set)
    _under_way: int = 0

    async def run(self) -> None:
        listening = socket.create_server((HOST, 0), backlog=512)
        server = await asyncio.start_server(self._serve, sock=listening, limit=LIMIT_BYTES)
        asyncio.get_running_loop().add_reader(self._control.fileno(), self._obey)
        self._control.send(listening.getsockname()[1])
        async with server:
            await server.serve_forever()  # ends with its process

    def _obey(self) -> None:
        match self._control.recv():
            case ("partition", bool(on)):
                self._partitioned = on
            case ("storm", float(times)):
                self._times = times
            case ("refuse", str(answer), str(place)):
                self._refused = answer, place
            case _:
                self._control.send(dict(self._counts) | {UNDER_WAY: self._under_way})

    async def _serve(self, stream: asyncio.StreamReader, caller: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            while True:  # until the caller hangs up
                request = await message_from(stream)
                if not await self._handle(request, caller):
                    break
        caller.transport.abort()

    async def _handle(self, request: Message, caller: asyncio.StreamWriter) -> bool:
        """Does to a request what was decided; whether its connection goes on."""
        fault = self._fault(request)
        self._counts["requests"] += 1
        if fault.kind:
            self._counts[fault.kind] += 1
        request = replace(request, start=request.start.replace(request.path, "/", 1))
        answer = await self._deliver(request, fault)
        if fault.again_ms is not None:
            self._later(self._deliver(request, Fault("", wait_ms=fault.again_ms)))
        await self._pause(fault.answer_wait_ms)
        match fault.answer:
            case "engine" if answer is not None:
                caller.write(answer.spelled())
            case "engine" | "reset":
                return False
            case "silence":
                await asyncio.sleep(SILENCE_S)
                return False
            case kind:
                caller.write(answered(*refusal(self._rng, kind, _operation(request))).spelled())
        await caller.drain()
        return True

    def _fault(self, request: Message) -> Fault:
        place = request.path.strip("/")
        region = _REGION.search(request.headers.get("authorization", ""))
        if self._partitioned and place != OUTSIDE and region and region[1] != place:
            return PARTITION
        answer, refused = self._refused
        if answer and refused in ("", place):
            return REFUSALS[answer]
        return decide(self._rng, self._mix, self._times) or PLAIN

    async def _deliver(self, request: Message, fault: Fault) -> Message | None:
        self._under_way += 1
        try:
            await self._pause(fault.wait_ms)
            answer = None
            for _ in range(fault.times):
                answer = await self._ask(request)
            return answer
        finally:
            self._under_way -= 1

    async def _ask(self, request: Message) -> Message | None:
        if _operation(request) != partiql.OPERATION:
            return await self._forward(request)
        answers = []
        for operation, body in partiql.requests_of(request.body):
            target = request.headers["x-amz-target"].replace(partiql.OPERATION, operation)
            headers = request.headers | {"x-amz-target": target}
            answer = await self._forward(replace(request, headers=headers, body=body))
            if answer is None:
                return None
            answers.append((operation, (answer.status, answer.body)))
        return answered(200, partiql.answer_of(answers))

    async def _forward(self, request: Message) -> Message | None:
        """The engine's answer; None when the connection to it broke."""
        idle = self._idle.pop() if self._idle else None
        reader, writer = idle or await asyncio.open_connection(HOST, self._engine_port, limit=LIMIT_BYTES)
        try:
            writer.write(request.spelled())
            async with asyncio.timeout(ENGINE_TIMEOUT_S):
                answer = await message_from(reader)
        except (OSError, asyncio.IncompleteReadError, TimeoutError):
            self._counts["engine hung up"] += 1
            writer.transport.abort()
            return None
        self._idle.append((reader, writer))
        return answer

    def _later(self, work: Any) -> None:
        task = asyncio.create_task(work)
        self._late.add(task)
        task.add_done_callback(self._late.discard)

    async def _pause(self, between_ms: tuple[int, int]) -> None:
        if between_ms[1]:
            await asyncio.sleep(self._rng.randint(*between_ms) / 1_000)


def _operation(request: Message) -> str:
    return request.headers.get("x-amz-target", "").rpartition(".")[2]


def answered(status: int, body: bytes) -> Message:
    """An answer of our own."""
    return Message(f"HTTP/1.1 {status} Fault", {"content-type": "application/x-amz-json-1.0"}, body)


async def message_from(stream: asyncio.StreamReader) -> Message:
    """The next message. Raises IncompleteReadError when the other side has ended."""
    head = await stream.readuntil(HEAD_END)
    start, *lines = head[: -len(HEAD_END)].decode("latin-1").split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    return Message(start, headers, await stream.readexactly(int(headers.get("content-length", "0"))))
