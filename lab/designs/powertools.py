"""What a Lambda producer uses today: the idempotency of Powertools for AWS Lambda round an atomic ADD.

Promises: a change whose first delivery came to its end counts once for an hour, whoever sends it again; what was
answered is answered again, also that a limit refused it; another change under a used key is refused.
Limits: three writes one after another (in progress, the ADD, done), of which no two are one: a process that dies
between the ADD and its record, or an ADD that got no answer, makes the change count again. A record whose put got no
answer is taken for another's by the SDK's retry, so its change waits until the first attempt's time is up. A record
for each change stays for its hour and longer, until the time to live takes it. Regions overwrite each other.
Source: https://docs.powertools.aws.dev/lambda/python/latest/utilities/idempotency/

Rule 1: What the package's DynamoDBPersistenceLayer asks for is asked for here, with the payload validated and the
context registered, as its documentation advises; all else by default.
"""

from dataclasses import dataclass
from typing import ClassVar

from lab.designs.atomic import Atomic
from lab.designs.design import Claims, Contended, Memory, Outcome, expired, integer, text
from ledger.actions import Set
from ledger.conditions import Absent, All, AtMost, Either, Equals, Item
from ledger.decoding import number
from ledger.errors import LedgerError, TokenConflict
from ledger.requests import Delete, Instant, Key, Now, Program, Put, Update, keyed

STATUS, EXPIRES, UNTIL, CHANGE, ANSWER = "status", "expiration", "in_progress_expiration", "validation", "data"
IN_PROGRESS, DONE = text("INPROGRESS"), text("COMPLETED")
LEFT_MS = 30_000
"""What an invocation has left; after it a record in progress is somebody else's to take."""


@dataclass(frozen=True, kw_only=True)
class Powertools(Atomic):
    """keep_ms: after it a record is expired."""

    name: str = "Powertools idempotency round an ADD"
    keep_ms: int = 3_600_000
    claims: ClassVar = Claims(memory=Memory(ms=3_600_000), survives_death=False, limit="hard")

    def add(self, counter: str, change: int, key: str, at_ms: int, shard: int = 0) -> Program[Outcome]:
        now: Instant = yield Now()
        record = Key(f"{counter}#{key}", "idempotency")
        expires = number((now.wall_ms + self.keep_ms) // 1_000)
        given_up = All((Equals(STATUS, IN_PROGRESS), AtMost(UNTIL, number(now.wall_ms - 1))))
        free = Either((Absent(), AtMost(EXPIRES, number(now.wall_ms // 1_000 - 1)), given_up))
        taken = {STATUS: IN_PROGRESS, EXPIRES: expires, UNTIL: number(now.wall_ms + LEFT_MS), CHANGE: number(change)}
        there: Item | None = yield Put(keyed(record, **taken), condition=free)
        if there is not None:
            if integer(there, CHANGE) != change:
                raise TokenConflict(f"{key} stands for a change of {integer(there, CHANGE)}. Nothing was written.")
            if there[STATUS] == IN_PROGRESS:
                raise Contended(f"{key} is in progress elsewhere. Nothing was written.")
            return "refused" if there[ANSWER] == text("refused") else "replayed"
        try:
            outcome = yield from super().add(counter, change, key, at_ms, shard)
        except LedgerError:
            yield Delete(record)
            raise
        yield Update(record, (Set(STATUS, DONE), Set(EXPIRES, expires), Set(ANSWER, text(outcome))))
        return outcome

    def housekeep(self, counter: str, region: str) -> Program[None]:
        """What the table's TTL does by itself, and for nothing."""
        return expired(EXPIRES)
