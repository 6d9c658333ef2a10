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

TIMEOUT_S = 60
TRIES_MAX, PAUSE_S, PAUSE_MAX_S = 9, 0.25, 8.0


class Client:
    """Calls one Region's API. What returns a dictionary raises httpx.HTTPStatusError."""

    def __init__(self, url: str, region: str) -> None:
        self._url = url
        self._http = httpx.Client(timeout=TIMEOUT_S, trust_env=False)
        self._signer = SigV4Auth(Credentials("embedded", "embedded"), "execute-api", region)

    def add(self, counter: str, change: int, key: str, at: str, home: str) -> httpx.Response:
        """One change, first asked for in `home`."""
        body = {"counter": counter, "change": change, "at": at, "region": home}
        return self._post(counter, "deltas", body, {"Idempotency-Key": key})

    def hold(self, counter: str, amount: int, expires_s: int, key: str, at: str) -> dict[str, Any]:
        """A hold that is granted."""
        body = {"counter": counter, "amount": amount, "expires_s": expires_s, "at": at}
        held: dict[str, Any] = self._post(counter, "holds", body, {"Idempotency-Key": key}).raise_for_status().json()
        return held

    def end(self, hold: dict[str, Any], how: str, **more: int) -> httpx.Response:
        """`capture`, perhaps with an `amount`, or `release`."""
        return self._post(hold["counter"], f"holds/{hold['id']}/{how}", {"counter": hold["counter"], **more})

    def get(self, what: str, counter: str, **more: str) -> dict[str, Any]:
        """`counters`: a counter as it is read now; `standing`: what of its limit is left; a page of its `history`."""
        query = "&".join(f"{name}={quote(value, safe='')}" for name, value in {"counter": counter, **more}.items())
        found: dict[str, Any] = self._call("GET", f"/{what}?{query}").raise_for_status().json()
        return found

    def history(self, counter: str) -> list[dict[str, Any]]:
        """Every entry of a counter's history, page by page."""
        page = self.get("history", counter, limit="100")
        entries: list[dict[str, Any]] = page["entries"]
        while page["next"] is not None:
            page = self.get("history", counter, limit="100", cursor=page["next"])
            entries += page["entries"]
        return entries

    def _post(self, counter: str, what: str, body: object, headers: dict[str, str] | None = None) -> httpx.Response:
        return self._call("POST", f"/counters/{quote(counter, safe='')}/{what}", json.dumps(body), headers)

    def _call(self, method: str, path: str, data: str = "", headers: dict[str, str] | None = None) -> httpx.Response:
        sent = {"Content-Type": "application/json", **(headers or {})} if data else {}
        for attempt in range(TRIES_MAX):
            request = AWSRequest(method=method, url=self._url + path, data=data, headers=dict(sent))
            self._signer.add_auth(request)
            signed = dict(request.headers)
            try:
                answer = self._http.request(method, self._url + path, content=data or None, headers=signed)
                if (answer.status_code < 500 and answer.status_code != 429) or attempt + 1 == TRIES_MAX:
                    break
            except httpx.TransportError:
                if attempt + 1 == TRIES_MAX:
                    raise
            time.sleep(min(PAUSE_MAX_S, PAUSE_S * 2**attempt))
        return answer
