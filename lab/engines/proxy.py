"""The fault proxy: a process between every client and the engine that does to requests what
proxy_faults.py decides.

Rule 1: Loopback only, and nothing that a page in a browser sends. A request's path says where its
caller stands; the Region that it asks is in its signature.
Rule 2: It decides nothing: what happens to a request is a Fault. What it did is counted by kind.
Rule 3: A partition resets what one Region's callers send to another Region; callers outside reach
every Region.
Rule 4: PartiQL goes on item by item (`partiql`), because this engine's streams and replicas see
none.
Rule 5: A request goes on to the engine also when its caller has hung up: a network does not take
packets back.
"""

import contextlib
import random
import re
import threading
import time
from collections import Counter
from collections.abc import Mapping
from http.server import ThreadingHTTPServer
from multiprocessing.connection import Connection

from urllib3 import HTTPConnectionPool
from urllib3.exceptions import HTTPError

from lab.engines import partiql
from lab.engines.children import CONTEXT, Children
from lab.engines.ministack import HOST, POOL_CONNECTIONS, Engine
from lab.engines.proxy_faults import REFUSALS, Fault, Mix, decide, refusal
from ledger.core.loopback import OfLoopback

OUTSIDE = "outside"  # where writers and readers stand: no partition lies between them and a Region
_REGION = re.compile(r"Credential=[^/]*/[^/]*/([^/]*)/")
PARTITION = Fault("cut off by the partition", times=0, answer="reset")
PLAIN = Fault("")
ENGINE_TIMEOUT_S = 60
SILENCE_S = 20
UNDER_WAY = "under way"
JSON = {"Content-Type": "application/x-amz-json-1.0"}
OF_A_CONNECTION = {"content-length", "connection", "transfer-encoding"}
"""Headers that are not handed on."""

Headers = Mapping[str, str]
Answer = tuple[int, Headers, bytes]


def main(engine_port: int, seed: int, mixed: Mix, control: Connection) -> None:
    """Sends its port, then serves until it is killed.

    It takes ("partition", bool), ("calm",) for no more faults, ("refuse", one of REFUSALS or "" for
    none, a place or "" for everybody); anything else it answers by the counts so far.
    """
    proxy = _Proxy(engine_port, random.Random(f"{seed} proxy"), mixed)
    threading.Thread(target=proxy.serve_forever, daemon=True).start()
    control.send(proxy.server_port)
    while True:  # ends with its process
        match control.recv():
            case ("partition", bool(on)):
                proxy.partitioned = on
            case ("calm",):
                proxy.mix = {}
            case ("refuse", str(answer), str(place)):
                proxy.refused = answer, place
            case _:
                with proxy.lock:
                    control.send(dict(proxy.counts) | {UNDER_WAY: proxy.under_way})


def start(children: Children, engine: Engine, seed: int, mixed: Mix) -> tuple[Connection, str]:
    """A proxy in front of the engine, as one of `children`: what it takes its commands by, and
    its endpoint.
    """
    control, theirs = CONTEXT.Pipe()
    children.start("proxy", main, int(engine.endpoint_url.rpartition(":")[2]), seed, mixed, theirs)
    return control, f"http://{HOST}:{control.recv()}"


class _Proxy(ThreadingHTTPServer):
    request_queue_size = 512

    def __init__(self, engine_port: int, rng: random.Random, mixed: Mix) -> None:
        super().__init__((HOST, 0), _Caller)
        self._engine = HTTPConnectionPool(
            HOST, engine_port, maxsize=POOL_CONNECTIONS, timeout=ENGINE_TIMEOUT_S, retries=False
        )
        self._rng, self.mix = rng, mixed
        self.partitioned, self.refused = False, ("", "")
        self.lock, self.counts, self.under_way = threading.Lock(), Counter[str](), 0

    def answer(self, place: str, headers: Headers, body: bytes) -> Answer | None:
        """Does to a request what was decided. Its answer; None where its connection breaks."""
        with self.lock:
            fault = self._fault(place, headers)
            self.counts.update(filter(None, ("requests", fault.kind)))
            self.under_way += 1 + (fault.again_ms is not None)
        answer = self._deliver(headers, body, fault)
        if fault.again_ms is not None:
            again = Fault("", wait_ms=fault.again_ms)
            threading.Thread(target=self._deliver, args=(headers, body, again), daemon=True).start()
        self._pause(fault.answer_wait_ms)
        match fault.answer:
            case "engine":
                return answer
            case "reset" | "silence" as kind:
                time.sleep(SILENCE_S if kind == "silence" else 0)
                return None
            case kind:
                status, said = refusal(self._rng, kind, _operation(headers))
                return status, JSON, said

    def _fault(self, place: str, headers: Headers) -> Fault:
        region = _REGION.search(headers.get("Authorization", ""))
        if self.partitioned and place != OUTSIDE and region and region[1] != place:
            return PARTITION
        answer, refused = self.refused
        if answer and refused in ("", place):
            return REFUSALS[answer]
        return decide(self._rng, self.mix) or PLAIN

    def _deliver(self, headers: Headers, body: bytes, fault: Fault) -> Answer | None:
        try:
            self._pause(fault.wait_ms)
            answer = None
            for _ in range(fault.times):
                answer = self._ask(headers, body)
            return answer
        finally:
            with self.lock:
                self.under_way -= 1

    def _ask(self, headers: Headers, body: bytes) -> Answer | None:
        if _operation(headers) != partiql.OPERATION:
            return self._forward(headers, body)
        answers = []
        for operation, request in partiql.requests_of(body):
            target = headers["X-Amz-Target"].replace(partiql.OPERATION, operation)
            answer = self._forward({**headers, "X-Amz-Target": target}, request)
            if answer is None:
                return None
            answers.append((operation, (answer[0], answer[2])))
        return 200, JSON, partiql.answer_of(answers)

    def _forward(self, headers: Headers, body: bytes) -> Answer | None:
        """The engine's answer; None when the connection to it broke."""
        sent = {**headers, "Content-Length": str(len(body))}
        try:
            answer = self._engine.urlopen("POST", "/", body, sent, decode_content=False)
        except HTTPError:
            with self.lock:
                self.counts["engine hung up"] += 1
            return None
        handed_on = {
            name: text
            for name, text in answer.headers.items()
            if name.lower() not in OF_A_CONNECTION
        }
        return answer.status, handed_on, answer.data

    def _pause(self, between_ms: tuple[int, int]) -> None:
        if between_ms[1]:
            time.sleep(self._rng.randint(*between_ms) / 1_000)


class _Caller(OfLoopback):
    protocol_version, disable_nagle_algorithm = "HTTP/1.1", True
    server: _Proxy

    def handle(self) -> None:
        with contextlib.suppress(OSError):  # the caller has hung up
            super().handle()

    def do_POST(self) -> None:
        length = int(self.headers["Content-Length"])
        body = self.rfile.read(length)
        is_whole = len(body) == length  # else its caller was killed
        answer = (
            self.server.answer(self.path.strip("/"), dict(self.headers), body) if is_whole else None
        )
        if answer is None:
            self.close_connection = True
            return
        status, headers, body = answer
        self.send_response_only(status)
        for name, value in {**headers, "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Nothing: what was done is counted."""


def _operation(headers: Headers) -> str:
    return headers.get("X-Amz-Target", "").rpartition(".")[2]
