"""The console's server: its page, and the views that the page asks for.

Rule 1: It answers a request that has its token (ledger/core/loopback.py), and only reads.
Rule 2: It reads one view at a time, because all of them share a purse.
"""

import json
import secrets
import threading
from collections import defaultdict
from contextlib import suppress
from dataclasses import replace
from html import escape
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files
from io import BytesIO
from typing import Any
from urllib.parse import parse_qsl

from ledger.core.cost import Meter
from ledger.core.loopback import HOST, PAGE_HEADERS, OfLoopback
from ledgerctl import show
from ledgerctl.call import Call
from ledgerctl.console.capped import Capped, Purse
from ledgerctl.console.views import VIEWS
from ledgerctl.failures import DATA, NO_ANSWER, USAGE, meaning

FILES = files(__package__) / "page"  # also where the wheel is imported as a zip
NAMES = frozenset(file.name for file in FILES.iterdir())
STATUS = {USAGE: 400, DATA: 409, NO_ANSWER: 503}


class Server(ThreadingHTTPServer):
    """The console of a call's table, bound and not yet running. Port 0: any that is free.

    units: the most read units that a view takes. Raises OSError.
    """

    def __init__(self, call: Call, port: int, units: int) -> None:
        self._purse, self._one_at_a_time = Purse(units), threading.Lock()
        capped = {region: Capped(table, self._purse) for region, table in call.tables.items()}
        self._call = call.around(replace(call.surroundings, tables=capped))
        self.token = secrets.token_urlsafe(16)
        super().__init__((HOST, port), Handler)
        self.url = f"http://{HOST}:{self.server_port}/{self.token}/"

    @property
    def page(self) -> str:
        its = self._call.settings
        text = (FILES / "page.html").read_text("utf-8")
        said = {"table": its.table, "region": its.region, "most": f"{self._purse.most:,}"}
        for name, value in said.items():
            text = text.replace(f"{{{name}}}", escape(value))
        return text

    def view(self, path: str, query: str) -> tuple[int, dict[str, Any], str]:
        """The status and the answer of a view, and what it took of the table, an error too."""
        with self._one_at_a_time, Meter() as meter:
            self._purse.left = self._purse.most
            try:
                asked = defaultdict(str, parse_qsl(query))
                status, said = 200, VIEWS[path](self._call, asked["counter"], asked)
            except Exception as failure:
                wrong = meaning(failure, self._call.where)
                status = STATUS.get(wrong.code, 500)
                said = {"title": wrong.kind, "detail": f"{wrong.message} {wrong.remedy}".strip()}
            return status, said, show.cost(meter.take())


class Handler(OfLoopback, SimpleHTTPRequestHandler):
    """One request. It has the methods GET and HEAD."""

    server: Server
    timeout = 30

    def do_GET(self) -> None:
        path, _, query = self.path.partition("?")
        if path == "/":
            self._send(200, "text/html; charset=utf-8", self.server.page)
        elif path in VIEWS:
            status, said, cost = self.server.view(path, query)
            self._send(status, "application/json", json.dumps(said), cost)
        else:
            super().do_GET()

    def send_head(self) -> Any:
        # its parent lists folders, and leads where the path says
        name = self.path.partition("?")[0].removeprefix("/")
        if name not in NAMES:
            return self.send_error(404)
        file = (FILES / name).read_bytes()
        self.send_response(200)
        self.send_header("Content-Type", self.guess_type(name))
        self.send_header("Content-Length", str(len(file)))
        self.end_headers()
        return BytesIO(file)

    def _send(self, status: int, kind: str, text: str, cost: str = "") -> None:
        with suppress(ConnectionError):  # the page went on to another view
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Cost", cost)
            self.end_headers()
            self.wfile.write(text.encode())

    def end_headers(self) -> None:
        for name, value in PAGE_HEADERS.items():
            self.send_header(name, value)
        super().end_headers()

    def log_message(self, format: str, *args: Any) -> None:
        """Log no request: the terminal shows the address alone."""
