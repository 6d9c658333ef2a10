"""A Region's API, as a careful caller uses it: requests are signed as API Gateway's IAM authorizer
wants them, and sent again, later and later, until the answer says what happened (docs/http-api.md).
"""

import json
from typing import Any
from urllib.parse import quote, urlencode

import boto3
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from urllib3 import BaseHTTPResponse, PoolManager, Retry

from ledger.client.message import time_text
from ledger.core.values import Change

AGAIN = Retry(
    8,
    allowed_methods=None,
    status_forcelist={429, *range(500, 600)},
    backoff_factor=0.25,
    backoff_max=8,
    raise_on_status=False,
)


class Client:
    """Calls one Region's API.

    What returns a dictionary raises RuntimeError where the answer is a problem.
    """

    def __init__(self, url: str, region: str) -> None:
        self._url = url
        self._http = PoolManager(timeout=60, retries=AGAIN, maxsize=8)
        credentials: Any = boto3.session.Session().get_credentials()
        self._signer = SigV4Auth(credentials, "execute-api", region)

    def add(self, change: Change) -> BaseHTTPResponse:
        """One change, first asked for in its Region."""
        assert change.at is not None
        body = {"change": change.change, "at": time_text(change.at), "region": change.region}
        headers = {"Idempotency-Key": str(change.idempotency_key)}
        return self._post(change.counter, "deltas", body, headers)

    def hold(self, counter: str, amount: int, expires_s: int, key: str, at: str) -> dict[str, Any]:
        """A hold that is granted."""
        body = {"amount": amount, "expires_s": expires_s, "at": at}
        return _good(self._post(counter, "holds", body, {"Idempotency-Key": key}))

    def end(self, hold: dict[str, Any], how: str, **more: int) -> BaseHTTPResponse:
        """`capture`, perhaps with an `amount`, or `release`."""
        return self._post(hold["counter"], f"holds/{hold['id']}/{how}", more, {})

    def get(self, what: str, counter: str, **more: str) -> dict[str, Any]:
        """`counters`: a counter as it is read now; `standing`: what of its limit is left."""
        return _good(
            self._call(
                "GET", f"/{what}?{urlencode({'counter': counter, **more}, quote_via=quote)}", "", {}
            )
        )

    def _post(
        self, counter: str, what: str, body: dict[str, Any], headers: dict[str, str]
    ) -> BaseHTTPResponse:
        data = json.dumps({"counter": counter, **body})
        headers = {"Content-Type": "application/json", **headers}
        return self._call("POST", f"/counters/{quote(counter, safe='')}/{what}", data, headers)

    def _call(self, method: str, path: str, data: str, headers: dict[str, str]) -> BaseHTTPResponse:
        request = AWSRequest(method=method, url=self._url + path, data=data, headers=headers)
        self._signer.add_auth(request)
        return self._http.request(
            method, self._url + path, body=data or None, headers=dict(request.headers)
        )


def _good(answer: BaseHTTPResponse) -> dict[str, Any]:
    found: dict[str, Any] = answer.json()
    if answer.status >= 300:
        raise RuntimeError(f"the API answered {answer.status}: {found}")
    return found
