"""HTTP connections to one endpoint, on http.client: what FastClient sends by.

Rule 1: One that is not made fails with what says that nothing was sent; whatever comes later may have been sent.
Rule 2: A connection is kept only after a whole answer, and looked at before its next request, because servers close
what is idle. So no answer is ever that of another request.
Rule 3: A process has its own: two that write to one socket may take each other's answers. A parent's are kept and not
closed, because its threads use them.
"""

import os
import socket
import ssl
import zlib
from collections import deque
from functools import partial
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from botocore import exceptions
from urllib3.util import wait_for_read

from ledger.dynamo.client import CONNECT_TIMEOUT_S, POOL, READ_TIMEOUT_S

_NOT_MADE = (  # what a connection that was not made failed with; the first that fits
    (TimeoutError, exceptions.ConnectTimeoutError),
    (ssl.SSLError, exceptions.SSLError),
    (OSError, exceptions.EndpointConnectionError),
)
_BROKEN = ((TimeoutError, exceptions.ReadTimeoutError), ((OSError, HTTPException), exceptions.ConnectionClosedError))


class Answer(NamedTuple):
    """An HTTP response, with the names that botocore's handlers use. headers: in lower case."""

    status_code: int
    headers: dict[str, str]
    content: bytes


class Connections:
    """As many as there are requests at once; POOL stay open. ca_file: of who may sign the endpoint's certificate."""

    def __init__(self, endpoint_url: str, ca_file: str | None) -> None:
        url = urlsplit(endpoint_url)
        kind: Any = HTTPConnection
        if url.scheme == "https":
            kind = partial(HTTPSConnection, context=ssl.create_default_context(cafile=ca_file))
        self._new = partial(kind, url.hostname, url.port, timeout=CONNECT_TIMEOUT_S)
        self._url = f"{url.scheme}://{url.netloc}/"
        self._idle: dict[int, deque[socket.socket]] = {}

    def send(self, headers: dict[str, str], body: bytes) -> Answer:
        """Raises botocore's errors of connections."""
        idle = self._idle.setdefault(os.getpid(), deque())
        head = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        connection, whole = _standing(idle) or self._made(), False
        try:
            if len(head.splitlines()) != len(headers):
                raise ValueError("a header of more than one line")
            more = f"accept-encoding: identity\r\ncontent-length: {len(body)}\r\n"
            connection.sendall(f"POST / HTTP/1.1\r\n{head}{more}\r\n".encode() + body)
            with HTTPResponse(connection, method="POST") as response:
                response.begin()
                answered = {name.lower(): value for name, value in response.headers.items()}
                answer = Answer(response.status, answered, response.read())
            if answered.get("x-amz-crc32", "").isdigit() and int(answered["x-amz-crc32"]) != zlib.crc32(answer.content):
                raise HTTPException("the answer differs from its checksum")
            whole = not response.will_close
            return answer
        except Exception as error:
            raise self._failure(_BROKEN, error) from error
        finally:
            if whole and len(idle) < POOL:
                idle.append(connection)
            else:
                connection.close()

    def close(self) -> None:
        idle = self._idle.setdefault(os.getpid(), deque())
        while idle:
            idle.pop().close()

    def _made(self) -> socket.socket:
        connection = self._new()
        try:
            connection.connect()
            connection.sock.settimeout(READ_TIMEOUT_S)
            connection.sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        except Exception as error:
            connection.close()
            raise self._failure(_NOT_MADE, error) from error
        made: socket.socket = connection.sock
        return made

    def _failure(self, kinds: Any, error: Exception) -> Exception:
        kind: Any = next((kind for broken, kind in kinds if isinstance(error, broken)), exceptions.HTTPClientError)
        failure: Exception = kind(endpoint_url=self._url, error=error)
        return failure


def _standing(idle: deque[socket.socket]) -> socket.socket | None:
    """An idle connection of which the server has not sent its end."""
    while True:
        try:
            connection = idle.pop()
        except IndexError:  # another thread may have taken the last one
            return None
        if not wait_for_read(connection, 0):
            return connection
        connection.close()
