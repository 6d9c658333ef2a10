"""Sending operations of DynamoDB, as steps that a caller does, blocking or awaited: both get the
same answers.

Rule 1: this file sends nothing and waits for nothing: a step says what to send, how long to wait,
what to do at once.
Rule 2: a response comes back in one place, `Endpoint.send`. There a failure becomes one of our
errors (`failures.py`), and the cost is counted (`consumed.py`).
Rule 3: after a conflict or throttling it sends again, a bounded number of times, with jitter and
the same ClientRequestToken, because the SDK never does that for a cancelled transaction.
Source: https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_TransactWriteItems.html
"""

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, NamedTuple

from botocore.exceptions import BotoCoreError

from ledger.core import errors
from ledger.core.cost import NOTHING, Meter
from ledger.core.errors import InvalidInput, LedgerError, shown
from ledger.core.requests import AtOnce, Doubt, Result, answered
from ledger.tables import consumed, failures
from ledger.tables.ask import Operation

# how often a request is sent that meets conflicts or throttling, the SDK's own retries aside
TRIES_MAX = 6
PAUSE_BASE_S = 0.05


class Send(NamedTuple):
    """Send an operation to a Region.

    Answer: the response; botocore's failure is raised at the `yield`.
    """

    region: str
    operation: Operation


class Wait(NamedTuple):
    """Wait. Answer: None, when the time is over."""

    seconds: float


Step = Send | Wait | AtOnce
Steps = Generator[Step, Any, Result]


def method_of(clients: Callable[[str], Any], send: Send) -> Callable[..., Any]:
    """The method of a Region's client for an operation.

    Raises NotAllowed, Unavailable and InvalidInput.
    """
    try:
        client = clients(send.region)
    except BotoCoreError as failure:  # such as a profile that does not exist
        raise failures.no_client(failure) from failure
    if client is None:
        raise errors.Unavailable(
            f"The client for {send.region} is closed: its `async with` is over. Nothing was "
            "written. Make a new ledger."
        )
    method: Callable[..., Any] | None = getattr(client, send.operation.name, None)
    if method is None:
        raise InvalidInput(
            f"{shown(client)} is no DynamoDB client: it has no {send.operation.name}."
        )
    return method


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A table at a Region's endpoint.

    insert_only: as for DynamoTable. meter: of the current call.
    """

    name: str
    region: str
    jitter: Callable[[], float]
    insert_only: bool
    meter: Meter = field(default_factory=Meter)

    def persist(self, operation: Operation, writes: bool) -> Steps[Any]:
        """Send an operation; again, with the same arguments, while it meets conflicts or
        throttling.
        """
        doubt = Doubt()
        for attempt in range(TRIES_MAX):
            try:
                return (yield from self.send(operation, writes))
            except failures.ConditionFailed as failed:
                failed.resent = failed.resent or bool(doubt)
                raise
            except LedgerError as error:
                passes = (
                    failures.code_of(error.__cause__) in failures.CONFLICT | failures.THROTTLING
                )
                if attempt == TRIES_MAX - 1 or not passes:
                    raise doubt.last_word(error) from error.__cause__
                doubt.note(error)
            yield self.back_off(attempt)
        raise AssertionError("unreachable")

    def send(self, operation: Operation, writes: bool) -> Steps[Any]:
        """Send an operation; every response comes back here."""
        name, arguments = operation
        self.meter.begin()
        try:
            answer = yield Send(self.region, Operation(name, arguments | consumed.ASK))
        except LedgerError:  # of `method_of`: there is no client
            self.meter.end(NOTHING)
            raise
        except Exception as failure:
            if not failures.is_of_a_request(failure):
                raise
            refused = getattr(failure, "response", None)
            self.meter.end(consumed.of_failure(arguments, refused, failures.attempts(failure)))
            raise failures.error_of(failure, name, writes, self.name) from failure
        self.meter.end(consumed.of_answer(answer, writes=writes))
        if failures.is_foreign(answer, name):
            raise failures.no_answer(
                name, writes, "what answered is no DynamoDB: check endpoint_url"
            )
        return answer

    def back_off(self, attempt: int) -> Wait:
        return Wait(PAUSE_BASE_S * 2**attempt * self.jitter())


def all_of(parts: Sequence[Steps[Any]]) -> Steps[list[Any]]:
    """What each part returns, or its LedgerError, in order; several parts run at once."""
    if len(parts) == 1:
        answers = [(yield from _or_failure(parts[0]))]
    else:
        answers = [*((yield AtOnce(tuple(map(_or_failure, parts)))) if parts else ())]
    for answer in answers:
        if isinstance(answer, Exception) and not isinstance(answer, LedgerError):
            raise answer
    return answers


def flat(parts: Sequence[Steps[Sequence[Any]]]) -> Steps[list[Any]]:
    """The results of all parts as one list. Raises their first LedgerError."""
    return [*chain(*answered((yield from all_of(parts))))]


def _or_failure(steps: Steps[Any]) -> Steps[Any]:
    try:
        return (yield from steps)
    except Exception as failure:
        return failure
