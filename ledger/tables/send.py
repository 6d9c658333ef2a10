"""Sending operations of DynamoDB, as programs: a table drives them, blocking or awaited, and both
get the same answers.

Rule 1: this file sends nothing and waits for nothing. Its programs yield `Send`, which only a table
of DynamoDB answers, and of core's requests Pause and AtOnce.
Source: https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_TransactWriteItems.html
"""

from collections.abc import Callable, Generator, Sequence
from itertools import chain
from typing import Any, NamedTuple

from botocore.exceptions import BotoCoreError

from ledger.core import errors
from ledger.core.cost import NOTHING, Meter
from ledger.core.errors import InvalidInput, LedgerError, shown
from ledger.core.requests import AtOnce, Pause, Request, Result
from ledger.core.running import Doubt, answered
from ledger.tables import consumed, failures, refusals
from ledger.tables.ask import Operation

# how often a request is sent that meets conflicts or throttling, the SDK's own retries aside
TRIES_MAX = 6
PAUSE_BASE_S = 0.05
PASSING = refusals.CONFLICT | refusals.THROTTLING


class Send(NamedTuple):
    """Send an operation to a Region.

    Answer: the response; botocore's failure is raised at the `yield`.
    """

    region: str
    operation: Operation


Sending = Generator[Request | Send, Any, Result]
"""A program that may yield Send, too."""


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


class Endpoint(NamedTuple):
    """A table at a Region's endpoint. insert_only: as for DynamoTable. meter: of the current
    call.
    """

    name: str
    region: str
    jitter: Callable[[], float]
    insert_only: bool
    meter: Meter

    def persist(self, operation: Operation, writes: bool) -> Sending[Any]:
        """Send an operation; again, TRIES_MAX at most, while it meets conflicts or throttling."""
        # Rule 2: always with jitter and the same arguments, so with the same ClientRequestToken.
        # The SDK never does that for a cancelled transaction.
        doubt: Doubt | None = None
        for attempt in range(TRIES_MAX):
            try:
                return (yield from self.send(operation, writes))
            except failures.ConditionFailed as failed:
                failed.resent = failed.resent or bool(doubt)
                raise
            except LedgerError as error:
                doubt = Doubt(doubt)
                passes = failures.code_of(error.__cause__) in PASSING
                if attempt == TRIES_MAX - 1 or not passes:
                    raise doubt.last_word(error) from error.__cause__
                doubt.note(error)
            yield self.back_off(attempt)
        raise AssertionError("unreachable")

    def send(self, operation: Operation, writes: bool) -> Sending[Any]:
        """Send an operation; every response comes back here."""
        # Rule 3: here alone a failure becomes one of our errors, and the cost is counted.
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

    def back_off(self, attempt: int) -> Pause:
        return Pause(1_000 * PAUSE_BASE_S * 2**attempt * self.jitter())


def all_of(parts: Sequence[Sending[Any]]) -> Sending[list[Any]]:
    """What each part returns, or its LedgerError, in order; several parts run at once."""
    if len(parts) == 1:
        try:
            return [(yield from parts[0])]
        except LedgerError as error:
            return [error]
    answers = [*((yield AtOnce(tuple(map(_or_failure, parts)))) if parts else ())]
    for answer in answers:
        if isinstance(answer, Exception) and not isinstance(answer, LedgerError):
            raise answer
    return answers


def flat(parts: Sequence[Sending[Sequence[Any]]]) -> Sending[list[Any]]:
    """The results of all parts as one list. Raises their first LedgerError."""
    return [*chain(*answered((yield from all_of(parts))))]


def _or_failure(part: Sending[Any]) -> Sending[Any]:
    try:
        return (yield from part)
    except Exception as failure:
        return failure
