"""Who may ask a server on this computer: nobody whom a browser sends for a page of another site.

Rule 1: A server of ours listens on 127.0.0.1 alone. Any page in a browser of this computer still
reaches it.
Rule 2: Host names the loopback and the server's port. A foreign page can have its own name resolve
to 127.0.0.1 (DNS rebinding), and then the browser takes its requests for those of one site.
Rule 3: A request with the Origin of another server is refused; so is one of which the browser says
by Sec-Fetch-Site that another site asked for it, unless somebody followed a link.
Source of these headers: https://www.w3.org/TR/fetch-metadata/
"""

from __future__ import annotations

import hmac
from contextlib import suppress
from email.message import Message
from http.server import BaseHTTPRequestHandler

HOST = "127.0.0.1"
NAMES = (HOST, "localhost", "[::1]")
DRAINED_MAX = 1 << 20
"""Bytes of a refused body that are read, so the answer reaches who sent them."""


PAGE_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src "
        "'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}
"""Of a page that may load nothing from elsewhere."""


def authorities(port: int) -> frozenset[str]:
    """What Host may be at a server on this port."""
    return frozenset(f"{name}:{port}" for name in NAMES) | frozenset(NAMES if port == 80 else ())


def refusal(method: str, headers: Message, port: int) -> str | None:
    """Why a server on this port does not answer a request; None: it may."""
    own = authorities(port)
    asked = headers.get_all("Host", [])
    if len(asked) != 1 or asked[0].strip().lower() not in own:
        return f"This server is http://{HOST}:{port} only."
    if {origin.strip().lower() for origin in headers.get_all("Origin", [])} - {
        f"http://{name}" for name in own
    }:
        return "This server answers no page of another origin."
    site = headers.get("Sec-Fetch-Site", "none")
    navigates = method in ("GET", "HEAD") and headers.get("Sec-Fetch-Dest") == "document"
    return (
        None
        if site in ("none", "same-origin") or navigates
        else "This server answers no page of another site."
    )


class OfLoopback(BaseHTTPRequestHandler):
    """A handler that answers 403 to what `refusal` refuses.

    Where its server has a `token`, that is the first part of each path that it answers; `path` then
    lacks it.
    """

    def parse_request(self) -> bool:
        if not super().parse_request():
            return False
        port: int = self.server.server_port  # type: ignore[attr-defined]
        why = refusal(self.command, self.headers, port) or self._without_token()
        if why is not None:
            with suppress(ValueError):
                self.rfile.read(max(0, min(int(self.headers["Content-Length"] or 0), DRAINED_MAX)))
            self.send_error(403, explain=why.removesuffix("."))  # the page of http.server adds one
        return why is None

    def _without_token(self) -> str | None:
        """Take the token from the path. Why there is no answer, where the path has another one."""
        token: str = getattr(self.server, "token", "")
        if not token:
            return None
        # Rule 4: other users of this computer reach the loopback, too. A token in the path is in
        # each request of the page by itself, and no other port gets it, as it would get a cookie.
        given, slash, rest = self.path.removeprefix("/").partition("/")
        if not slash or not hmac.compare_digest(given.encode(), token.encode()):
            return (
                "Open the whole address that the command printed, up to the slash at its end: this "
                "one lacks its token."
            )
        self.path = f"/{rest}"
        return None
