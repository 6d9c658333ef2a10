"""The head of a request that FastClient sends, signed by version 4.

Rule 1: What many requests share is made once: the day's key, and the texts of a second. Each is
kept with all that it depends on, in one value, so a thread has either the old or the new one.
Rule 2: The time is read once a head: its day is the day of its key, also at midnight.
Source: https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html
"""

import hmac
import time
from hashlib import sha256
from typing import Any, NamedTuple

from botocore import exceptions


class Day(NamedTuple):
    """The key of a day, as a MAC that has no text yet."""

    secret: str
    date: str
    mac: hmac.HMAC


class Second(NamedTuple):
    """What all heads of a second have in common. The names are those of AWS's page."""

    now_s: int
    given: Any
    mac: hmac.HMAC
    head: str
    authorization: str
    canonical: str
    signed_headers: str
    string_to_sign: str


class Signer:
    """host: the host header. user_agent: in each head, not signed."""

    def __init__(self, region: str, host: str, user_agent: str) -> None:
        self._region, self._host = region, _one_line(host)
        self._rest = _one_line(user_agent)
        self._day: Day | None = None
        self._second: Second | None = None

    def head(self, given: Any, operation: str, body: bytes) -> bytes:
        """given: frozen credentials. Raises HTTPClientError for some that fit into no header."""
        now_s, second = int(time.time()), self._second
        if second is None or second.now_s != now_s or second.given != given:
            second = self._second = self._made(given, now_s)
        canonical = (
            f"{second.canonical}{operation}\n\n{second.signed_headers}\n{sha256(body).hexdigest()}"
        )
        mac = second.mac.copy()
        mac.update(f"{second.string_to_sign}{sha256(canonical.encode()).hexdigest()}".encode())
        return (
            f"{second.head}{operation}\r\n{second.authorization}{mac.hexdigest()}\r\n"
            f"accept-encoding: identity\r\nuser-agent: {self._rest}\r\n"
            f"content-length: {len(body)}\r\n\r\n"
        ).encode()

    def _made(self, given: Any, now_s: int) -> Second:
        now = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(now_s))
        date = now[:8]
        scope = f"{date}/{self._region}/dynamodb/aws4_request"
        headers = {
            "content-type": "application/x-amz-json-1.0",
            "host": self._host,
            "x-amz-date": now,
        }
        if given.token:
            headers["x-amz-security-token"] = _one_line(given.token)
        target = "DynamoDB_20120810."
        credential = f"Credential={_one_line(given.access_key)}/{scope}"
        signed_headers = ";".join((*headers, "x-amz-target"))
        lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        to_sign = "".join(f"{name}:{value}\n" for name, value in headers.items())
        return Second(
            now_s=now_s,
            given=given,
            mac=self._mac(given.secret_key, date),
            head=f"POST / HTTP/1.1\r\n{lines}x-amz-target: {target}",
            authorization=(
                f"authorization: AWS4-HMAC-SHA256 {credential}, SignedHeaders={signed_headers}, "
                "Signature="
            ),
            canonical=f"POST\n/\n\n{to_sign}x-amz-target:{target}",
            signed_headers=signed_headers,
            string_to_sign=f"AWS4-HMAC-SHA256\n{now}\n{scope}\n",
        )

    def _mac(self, secret: str, date: str) -> hmac.HMAC:
        day = self._day
        if day is None or (day.secret, day.date) != (secret, date):
            key = f"AWS4{secret}".encode()
            for part in (date, self._region, "dynamodb", "aws4_request"):
                key = hmac.digest(key, part.encode(), "sha256")
            day = self._day = Day(secret, date, hmac.new(key, digestmod=sha256))
        return day.mac


def _one_line(value: str) -> str:
    """A header's value. Raises HTTPClientError for more than one line."""
    if len(value.splitlines()) > 1 or value.strip() != value:
        raise exceptions.HTTPClientError(error="a header of more than one line")
    return value
