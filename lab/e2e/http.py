"""A real HTTP client (httpx) whose requests are signed as API Gateway's IAM authorizer wants them.

Rule 1: A careful caller, as docs/http-api.md asks for one: the same request again, later and later, until the answer
says what happened.
"""

import json
import time
from typing import Any
from urllib.parse import quote

import httpx
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from lab.e2e.deployed import CREDENTIALS

TIMEOUT_S = 60
TRIES_MAX, PAUSE_S, PAUSE_MAX_S = 9, 0.25, 8.0


class Client:
    """Calls one Region's API."""

    def __init__(self, url: str, region: str) -> None:
        self._url = url
        self._http = httpx.Client(timeout=TIMEOUT_S, trust_env=False)
        secrets = CREDENTIALS["AWS_ACCESS_KEY_ID"], CREDENTIALS["AWS_SECRET_ACCESS_KEY"]
        self._signer = SigV4Auth(Credentials(*secrets), "execute-api", region)

    def add(self, counter: str, change: int, key: str, at: str, home: str) -> httpx.Response:
        """One change, first asked for in `home`."""
        body = {"counter": counter, "change": change, "at": at, "region": home}
        return self._call("POST", f"/counters/{quote(counter, safe='')}/deltas", body, {"Idempotency-Key": key})

    def balance(self, counter: str) -> dict[str, Any]:
        """A counter as it is read now. Raises httpx.HTTPStatusError."""
        path = f"/counters?counter={quote(counter, safe='')}"
        said: dict[str, Any] = self._call("GET", path).raise_for_status().json()
        return said

    def hold(self, counter: str, amount: int, expires_s: int, key: str, at: str) -> dict[str, Any]:
        """A hold that is granted. Raises httpx.HTTPStatusError."""
        body = {"counter": counter, "amount": amount, "expires_s": expires_s, "at": at}
        answer = self._call("POST", f"/counters/{quote(counter, safe='')}/holds", body, {"Idempotency-Key": key})
        said: dict[str, Any] = answer.raise_for_status().json()
        return said

    def end(self, hold: dict[str, Any], how: str, **more: int) -> httpx.Response:
        """`capture`, perhaps with an `amount`, or `release`."""
        path = f"/counters/{quote(hold['counter'], safe='')}/holds/{hold['id']}/{how}"
        return self._call("POST", path, {"counter": hold["counter"], **more})

    def standing(self, counter: str) -> dict[str, Any]:
        """What of a limit is left. Raises httpx.HTTPStatusError."""
        said: dict[str, Any] = (
            self._call("GET", f"/standing?counter={quote(counter, safe='')}").raise_for_status().json()
        )
        return said

    def history(self, counter: str) -> list[dict[str, Any]]:
        """Every entry of a counter's history, page by page."""
        entries: list[dict[str, Any]] = []
        following = ""
        while True:
            path = f"/history?counter={quote(counter, safe='')}&limit=100{following}"
            page = self._call("GET", path).raise_for_status().json()
            entries += page["entries"]
            if page["next"] is None:
                return entries
            following = f"&cursor={quote(page['next'])}"

    def _call(
        self, method: str, path: str, body: object = None, headers: dict[str, str] | None = None
    ) -> httpx.Response:
        for attempt in range(TRIES_MAX - 1):
            try:
                answer = self._send(method, path, body, headers or {})
            except httpx.TransportError:
                pass
            else:
                if answer.status_code < 500 and answer.status_code != httpx.codes.TOO_MANY_REQUESTS:
                    return answer
            time.sleep(min(PAUSE_MAX_S, PAUSE_S * 2**attempt))
        return self._send(method, path, body, headers or {})

    def _send(self, method: str, path: str, body: object, headers: dict[str, str]) -> httpx.Response:
        url = self._url + path
        data = "" if body is None else json.dumps(body)
        sent = {"Content-Type": "application/json", **headers} if data else {}
        request = AWSRequest(method=method, url=url, data=data, headers=sent)
        self._signer.add_auth(request)
        return self._http.request(method, url, content=data or None, headers=dict(request.headers))
