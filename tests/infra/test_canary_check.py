"""What a deployment asks of a Region's canary, and for how long."""

import io
import json
from typing import Any

import pytest
from botocore.exceptions import ClientError, ReadTimeoutError

from infra.canary import POLL_S, CanaryCheck, CheckFailed

HOME = "eu-west-1"
BUSY = ClientError({"Error": {"Code": "TooManyRequestsException", "Message": "Rate Exceeded"}}, "Invoke")
MISSING = ClientError({"Error": {"Code": "ResourceNotFoundException", "Message": "Function not found"}}, "Invoke")


class Canary:
    """Answers what it is given, and then the last of it again and again; time goes by while one waits."""

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)
        self.asked: list[tuple[str, str]] = []
        self.now_s = 0.0

    def client(self, service: str, region: str) -> Any:
        assert service == "lambda"
        self.region = region
        return self

    def invoke(self, *, FunctionName: str, Payload: bytes) -> Any:
        assert json.loads(Payload) == {}
        self.asked.append((FunctionName, self.region))
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        failed = {"FunctionError": "Unhandled"} if isinstance(answer, dict) and "errorMessage" in answer else {}
        return {"StatusCode": 200, "Payload": io.BytesIO(json.dumps(answer).encode()), **failed}

    def sleep(self, seconds: float) -> None:
        self.now_s += seconds

    def check(self) -> float:
        ask = CanaryCheck("ledger-dev-canary", 75, self.client, clock=lambda: self.now_s, sleep=self.sleep)
        assert ask.bound_s == 270
        return ask(HOME)


def ran(newest_ms: int, folded_ms: int | None, *, read: bool = True) -> dict[str, Any]:
    told = {"region": HOME, "value": 32, "added": 32, "read": read, "lag_ms": 0}
    return told | {"newest_ms": newest_ms, "folded_ms": folded_ms}


def test_it_is_asked_until_what_it_added_first_is_folded_whatever_it_adds_meanwhile() -> None:
    canary = Canary(ran(1_000, None), ran(11_000, 999), ran(21_000, 1_000))
    assert canary.check() == 2 * POLL_S
    assert canary.asked == [("ledger-dev-canary", HOME)] * 3


@pytest.mark.parametrize("folded_ms", [None, 999])
def test_what_is_never_folded_fails_when_the_time_is_over(folded_ms: int | None) -> None:
    canary = Canary(ran(1_000, folded_ms))
    with pytest.raises(CheckFailed, match=r"after 270 s: .* is not folded \(canary-late\)"):
        canary.check()
    assert canary.now_s <= 270
    assert len(canary.asked) == 28


def test_another_value_than_was_added_fails_at_once() -> None:
    canary = Canary(ran(1_000, 1_000, read=False))
    with pytest.raises(CheckFailed, match="added 32 changes and read another difference"):
        canary.check()
    assert len(canary.asked) == 1


FAILURES = [
    (BUSY, "Rate Exceeded"),
    (MISSING, "Function not found"),
    (ReadTimeoutError(endpoint_url="https://lambda"), "timeout"),
    ({"errorMessage": "not authorized to perform dynamodb:PutItem"}, "canary-errors.*PutItem"),
    ({"errorType": "none"}, "no canary's answer"),
    ("hello", "no canary's answer"),
    (None, "no canary's answer"),
    (ran(1, None) | {"folded_ms": "never"}, "no canary's answer"),
]


@pytest.mark.parametrize(("failure", "says"), FAILURES)
def test_what_fails_is_asked_again_and_told_when_the_time_is_over(failure: Any, says: str) -> None:
    assert Canary(failure, ran(1_000, None), ran(11_000, 1_000)).check() == 2 * POLL_S
    with pytest.raises(CheckFailed, match=f"after 270 s: the canary of {HOME}.*{says}"):
        Canary(failure).check()


def test_what_fails_between_keeps_what_was_added_first() -> None:
    assert Canary(ran(1_000, None), BUSY, ran(21_000, 1_000)).check() == 2 * POLL_S
