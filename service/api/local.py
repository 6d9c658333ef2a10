"""The API on this computer: `python -m service.api.local` listens on 127.0.0.1.

It runs the code of the function.

Rule 1: Loopback only, because nothing here checks who calls; and `loopback` refuses what a foreign
page sends.
Rule 2: Many connections, and one request at a time, as in a Lambda.
Rule 3: A request becomes the event that API Gateway's HTTP API would make of it, with the path
decoded.
"""

import argparse
import base64
import os
import re
import sys
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from http.server import ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote

from ledger import Settings
from ledger.core.loopback import HOST, OfLoopback
from service.api.admission import BODY_BYTES_MAX
from service.api.app import TRY_IT, Api
from service.observe import Watch
from service.writable import prefixes_of

PORT = 8080
Answers = Callable[[dict[str, Any]], dict[str, Any]]


def event_of(
    method: str, target: str, headers: Mapping[str, str], body: bytes | None
) -> dict[str, Any]:
    """The event (payload format 2.0) of a request."""
    raw_path, _, query = target.partition("?")
    # as API Gateway does: admission.py has the source
    path = unquote(unquote(raw_path).partition("?")[0])
    return {
        "version": "2.0",
        "rawPath": path,
        "rawQueryString": query,
        "headers": {name.lower(): value for name, value in headers.items()},
        "requestContext": {
            "http": {"method": method, "path": path},
            "requestId": "local",
            "stage": "$default",
        },
        "body": base64.b64encode(body or b"").decode(),
        "isBase64Encoded": True,
    }


class Handler(OfLoopback):
    api: Answers
    one_at_a_time: threading.Lock
    timeout = 10  # a connection that says nothing is closed

    def answer(self) -> None:
        said = self.headers["Content-Length"] or ""
        # a body in chunks counts as none
        length = int(said) if re.fullmatch("[0-9]{1,18}", said) else 0
        # enough for the API to say that it is too large
        body = self.rfile.read(min(length, BODY_BYTES_MAX + 1))
        with self.one_at_a_time:
            answer = type(self).api(event_of(self.command, self.path, dict(self.headers), body))
        data = (answer["body"] or "").encode()
        self.send_response(answer["statusCode"])
        for name, value in answer["headers"].items():
            self.send_header(name, value)
        if data:  # HEAD and 204 have no body, and no length of one
            self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("do_"):  # every method: the API says itself which it does not have
            return self.answer
        raise AttributeError(name)

    def log_message(self, format: str, *args: Any) -> None:
        pass


def serve(api: Answers, port: int = PORT) -> ThreadingHTTPServer:
    """A server that is bound to loopback and not yet running."""
    handler = type(
        "OfApi", (Handler,), {"api": staticmethod(api), "one_at_a_time": threading.Lock()}
    )
    return ThreadingHTTPServer((HOST, port), handler)


def main(arguments: list[str], environ: Mapping[str, str]) -> None:
    parser = argparse.ArgumentParser(
        prog="python -m service.api.local", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument(
        "--memory", action="store_true", help="a table in memory, not that of LEDGER_*"
    )
    parser.add_argument(
        "--port", type=int, default=PORT, help=f"{PORT} by default; 0: any free one"
    )
    chosen = parser.parse_args(arguments)
    watch = Watch.here("api", sys.stderr)
    if chosen.memory:
        api = Api.in_memory(watch, try_it=True)
    else:
        api = Api(Settings.from_env(environ), watch, try_it=True, prefixes=prefixes_of(environ))
    server = serve(api, chosen.port)
    print(f"http://{HOST}:{server.server_port}{TRY_IT} (Ctrl-C ends it)", flush=True)
    with suppress(KeyboardInterrupt):
        server.serve_forever()


if __name__ == "__main__":
    main(sys.argv[1:], os.environ)
