"""One change by every way in: a key counts as given, so each way gives it the same token, and it counts once."""

import hashlib
from collections.abc import Callable
from datetime import datetime
from io import StringIO
from pathlib import Path

import pytest

from ledger import Change, Ledger, Receipt
from ledger.conditions import Absent
from ledger.message import dumps
from ledger.requests import Put
from service.add_from_queue.handler import AddFromQueue
from service.observe import Watch
from tests.ledgerctl.support import Tables
from tests.service.http_client import SETTINGS, ULID, ULID_AT, Client
from tests.service.support import sqs

COUNTER, CHANGE = "stock:85123A", 10
UUID7 = "01942138-3806-7abc-8def-0123456789ab"
CANONICAL = [ULID, UUID7]
OTHERS = {
    ULID.lower(): ULID,
    ULID[:13] + ULID[13:].lower(): ULID,
    UUID7.upper(): UUID7,
    UUID7[:20] + UUID7[20:].upper(): UUID7,
    UUID7.replace("-", ""): UUID7,
    UUID7.replace("-", "").upper(): UUID7,
    f"{{{UUID7}}}": UUID7,
    f"urn:uuid:{UUID7}": UUID7,
}
"""Another spelling, and the canonical one."""

AT = datetime.fromisoformat(ULID_AT)
DIGITS = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"


class Ways:
    """Each way adds the same change to one table, and says the token that it has there."""

    def __init__(self, directory: Path) -> None:
        self.client = Client()
        self.table = self.client.table
        self.ledger = Ledger(SETTINGS, table=self.table, clock=self.client.clock)
        self.tables = Tables(self.table)
        self.directory = directory

    def tokens(self) -> set[str]:
        return {item["sk"]["S"] for (pk, _), item in self.table.items.items() if pk.endswith(f"#{COUNTER}")}

    def by_add(self, key: str) -> None:
        self.ledger.add(COUNTER, CHANGE, idempotency_key=key, at=AT)

    def by_add_many(self, key: str) -> None:
        (outcome,) = self.ledger.add_many([Change(COUNTER, CHANGE, key, AT)])
        assert isinstance(outcome, Receipt)

    def by_queue(self, key: str) -> None:
        body = dumps(Change(COUNTER, CHANGE, key, AT))
        handler = AddFromQueue(self.ledger, Watch.here("one-key", StringIO()), pack=True)
        assert handler(sqs(body), None) == {"batchItemFailures": []}

    def by_http(self, key: str) -> None:
        assert self.client.add(CHANGE, key, COUNTER, at=ULID_AT).status in (200, 201)

    def by_http_in_quotes(self, key: str) -> None:
        assert self.client.add(CHANGE, f'"{key}"', COUNTER, at=ULID_AT).status in (200, 201)

    def by_http_in_bulk(self, key: str) -> None:
        delta = {"counter": COUNTER, "change": CHANGE, "idempotency_key": key, "at": ULID_AT}
        (result,) = self.client.ask("POST", "/deltas", {"deltas": [delta]}).said["results"]
        assert result["status"] in (200, 201)

    def by_import(self, key: str) -> None:
        path = self.directory / "changes.csv"
        path.write_text(f"counter,change,idempotency_key,at\n{COUNTER},{CHANGE},{key},{ULID_AT}\n")
        assert self.tables.ctl("import", str(path)).code == 0

    def by_put_item(self, key: str) -> None:
        """As docs/data-model.md tells a producer without this library, from that page alone."""
        ms = int(AT.timestamp() * 1000)
        hashed = hashlib.sha256(f"{len(COUNTER)}:{COUNTER}{key}".encode()).digest()
        number = int.from_bytes(ms.to_bytes(6, "big") + hashed[:10], "big")
        token = "".join(DIGITS[number >> 5 * place & 31] for place in range(25, -1, -1))
        item = {"pk": {"S": f"delta#eu-west-1#0#{COUNTER}"}, "sk": {"S": token}, "change": {"N": str(CHANGE)}}
        there = self.table.answer(Put(item, Absent()))
        assert there is None or there["change"] == item["change"]

    @property
    def all(self) -> list[Callable[[str], None]]:
        by_library = [self.by_add, self.by_add_many, self.by_queue, self.by_import, self.by_put_item]
        return [*by_library, self.by_http, self.by_http_in_quotes, self.by_http_in_bulk]


def test_every_spelling_of_a_key_counts_as_given_by_every_way(tmp_path: Path) -> None:
    spellings = [*CANONICAL, *OTHERS, "536365/1"]
    tokens: dict[str, str] = {}
    for spelling in spellings:
        for first in range(len(Ways(tmp_path).all)):
            ways = Ways(tmp_path)
            ways.all[first](spelling)
            (token,) = ways.tokens()
            assert tokens.setdefault(spelling, token) == token, (ways.all[first].__name__, spelling)
    assert len(set(tokens.values())) == len(spellings)
    ways = Ways(tmp_path)
    for spelling in spellings:
        for way in ways.all:
            way(spelling)
    assert ways.client.value(COUNTER) == CHANGE * len(spellings)
    assert ways.tokens() == set(tokens.values())


@pytest.mark.parametrize("key", CANONICAL)
def test_a_key_that_gives_its_time_is_the_same_change_with_and_without_at(key: str, tmp_path: Path) -> None:
    ways = Ways(tmp_path)
    for way in (lambda key: ways.client.add(CHANGE, key, COUNTER), *ways.all):
        way(key)
        assert ways.client.value(COUNTER) == CHANGE


@pytest.mark.parametrize(("key", "canonical"), OTHERS.items())
def test_a_key_with_a_time_in_another_spelling_is_refused_and_told_its_own(key: str, canonical: str) -> None:
    client = Client()
    answer = client.add(CHANGE, key, COUNTER)
    assert (answer.status, answer.problem, answer.said["canonical"]) == (422, "invalid-key", canonical)
    delta = {"counter": COUNTER, "change": CHANGE, "idempotency_key": key}
    (result,) = client.ask("POST", "/deltas", {"deltas": [delta]}).said["results"]
    assert (result["status"], result["problem"]["canonical"]) == (422, canonical)
    assert client.table.items == {}
    assert client.add(CHANGE, canonical, COUNTER).status == 201
