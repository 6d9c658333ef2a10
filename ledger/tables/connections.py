"""HTTP connections to one endpoint, for FastClient.

Rule 1: If a connection cannot be made, its error means that nothing was sent; a later error leaves
that open.
Rule 2: A connection is kept only after a whole answer, and checked before its next request, because
servers close idle ones. So no request ever gets the answer of another.
Rule 3: A forked child has its own connections: two processes that read from one socket may take
each other's answers.
"""

import select
import socket
import ssl
import zlib
from collections import deque
from contextlib import suppress
from functools import partial
from typing import Any
from urllib.parse import urlsplit

from botocore import exceptions
from urllib3.util import wait_for_read

from ledger.core.clocks import PerProcess
from ledger.core.errors import InvalidSettings
from ledger.tables.answers import Answer, Answers, NotWhole
from ledger.tables.boto import CONNECT_TIMEOUT_S, POOL, READ_TIMEOUT_S


class Connection:
    """A connection that was made, and the answers that come over it."""

    def __init__(self, made: socket.socket) -> None:
        self._socket, self.answers = made, Answers(made.recv)
        self.send, self.close = made.sendall, made.close
        if hasattr(select, "poll"):  # Windows and gevent have none
            poll = select.poll()
            poll.register(made, select.POLLIN)
            self.is_readable: Any = partial(poll.poll, 0)
        else:
            self.is_readable = partial(wait_for_read, made, 0)


class Connections:
    """As many connections as requests at once; POOL stay open.

    ca_file: who may sign the endpoint's certificate. Raises InvalidSettings.
    """

    def __init__(self, endpoint_url: str, ca_file: str | None) -> None:
        url = urlsplit(endpoint_url)
        is_secure = url.scheme == "https"
        self._address = (url.hostname or "", url.port or (443 if is_secure else 80))
        try:
            self._tls = ssl.create_default_context(cafile=ca_file) if is_secure else None
        except OSError as error:
            raise InvalidSettings(
                f"The certificates of ca_bundle={ca_file} cannot be read: {error}. Nothing was "
                "written. Correct AWS_CA_BUNDLE or ca_bundle."
            ) from error
        self._endpoint = {"endpoint_url": f"{url.scheme}://{url.netloc}/"}
        self._idle = PerProcess(deque[Connection])

    def send(self, request: bytes) -> Answer:
        """The answer to a request. Raises botocore's errors of connections."""
        idle = self._idle.value
        connection, keeps = _standing(idle) or self._made(), False
        try:
            is_whole = _send_whole(connection, request)
            answer, keeps = connection.answers.next()
            keeps = keeps and is_whole
            if answer.status_code < 300 and not is_whole:
                raise NotWhole("the server answered before it had the whole request")
            checksum = answer.headers.get("x-amz-crc32")
            if checksum is not None and int(checksum) != zlib.crc32(answer.content):
                keeps = False
                raise NotWhole("the answer differs from its checksum")
            return answer
        except TimeoutError as error:
            raise exceptions.ReadTimeoutError(**self._endpoint, error=error) from error
        except (OSError, NotWhole, ValueError) as error:
            keeps = False
            raise exceptions.ConnectionClosedError(**self._endpoint, error=error) from error
        finally:
            if keeps and len(idle) < POOL:
                idle.append(connection)
            else:
                connection.close()

    def close(self) -> None:
        while connection := _standing(self._idle.value):
            connection.close()

    def _made(self) -> Connection:
        made = None
        try:
            made = socket.create_connection(self._address, CONNECT_TIMEOUT_S)
            made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            made.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            if self._tls is not None:
                made = self._tls.wrap_socket(made, server_hostname=self._address[0])
            made.settimeout(READ_TIMEOUT_S)
            return Connection(made)
        except BaseException as error:
            if made is not None:
                made.close()
            if isinstance(error, TimeoutError):
                raise exceptions.ConnectTimeoutError(**self._endpoint, error=error) from error
            if isinstance(error, ssl.SSLError):
                raise exceptions.SSLError(**self._endpoint, error=error) from error
            if isinstance(error, OSError | ValueError):
                raise exceptions.EndpointConnectionError(**self._endpoint, error=error) from error
            raise


def _send_whole(connection: Connection, request: bytes) -> bool:
    """Send a request; False where the server closes the connection before it has all of it."""
    try:
        connection.send(request)
    except (BrokenPipeError, ConnectionResetError):
        return False  # its answer may have come: 413 to a large request, say
    except TimeoutError as error:
        raise NotWhole("the server stopped reading the request") from error
    return True


def _standing(idle: deque[Connection]) -> Connection | None:
    """An idle connection that the server has not closed, or None."""
    with suppress(IndexError):  # another thread may have taken the last one
        while (connection := idle.pop()).is_readable():
            connection.close()
        return connection
    return None
