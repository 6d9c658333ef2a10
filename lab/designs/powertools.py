"""What a Lambda producer uses today: the idempotency of Powertools for AWS Lambda round an atomic
ADD.

Promises: a change whose first delivery came to its end counts once for an hour, whoever sends it
again; what was answered is answered again, also that a limit refused it; another change under a
used key is refused.
Limits: three writes one after another (in progress, the ADD, done), of which no two are one: a
process that dies between the ADD and its record, or an ADD that got no answer, makes the change
count again. A record whose put got no answer is taken for another's by the SDK's retry, so its
change waits until the first attempt's time is up. A record for each change stays for its hour and
longer, until the time to live takes it. Regions overwrite each other.
Source: https://docs.powertools.aws.dev/lambda/python/latest/utilities/idempotency/

Rule 1: The package decides; what it asks of boto3 is asked of the program, with the same meaning.
Rule 2: To be a program it is called again for each request, with the answers so far, until it needs
another one: it does the same again, and no `except Exception` of it sees that it is stopped.
Rule 3: The package reads this computer's clock, so each time that it writes is moved to the
program's, and back.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

from aws_lambda_powertools.utilities.idempotency import (
    DynamoDBPersistenceLayer,
    IdempotencyConfig,
    idempotent_function,
)
from aws_lambda_powertools.utilities.idempotency.exceptions import (
    IdempotencyAlreadyInProgressError,
    IdempotencyInconsistentStateError,
    IdempotencyPersistenceLayerError,
    IdempotencyValidationError,
)
from aws_lambda_powertools.utilities.typing import LambdaContext
from botocore.exceptions import ClientError

from lab.designs.atomic import Atomic
from lab.designs.design import VALUE, Claims, Contended, Memory, Outcome, expired, integer
from ledger.core.actions import Add, Set
from ledger.core.conditions import Absent, All, AtMost, Either, Equals, Item, Not
from ledger.core.decoding import number
from ledger.core.errors import LedgerError, TokenConflict
from ledger.core.requests import (
    Delete,
    Instant,
    Key,
    Now,
    Program,
    Put,
    Request,
    Result,
    Update,
    keyed,
)

EXPIRES, UNTIL = "expiration", "in_progress_expiration"
TIMES = {EXPIRES: 1, ":expiry": 1, ":now": 1, UNTIL: 1_000, ":now_in_millis": 1_000}
"""Where Powertools has times, and how many of its units are a second."""

FREE = (
    "attribute_not_exists(#id) OR #expiry < :now OR (#status = :inprogress AND "
    "attribute_exists(#in_progress_expiry) AND #in_progress_expiry < :now_in_millis)"
)
"""The condition of its put, as it spells it."""


LEFT_MS = 30_000
"""What an invocation has left; after it a record in progress is somebody else's to take."""


Ask = Callable[[Request], Any]


class Waits(BaseException):
    """For the answer to the request that is its argument."""


class Invocation(LambdaContext):
    @staticmethod
    def get_remaining_time_in_millis() -> int:
        return LEFT_MS


@dataclass(frozen=True)
class Records:
    """The part of a boto3 client that the persistence layer asks for; `ahead_s`: of this
    computer's clock.
    """

    ask: Ask
    ahead_s: int

    def put_item(
        self, Item: Item, ConditionExpression: str, ExpressionAttributeValues: Item, **_: Any
    ) -> None:
        if ConditionExpression != FREE:
            raise TypeError(f"Powertools asks for another condition: {ConditionExpression}")
        values = self._moved(ExpressionAttributeValues, self.ahead_s)
        expired_before, late_before = (
            number(integer(values, name) - 1) for name in (":now", ":now_in_millis")
        )
        in_progress = Equals("status", values[":inprogress"])
        given_up = All((in_progress, Not(Absent(UNTIL)), AtMost(UNTIL, late_before)))
        record = keyed(_key(Item), **self._moved(Item, self.ahead_s))
        there = self.ask(
            Put(record, condition=Either((Absent(), AtMost(EXPIRES, expired_before), given_up)))
        )
        if there is not None:
            shown = {"id": {"S": there["pk"]["S"]}, **self._moved(there, -self.ahead_s)}
            error: Any = {"Error": {"Code": "ConditionalCheckFailedException"}, "Item": shown}
            raise ClientError(error, "PutItem")

    def update_item(
        self, Key: Item, ExpressionAttributeNames: Any, ExpressionAttributeValues: Item, **_: Any
    ) -> None:
        values = self._moved(ExpressionAttributeValues, self.ahead_s)
        self.ask(
            Update(
                _key(Key),
                tuple(Set(ExpressionAttributeNames[f"#{v[1:]}"], values[v]) for v in values),
            )
        )

    def delete_item(self, Key: Item, **_: Any) -> None:
        self.ask(Delete(_key(Key)))

    def _moved(self, attributes: Item, by_s: int) -> Item:
        """Without its keys, and with its times so much later."""
        return {
            name: number(int(value["N"]) + by_s * TIMES[name]) if name in TIMES else value
            for name, value in attributes.items()
            if name not in ("id", "pk", "sk")
        }


def _key(item: Item) -> Key:
    return Key(item["id"]["S"], "idempotency")


@dataclass(frozen=True, kw_only=True)
class Powertools(Atomic):
    """With the payload validated and the context registered, as its documentation advises; all
    else by default.
    """

    name: str = "Powertools idempotency round an ADD"
    keep_ms: int = 3_600_000
    claims: ClassVar = Claims(
        memory=Memory(ms=3_600_000), survives_death=False, mismatch=True, limit="hard"
    )

    def add(
        self, counter: str, change: int, key: str, at_ms: int, shard: int = 0
    ) -> Program[Outcome]:
        now: Instant = yield Now()
        ahead_s = now.wall_ms // 1_000 - int(time.time())
        update = Update(
            self.item_key(counter, shard), (Add(VALUE, change),), condition=self.fitting(change)
        )
        event = {"key": f"{counter}#{key}", "change": change}
        return (
            yield from as_program(lambda ask: _handled(ask, Records(ask, ahead_s), event, update))
        )

    def housekeep(self, counter: str, region: str) -> Program[None]:
        """What the table's TTL does by itself, and for nothing."""
        return expired(EXPIRES)


def as_program(function: Callable[[Ask], Result]) -> Program[Result]:
    """What a function returns or raises that asks by the callable that it is given."""
    answers: list[Any] = []
    while True:
        known = iter([*answers])

        def ask(request: Request, known: Any = known) -> Any:
            for answer in known:
                if isinstance(answer, LedgerError):
                    raise answer
                return answer
            raise Waits(request)

        try:
            return function(ask)
        except Waits as waits:
            (request,) = waits.args
        try:
            answers.append((yield request))
        except LedgerError as error:
            answers.append(error)


def _handled(ask: Ask, client: Any, event: dict[str, Any], update: Update) -> Outcome:
    """A delivery. Raises what the caller of a design expects."""
    layer = DynamoDBPersistenceLayer("counters", boto3_client=client)
    config = IdempotencyConfig(
        event_key_jmespath="key", payload_validation_jmespath="change", lambda_context=Invocation()
    )
    own: list[Outcome] = []

    def handle(event: dict[str, Any]) -> Outcome:
        own.append("recorded" if ask(update) is None else "refused")
        return own[0]

    once: Any = idempotent_function(
        handle, data_keyword_argument="event", persistence_store=layer, config=config
    )
    try:
        outcome: Outcome = once(event=event)
    except IdempotencyValidationError as error:
        raise TokenConflict(str(error)) from error
    except (IdempotencyAlreadyInProgressError, IdempotencyInconsistentStateError) as error:
        raise Contended(str(error)) from error
    except IdempotencyPersistenceLayerError as error:
        raise (error.__cause__ if isinstance(error.__cause__, LedgerError) else error) from None
    return "replayed" if outcome == "recorded" and not own else outcome
