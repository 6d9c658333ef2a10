"""The API on this computer: `python -m service.api.local` listens on 127.0.0.1 and asks the same code as the function.

Rules: loopback only, because nothing here asks who calls; one request at a time, as in a Lambda; a request becomes the
event that API Gateway's HTTP API would make of it, with the path decoded.
"""

from __future__ import annotations

import argparse
import base64
import os
import sys
import uuid
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any
from urllib.parse import parse_qsl, unquote

from aws_lambda_powertools import Logger
from aws_lambda_powertools.metrics import EphemeralMetrics

from ledger import Ledger, Settings
from reader import Reader
from service.api.app import TRY_IT, Api
from service.api.gate import BODY_BYTES_MAX
from service.api.openapi import in_memory
from service.observe import NAMESPACE, Watch

HOST, PORT = "127.0.0.1", 8080
READ_BYTES_MAX = BODY_BYTES_MAX + 1
"""No more of a body is read; the API then says that it is too large."""


def event_of(method: str, target: str, headers: Mapping[str, str], body: bytes | None) -> dict[str, Any]:
    """The event (payload format 2.0) of a request."""
    raw_path, _, query = target.partition("?")
    path = unquote(raw_path).partition("?")[0]  # API Gateway cuts a decoded path at its first "?"
    parameters: dict[str, str] = {}
    for name, value in parse_qsl(query, keep_blank_values=True):
        parameters[name] = f"{parameters[name]},{value}" if name in parameters else value
    try:
        text, encoded = (body or b"").decode(), False
    except UnicodeDecodeError:
        text, encoded = base64.b64encode(body or b"").decode(), True
    return {
        "version": "2.0",
        "routeKey": "$default",
        "rawPath": path,
        "rawQueryString": query,
        "headers": {name.lower(): value for name, value in headers.items()},
        **({"queryStringParameters": parameters} if parameters else {}),
        "requestContext": {
            "accountId": "anonymous",
            "apiId": "local",
            "domainName": "localhost",
            "http": {"method": method, "path": path, "protocol": "HTTP/1.1", "sourceIp": HOST, "userAgent": ""},
            "requestId": str(uuid.uuid4()),
            "routeKey": "$default",
            "stage": "$default",
        },
        **({"body": text} if body else {}),
        "isBase64Encoded": encoded,
    }


def serve(api: Api, port: int = PORT) -> HTTPServer:
    """A server that is bound to loopback and not yet running."""

    class Handler(BaseHTTPRequestHandler):
        timeout = 10

        def answer(self) -> None:
            try:
                length = min(max(int(self.headers.get("Content-Length", "0")), 0), READ_BYTES_MAX)
            except ValueError:
                self.send_error(400)
                return
            answer = api(event_of(self.command, self.path, dict(self.headers), self.rfile.read(length)))
            data = (answer.get("body") or "").encode()
            data = base64.b64decode(data) if answer.get("isBase64Encoded") else data
            self.send_response(answer["statusCode"])
            for name, value in answer["headers"].items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(data)

        def __getattr__(self, name: str) -> Any:
            if name.startswith("do_"):  # every method: the API says itself which it does not have
                return self.answer
            raise AttributeError(name)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    return HTTPServer((HOST, port), Handler)


def on_a_table(environ: Mapping[str, str]) -> Api:
    settings = Settings.from_env(environ)
    watch = Watch(Logger(service="api", stream=sys.stderr), EphemeralMetrics(namespace=NAMESPACE, service="api"))
    return Api(Ledger(settings), Reader(settings), Reader(settings, consistent=False), watch, try_it=True)


def main(arguments: list[str], environ: Mapping[str, str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m service.api.local", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--memory", action="store_true", help="a table in memory; else the LEDGER_* environment")
    parser.add_argument("--port", type=int, default=PORT)
    chosen = parser.parse_args(arguments)
    server = serve(in_memory(try_it=True) if chosen.memory else on_a_table(environ), chosen.port)
    print(f"http://{HOST}:{server.server_port}{TRY_IT} (Ctrl-C ends it)", flush=True)
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        server.server_close()


if __name__ == "__main__":
    main(sys.argv[1:], os.environ)
