"""A Region's API, as a careful caller uses it: requests are signed as API Gateway's IAM authorizer wants them, and sent
again, later and later, until the answer says what happened (docs/http-api.md).
"""

import json
from typing import Any
from urllib.parse import quote, urlencode

from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from urllib3 import BaseHTTPResponse, PoolManager, Retry

AGAIN = Retry(
    8,
    allowed_methods=None,
    status_forcelist={429, *range(500, 600)},
    backoff_factor=0.25,
    backoff_max=8,
    raise_on_status=False,
)


class Client:
    """Calls one Region's API."""

    def __init__(self, url: str, region: str) -> None:
        self._url = url
        self._http = PoolManager(timeout=60, retries=AGAIN, maxsize=8)
        self._signer = SigV4Auth(Credentials("embedded", "embedded"), "execute-api", region)

    def add(self, counter: str, change: int, key: str, at: str, home: str) -> BaseHTTPResponse:
        """One change, first asked for in `home`."""
        data = json.dumps({"counter": counter, "change": change, "at": at, "region": home})
        headers = {"Content-Type": "application/json", "Idempotency-Key": key}
        return self._call("POST", f"/counters/{quote(counter, safe='')}/deltas", data, headers)

    def get(self, what: str, counter: str) -> dict[str, Any]:
        """`counters`: a counter as it is read now; `standing`: what of its limit is left. Raises RuntimeError."""
        answer = self._call("GET", f"/{what}?{urlencode({'counter': counter}, quote_via=quote)}", "", {})
        found: dict[str, Any] = answer.json()
        if answer.status >= 300:
            raise RuntimeError(f"the API answered {answer.status}: {found}")
        return found

    def _call(self, method: str, path: str, data: str, headers: dict[str, str]) -> BaseHTTPResponse:
        request = AWSRequest(method=method, url=self._url + path, data=data, headers=headers)
        self._signer.add_auth(request)
        return self._http.request(method, self._url + path, body=data or None, headers=dict(request.headers))
