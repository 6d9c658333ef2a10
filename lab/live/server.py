"""The live page on 127.0.0.1: its files, the picture of now, and one address to ask for things.

Rule 1: It listens on the loopback alone, and `loopback` refuses what a foreign page sends.
Rule 2: A request that changes something must come from the page itself, as JSON.
Rule 3: The page may load nothing from elsewhere.
"""

import json
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from lab.live.controls import BadControl
from lab.live.show import Show
from ledger.core.loopback import HOST, PAGE_HEADERS, OfLoopback

PORT = 8090
BODY_MAX = 1_000
PAGE = Path(__file__).with_name("page")


class Server(ThreadingHTTPServer):
    """The page as a server, with a scene behind it. Port 0: any that is free. Raises OSError."""

    def __init__(self, port: int = PORT, *, seed: int = 1) -> None:
        self.show = Show(seed)
        super().__init__((HOST, port), partial(Handler, directory=str(PAGE)))
        self.url = f"http://{HOST}:{self.server_port}/"


class Handler(OfLoopback, SimpleHTTPRequestHandler):
    """One request."""

    server: Server
    server_version, sys_version = "live-page", ""
    timeout = 30

    def do_GET(self) -> None:
        if self.path != "/picture":
            super().do_GET()
            return
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        self.wfile.write(self.server.show.picture())

    def do_POST(self) -> None:
        length = self.headers.get("Content-Length", "")
        if "Origin" not in self.headers:
            self.send_error(403, "Only the page itself may ask for this.")
        elif self.headers.get_content_type() != "application/json":
            self.send_error(415, "Send Content-Type: application/json.")
        elif self.path != "/do" or not length.isdecimal() or int(length) > BODY_MAX:
            self.send_error(400, f"Send JSON of at most {BODY_MAX:,} bytes to /do.")
        else:
            try:
                self.server.show.do(json.loads(self.rfile.read(int(length))))
                self.send_response(204)
                self.end_headers()
            except BadControl as refused:
                self.send_error(400, str(refused))
            except (ValueError, RecursionError):
                self.send_error(400, "This is not JSON.")

    def end_headers(self) -> None:
        for name, value in PAGE_HEADERS.items():
            self.send_header(name, value)
        super().end_headers()

    def log_message(self, format: str, *args: Any) -> None:
        """The terminal stays calm."""
