"""The live page on 127.0.0.1: four files, a stream of pictures, and one address to ask for things.

Rule 1: It listens on the loopback alone and answers no other name (a foreign page could make a browser look up its own
name here)
Rule 2: A request that changes something must come from the page itself.
Rule 3: The page may load nothing from elsewhere.
"""

import json
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from mimetypes import guess_type
from pathlib import Path
from typing import Any, Self

from lab.live.controls import BadControl
from lab.live.loop import Loop

HOST = "127.0.0.1"
PORT = 8090
BODY_MAX = 1_000
PAGE = Path(__file__).with_name("page")
FILES = {"/": "index.html", "/style.css": "style.css", "/page.js": "page.js", "/icon.svg": "icon.svg"}
HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}


class PortTaken(Exception):
    """The port cannot be used; the message says what to do."""


class Server(ThreadingHTTPServer):
    """The page as a server; `with` it, a scene runs behind. Port 0: any that is free. Raises PortTaken."""

    daemon_threads = True
    block_on_close = False

    def __init__(self, port: int = PORT, *, seed: int = 1) -> None:
        self.loop = Loop(seed)
        try:
            super().__init__((HOST, port), Handler)
        except OSError as error:
            raise PortTaken(
                f"Port {port} cannot be used: {error.strerror}. If a demo runs there, it is at http://{HOST}:{port}/; "
                f"for a second one choose another port, such as make demo-web PORT={port % 65_535 + 1}."
            ) from None
        self.names = {f"{name}:{self.server_port}" for name in (HOST, "localhost")}
        self.url = f"http://{HOST}:{self.server_port}/"

    def __enter__(self) -> Self:
        self.loop.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.loop.end()
        self.server_close()


class Handler(BaseHTTPRequestHandler):
    """One request."""

    server: Server
    server_version, sys_version = "live-page", ""
    timeout = 30

    def do_GET(self) -> None:
        if not self._is_for_us():
            return
        if self.path == "/pictures":
            self._stream()
        elif self.path in FILES:
            kind, _ = guess_type(FILES[self.path])
            self._answer(200, (PAGE / FILES[self.path]).read_bytes(), f"{kind}; charset=utf-8")
        else:
            self._refuse(404, "There is nothing at this address.")

    def do_POST(self) -> None:
        if not self._is_for_us():
            return
        length = self.headers.get("Content-Length", "")
        if self.headers.get("Origin", "") not in {f"http://{name}" for name in self.server.names}:
            self._refuse(403, "Only the page itself may ask for this.")
        elif self.path != "/do" or not length.isdecimal() or int(length) > BODY_MAX:
            self._refuse(400, f"Send JSON of at most {BODY_MAX:,} bytes to /do.")
        else:
            try:
                self.server.loop.do(json.loads(self.rfile.read(int(length))))
                self._answer(204, b"", "")
            except BadControl as refused:
                self._refuse(400, str(refused))
            except (ValueError, RecursionError):
                self._refuse(400, "This is not JSON.")

    def _is_for_us(self) -> bool:
        if self.headers.get("Host") in self.server.names:
            return True
        self._refuse(403, f"This page is at {self.server.url} only.")
        return False

    def _stream(self) -> None:
        """Pictures as server-sent events, until the page is closed."""
        self._head(200, "text/event-stream")
        self.end_headers()
        try:
            for picture in self.server.loop.pictures():
                self.wfile.write(b"data: " + picture + b"\n\n")
        except OSError:
            pass  # the tab was closed

    def _refuse(self, status: int, sentence: str) -> None:
        self.close_connection = True
        self._answer(status, json.dumps({"error": sentence}).encode(), "application/json")

    def _answer(self, status: int, body: bytes, kind: str) -> None:
        self._head(status, kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _head(self, status: int, kind: str) -> None:
        self.send_response(status)
        for name, value in HEADERS.items():
            self.send_header(name, value)
        if kind:
            self.send_header("Content-Type", kind)

    def log_message(self, format: str, *args: Any) -> None:
        """The terminal stays calm."""


def serve(port: int = PORT, *, seed: int = 1, say: Callable[[str], None] = print) -> None:
    """Serve the live page until Ctrl-C; `say` shows its address. Raises PortTaken."""
    with Server(port, seed=seed) as server:
        try:
            say(f"The live page is at {server.url} (Ctrl-C ends it).")
            server.serve_forever(poll_interval=0.2)
        except KeyboardInterrupt:
            say("\nEnded.")
