"""The API on this computer: `python -m service.api.local` listens on 127.0.0.1 and asks the same code as the function.

Rule 1: Loopback only, because nothing here asks who calls.
Rule 2: Many connections, and one request at a time, as in a Lambda.
Rule 3: A request becomes the event that API Gateway's HTTP API would make of it, with the path decoded.
Rule 4: What cannot be told to be a whole request is a problem too.
"""

import argparse
import base64
import os
import re
import sys
import threading
import uuid
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, unquote

from ledger import Settings
from service.api import cors
from service.api.admission import BODY_BYTES_MAX
from service.api.app import TRY_IT, Api
from service.api.openapi import in_memory
from service.api.problems import Problem
from service.observe import Watch
from service.writable import Names

HOST, PORT = "127.0.0.1", 8080
READ_BYTES_MAX = BODY_BYTES_MAX + 1
"""No more of a body is read; the API then says that it is too large."""


def event_of(method: str, target: str, headers: Mapping[str, str], body: bytes | None) -> dict[str, Any]:
    """The event (payload format 2.0) of a request."""
    raw_path, _, query = target.partition("?")
    path = unquote(unquote(raw_path).partition("?")[0])  # what API Gateway was seen to do: paths.py names the source
    parameters: dict[str, str] = {}
    for name, value in parse_qsl(query, keep_blank_values=True):
        parameters[name] = f"{parameters[name]},{value}" if name in parameters else value
    try:
        text, encoded = (body or b"").decode(), False
    except UnicodeDecodeError:
        text, encoded = base64.b64encode(body or b"").decode(), True
    http = {"method": method, "path": path, "protocol": "HTTP/1.1", "sourceIp": HOST, "userAgent": ""}
    context = {"accountId": "anonymous", "apiId": "local", "domainName": "localhost", "requestId": str(uuid.uuid4())}
    return {
        "version": "2.0",
        "routeKey": "$default",
        "rawPath": path,
        "rawQueryString": query,
        "headers": {name.lower(): value for name, value in headers.items()},
        **({"queryStringParameters": parameters} if parameters else {}),
        "requestContext": {**context, "http": http, "routeKey": "$default", "stage": "$default"},
        **({"body": text} if body else {}),
        "isBase64Encoded": encoded,
    }


def serve(api: Callable[[dict[str, Any]], dict[str, Any]], port: int = PORT) -> ThreadingHTTPServer:
    """A server that is bound to loopback and not yet running."""
    one_at_a_time = threading.Lock()

    class Handler(BaseHTTPRequestHandler):
        timeout = 10  # a connection that says nothing is closed

        def answer(self) -> None:
            try:
                event = event_of(self.command, self.path, dict(self.headers), self._body())
            except Problem as problem:
                self._send(problem.answer())
                return
            with one_at_a_time:
                answer = api(event)
            self._send(answer)

        def _body(self) -> bytes:
            if self.headers.get("Transfer-Encoding"):
                raise _malformed("A body has a Content-Length here, and no Transfer-Encoding.")
            said = set(self.headers.get_all("Content-Length", ["0"]))
            if len(said) != 1 or not re.fullmatch("[0-9]{1,18}", text := said.pop().strip()):
                raise _malformed("Content-Length is one number: how many bytes the body has.")
            length = min(int(text), READ_BYTES_MAX)
            body = self.rfile.read(length)
            if len(body) < length:
                raise _malformed("The body is shorter than its Content-Length.")
            return body

        def _send(self, answer: Mapping[str, Any]) -> None:
            data = (answer.get("body") or "").encode()
            data = base64.b64decode(data) if answer.get("isBase64Encoded") else data
            self.send_response(answer["statusCode"])
            for name, value in answer["headers"].items():
                self.send_header(name, value)
            if data:  # HEAD and 204 have no body, and no length of one
                self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
            """What the server itself refuses, before there is a method and a path."""
            self.request_version = "HTTP/1.0"  # a line that could not be read named no other
            self._send(_malformed("This is not a request of HTTP/1.1.").answer())

        def __getattr__(self, name: str) -> Any:
            if name.startswith("do_"):  # every method: the API says itself which it does not have
                return self.answer
            raise AttributeError(name)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    return ThreadingHTTPServer((HOST, port), Handler)


def _malformed(detail: str) -> Problem:
    return Problem("malformed-request", f"{detail}")


def main(arguments: list[str], environ: Mapping[str, str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m service.api.local", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--memory", action="store_true", help="a table in memory; else the LEDGER_* environment")
    parser.add_argument("--port", type=int, default=PORT)
    parser.add_argument("--origin", action="append", default=[], help="pages of this origin may call it; repeatable")
    chosen = parser.parse_args(arguments)
    if chosen.memory:
        api = in_memory(try_it=True)
    else:
        watch, names = Watch.here("api", sys.stderr), Names.of(environ)
        api = Api(Settings.from_env(environ), watch, try_it=True, names=names)
    server = serve(cors.allowing(chosen.origin, api), chosen.port)
    print(f"http://{HOST}:{server.server_port}{TRY_IT} (Ctrl-C ends it)", flush=True)
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        server.server_close()


if __name__ == "__main__":
    main(sys.argv[1:], os.environ)
