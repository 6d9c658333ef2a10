"""`GET /counters?prefix=`: the list of counters, page by page, and what is no request of one."""

import base64
import json
from urllib.parse import quote

from ledger.lane import directory
from ledger.requests import Key, Put, keyed
from ledger.values import Lane
from service import observe
from tests.service.http_client import SETTINGS, Client, refused

NAMES = {f"stock:{n}" for n in range(40)} | {"a?b%c", "stock;"}


def with_names() -> Client:
    client = Client()
    for name in NAMES:
        for region in SETTINGS.regions:
            client.table.answer(Put(directory.item_of(Lane(region, 0, name))))
    return client


def listed(client: Client, prefix: str, limit: int = 100) -> list[list[str]]:
    query = f"prefix={quote(prefix, safe='')}&limit={limit}"
    answers = [client.ask("GET", f"/counters?{query}")]
    while (following := answers[-1].said["next"]) is not None:
        answers.append(client.ask("GET", f"/counters?{query}&after={following}"))
    return [answer.said["counters"] for answer in answers]


def test_every_name_is_listed_once_in_pages_of_bounded_size() -> None:
    client = with_names()
    for limit in (1, 7, 1_000):
        pages = listed(client, "", limit)
        assert sorted(name for page in pages for name in page) == sorted(NAMES)
        assert max(map(len, pages)) <= limit
    assert {name for page in listed(client, "stock:") for name in page} == NAMES - {"a?b%c", "stock;"}
    assert [name for page in listed(client, "a?b%c") for name in page] == ["a?b%c"]
    assert not any(listed(client, "none"))
    client = Client()
    for counter in ("stock:85123A", "seats:gig"):
        assert client.add(1, counter=counter).status == 201
    assert sorted(name for page in listed(client, "") for name in page) == ["seats:gig", "stock:85123A"]


def test_a_damaged_item_is_skipped_counted_and_logged() -> None:
    client = with_names()
    client.table.answer(Put(keyed(Key("lane#eu-west-1#0", "0#elsewhere"))))
    assert {name for page in listed(client, "") for name in page} == NAMES
    assert client.metrics.metric_set[observe.LANES_DAMAGED]["Value"] == [1.0]
    (line,) = [json.loads(line) for line in client.lines.getvalue().splitlines()]
    assert (line["pk"], line["sk"]) == ("lane#eu-west-1#0", "0#elsewhere")


def test_what_is_neither_a_read_nor_a_list_is_refused() -> None:
    client = Client()
    for query in ("", "counter=c&prefix=c", "limit=5", "prefix=&page=2"):
        refused(client.ask("GET", f"/counters?{query}"), 422, "invalid-request")
    for query in ("prefix=c&max_age=1", "prefix=c&consistent=true", "counter=c&limit=5", "counter=c&after=x"):
        refused(client.ask("GET", f"/counters?{query}"), 422, "invalid-request")
    for query in ("prefix=a b", "prefix=%C3%A4", "prefix=" + "x" * 257, "prefix=&limit=0", "prefix=&limit=1001"):
        refused(client.ask("GET", f"/counters?{query}"), 422, "invalid-request")


def test_a_cursor_of_another_list_is_refused() -> None:
    client = with_names()
    following = client.ask("GET", "/counters?prefix=stock:&limit=1").said["next"]
    digest = base64.urlsafe_b64decode(following + "=" * (-len(following) % 4)).decode().split(".")[2]
    made_up = (f"1.256.{digest}.", f"1.7.{digest}.{'x' * 1_025}", "1.7.00000000.stock:1", f"2.7.{digest}.a")
    bad = [base64.urlsafe_b64encode(text.encode()).decode().rstrip("=") for text in made_up]
    for after in ("", "x", "A" * 16, "A" * 17, "A" * 2_000, *bad):
        refused(client.ask("GET", f"/counters?prefix=stock:&after={after}"), 404, "invalid-cursor")
    refused(client.ask("GET", f"/counters?prefix=&after={following}"), 404, "invalid-cursor")
