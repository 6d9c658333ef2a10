"""HTTP connections to one endpoint, on http.client, for FastClient.

Rule 1: If a connection cannot be made, its error means that nothing was sent; a later error leaves
that open.
Rule 2: A connection is kept only after a whole answer, and checked before its next request, because
servers close idle ones. So no request ever gets the answer of another.
Rule 3: A forked child has its own connections: two processes that read from one socket may take
each other's answers.
"""

import socket
import ssl
import zlib
from collections import deque
from contextlib import suppress
from functools import partial
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from botocore import exceptions
from urllib3.util import wait_for_read

from ledger.core.clocks import PerProcess
from ledger.tables.boto import CONNECT_TIMEOUT_S, POOL, READ_TIMEOUT_S


class Answer(NamedTuple):
    """An HTTP response, with the names that botocore's handlers use. headers: in lower case."""

    status_code: int
    headers: dict[str, str]
    content: bytes


class Connections:
    """As many connections as requests at once; POOL stay open.

    ca_file: who may sign the endpoint's certificate.
    """

    def __init__(self, endpoint_url: str, ca_file: str | None) -> None:
        url = urlsplit(endpoint_url)
        tls = (
            {"context": ssl.create_default_context(cafile=ca_file)} if url.scheme == "https" else {}
        )
        kind: Any = HTTPSConnection if tls else HTTPConnection
        self._new = partial(kind, url.hostname, url.port, timeout=CONNECT_TIMEOUT_S, **tls)
        self._endpoint = {"endpoint_url": f"{url.scheme}://{url.netloc}/"}
        self._idle = PerProcess(deque[socket.socket])

    def send(self, headers: dict[str, str], body: bytes) -> Answer:
        """The answer to a request. Raises botocore's errors of connections."""
        head = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        if len(head.splitlines()) != len(headers):
            raise exceptions.HTTPClientError(error="a header of more than one line")
        idle = self._idle.value
        connection, whole = _standing(idle) or self._made(), False
        try:
            sent = f"POST / HTTP/1.1\r\n{head}content-length: {len(body)}\r\n\r\n".encode() + body
            # in one packet: `HTTPConnection.request` sends two, a tenth of an add's CPU
            connection.sendall(sent)
            with HTTPResponse(connection, method="POST") as response:
                response.begin()
                answered = {name.lower(): value for name, value in response.headers.items()}
                answer = Answer(response.status, answered, response.read())
            if (checksum := answered.get("x-amz-crc32")) and int(checksum) != zlib.crc32(
                answer.content
            ):
                raise HTTPException("the answer differs from its checksum")
            whole = not response.will_close
            return answer
        except TimeoutError as error:
            raise exceptions.ReadTimeoutError(**self._endpoint, error=error) from error
        except (OSError, HTTPException, ValueError) as error:
            raise exceptions.ConnectionClosedError(**self._endpoint, error=error) from error
        finally:
            if whole and len(idle) < POOL:
                idle.append(connection)
            else:
                connection.close()

    def close(self) -> None:
        while connection := _standing(self._idle.value):
            connection.close()

    def _made(self) -> socket.socket:
        connection = self._new()
        try:
            connection.connect()
        except TimeoutError as error:
            raise exceptions.ConnectTimeoutError(**self._endpoint, error=error) from error
        except ssl.SSLError as error:
            raise exceptions.SSLError(**self._endpoint, error=error) from error
        except (OSError, ValueError) as error:
            raise exceptions.EndpointConnectionError(**self._endpoint, error=error) from error
        made: socket.socket = connection.sock
        made.settimeout(READ_TIMEOUT_S)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        return made


def _standing(idle: deque[socket.socket]) -> socket.socket | None:
    """An idle connection that the server has not closed, or None."""
    with suppress(IndexError):  # another thread may have taken the last one
        while wait_for_read(connection := idle.pop(), 0):
            connection.close()
        return connection
    return None
