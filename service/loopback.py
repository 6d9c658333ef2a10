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

from contextlib import suppress
from email.message import Message
from http.server import BaseHTTPRequestHandler

HOST = "127.0.0.1"
NAMES = (HOST, "localhost", "[::1]")
DRAINED_MAX = 1 << 20
"""Bytes of a refused body that are read, so the answer reaches who sent them."""


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
        return "Pages of another origin may not ask."
    site = headers.get("Sec-Fetch-Site", "none")
    navigates = method in ("GET", "HEAD") and headers.get("Sec-Fetch-Dest") == "document"
    return (
        None
        if site in ("none", "same-origin") or navigates
        else "Pages of another site may not ask."
    )


class OfLoopback(BaseHTTPRequestHandler):
    """A handler that answers 403 to what `refusal` refuses."""

    def parse_request(self) -> bool:
        if not super().parse_request():
            return False
        port: int = self.server.server_port  # type: ignore[attr-defined]
        why = refusal(self.command, self.headers, port)
        if why is not None:
            with suppress(ValueError):
                self.rfile.read(max(0, min(int(self.headers["Content-Length"] or 0), DRAINED_MAX)))
            self.send_error(403, explain=why)
        return why is None
