"""The HTTP answers that come over one connection, read by httptools, for FastClient.

Rule 1: An answer counts only when it is whole and alone. Any other raises, and says nothing of
whether the request was applied.
Rule 2: Every answer has an end: its head by bytes, all of it by time.
Rule 3: httptools calls builtins alone. It would take what a signal raises in a function of ours,
such as KeyboardInterrupt, for an error of the answer.
"""

from collections.abc import Callable
from time import monotonic
from types import SimpleNamespace
from typing import Any, NamedTuple

from ledger.core.errors import InvalidSettings

httptools: Any
try:
    import httptools
except ModuleNotFoundError:
    httptools = None

HEAD_MAX, HEADERS_MAX = 65_536, 100
"""Bytes before the body, those of interim answers included; headers. As http.client's."""
ANSWER_S_MAX = 60
RECEIVE_MAX = 65_536
BLANK_LINE = b"\r\n\r\n"
_ENDS_BEFORE_THE_CONNECTION = {"content-length", "transfer-encoding"}


class Answer(NamedTuple):
    """An HTTP response, with the names that botocore's handlers use. headers: in lower case."""

    status_code: int
    headers: dict[str, str]
    content: bytes


class NotWhole(Exception):
    """What came is no whole answer, or more than one."""


def check_installed() -> None:
    """Raises InvalidSettings without httptools."""
    if httptools is None:
        raise InvalidSettings(
            "FastClient needs httptools, which is not installed. Nothing was written. Run pip "
            'install "exact-counter[fast]", or in a clone pip install ".[fast]"; or use a boto3 '
            "client."
        )


class Answers:
    """Reads one answer after the other. receive(bytes_max) returns b"" where the connection
    ended.
    """

    def __init__(self, receive: Callable[[int], bytes]) -> None:
        self._receive, self._ends_s = receive, 0.0
        # an empty list says that it happened: a message began, a message is complete
        self._not_begun, self._incomplete = [True], [True]
        self._headers: dict[bytes, bytes] = {}
        self._content: list[bytes] = []
        self._parser = httptools.HttpResponseParser(
            SimpleNamespace(
                on_message_begin=self._not_begun.clear,
                on_header=self._headers.__setitem__,
                on_body=self._content.append,
                on_message_complete=self._incomplete.clear,
            )
        )

    def next(self) -> tuple[Answer, bool]:
        """The answer to the request just sent, and whether the connection may carry another.

        Raises NotWhole, TimeoutError, and what `receive` raises.
        """
        self._ends_s = monotonic() + ANSWER_S_MAX
        status, data = self._head()
        headers = {
            name.decode("latin-1").lower(): value.decode("latin-1")
            for name, value in self._headers.items()
        }
        # while the answer is incomplete, the parser knows; one without a body ends its connection
        keeps = bool(self._incomplete) and self._parser.should_keep_alive()
        self._not_begun.append(True)
        self._feed(data)
        while self._incomplete:
            if data := self._more():
                self._feed(data)
            elif headers.keys().isdisjoint(_ENDS_BEFORE_THE_CONNECTION):
                break
            else:
                raise NotWhole("the answer was cut off")
        if not self._not_begun:
            raise NotWhole("more than one answer came")
        content = b"".join(self._content)
        self._content.clear()  # an idle connection keeps no content
        return Answer(status, headers, content), keeps

    def _head(self) -> tuple[int, bytes]:
        """Read to the end of the answer's head.

        Returns the status, and the bytes that came after the head.
        """
        data, left = b"", HEAD_MAX
        while True:
            head, blank, rest = data.partition(BLANK_LINE)
            if len(head) > left:
                raise NotWhole(f"a head of more than {HEAD_MAX} bytes")
            if blank:
                status = self._status(head + blank)
                if status >= 200:
                    return status, rest
                # of an interim answer, such as 100 Continue, nothing is kept
                data, left = rest, left - len(head)
            elif more := self._more():
                data += more
            else:
                raise NotWhole("no answer, or a part of its head")

    def _status(self, head: bytes) -> int:
        self._headers.clear()
        self._not_begun[:] = self._incomplete[:] = [True]
        self._feed(head)
        status: int = self._parser.get_status_code()
        is_http = head.startswith(b"HTTP/1.") and not self._not_begun
        if not is_http or status < 100 or len(self._headers) > HEADERS_MAX:
            raise NotWhole("the head is not one of an answer")
        return status

    def _feed(self, data: bytes) -> None:
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
            raise NotWhole(str(error)) from error

    def _more(self) -> bytes:
        if monotonic() > self._ends_s:
            raise TimeoutError(f"the answer took more than {ANSWER_S_MAX} s")
        return self._receive(RECEIVE_MAX)
