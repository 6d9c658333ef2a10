"""A server that says what a script says, and so does what no engine can be asked to do."""

import json
import socket
import socketserver
import ssl
import threading
from contextlib import suppress
from typing import Any, NamedTuple

from botocore.credentials import Credentials
from botocore.session import Session

from ledger.tables.boto import CONFIG
from ledger.tables.fast import FastClient

HANG_S, LATE_S = 60, 0.3
BY_ACCOUNT = hasattr(CONFIG, "account_id_endpoint_mode")  # older botocores have no such endpoints


class Line(NamedTuple):
    """What a server sends as its answer to a request, and what comes then: another one, or the
    connection's end. A "late" answer comes after LATE_S, and after one that "stalls" nothing comes.
    """

    sent: bytes = b""
    then: str = "next"


def http(status: int = 200, body: Any = "{}", **headers: object) -> bytes:
    content = (body if isinstance(body, str) else json.dumps(body)).encode()
    named = {"x-amzn-RequestId": "R1", "Content-Length": len(content), **headers}
    lines = "".join(f"{name}: {value}\r\n" for name, value in named.items())
    return f"HTTP/1.1 {status} Some Reason\r\n{lines}\r\n".encode() + content


def refusal(code: str, **more: Any) -> Line:
    return Line(
        http(400, {"__type": f"com.amazonaws.dynamodb.v20120810#{code}", "message": "No.", **more})
    )


OK = Line(http())
HALF, RESET, HANG = Line(http()[:-1], "close"), Line(then="reset"), Line(then="hang")
SUMS: list[Any] = [1, "x"]
WRONG_SUM, NO_SUM = (Line(http(**{"x-amz-crc32": checksum})) for checksum in SUMS)


class Server(socketserver.ThreadingTCPServer):
    """The lines of its script, the last one again and again; without a script each request's own
    item. early: what it says to a request of which it reads one line.
    """

    daemon_threads = True

    def __init__(self, tls: ssl.SSLContext | None = None) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.tls = tls
        self.url = f"{'https' if tls else 'http'}://127.0.0.1:{self.server_address[1]}"
        self.script: list[Line] = []
        self.early: Line | None = None
        self.requests: list[dict[str, str]] = []
        self.connections, self.over, self.closed = 0, threading.Event(), threading.Event()
        self.clients: list[Any] = []

    def line(self, asked: dict[str, Any]) -> Line:
        if not self.script:
            return Line(http(body={"Item": asked.get("Item")}))
        return self.script.pop(0) if len(self.script) > 1 else self.script[0]

    def finish_request(self, request: Any, client_address: Any) -> None:
        if self.tls is None:
            super().finish_request(request, client_address)
            return
        with suppress(OSError), self.tls.wrap_socket(request, server_side=True) as secure:
            super().finish_request(secure, client_address)


class Handler(socketserver.StreamRequestHandler):
    server: Server

    def handle(self) -> None:
        self.server.connections += 1
        while self.rfile.readline():
            if early := self.server.early:
                self.server.requests.append({})
                self.wfile.write(early.sent)
                if early.then == "hang":
                    self.server.over.wait(HANG_S)
                return
            lines = (line.decode().partition(":") for line in iter(self.rfile.readline, b"\r\n"))
            headers = {name.lower(): value.strip() for name, _, value in lines}
            line = self.server.line(json.loads(self.rfile.read(int(headers["content-length"]))))
            self.server.requests.append(headers)
            if line.then == "late":
                self.server.over.wait(LATE_S)
            if line.then == "hang":
                self.server.over.wait(HANG_S)
            if line.then == "reset":
                self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
            self.wfile.write(line.sent)
            if line.then == "stall":
                self.server.over.wait(HANG_S)
            if line.then != "next":
                return
        self.server.closed.set()  # by the client


SESSION, STATIC = Session(), Credentials("AKID", "secret")
SESSION.set_credentials(STATIC.access_key, STATIC.secret_key)


def fast(server: Server, credentials: Credentials | None = STATIC) -> Any:
    made: Any = FastClient("eu-west-1", server.url, session=SESSION)
    made._credentials = credentials
    server.clients.append(made)
    return made
