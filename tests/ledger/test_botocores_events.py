"""Whether the installed botocore emits the events on which it rests what an error says of earlier
attempts.

It documents none of them. A newer one that drops an event turns its test red, by the event's name:
then a write whose answer was lost would read as "nothing was written" (ledger/tables/failures.py).
"""

from collections import Counter
from typing import Any

import pytest
from botocore.config import Config
from botocore.credentials import Credentials
from botocore.exceptions import NoCredentialsError
from botocore.session import Session

from ledger.core.errors import NotAllowed, OutcomeUnknown
from ledger.tables.boto import CONFIG
from ledger.tables.dynamo import DynamoTable
from ledger.tables.failures import note_attempts
from tests.ledger.scripted import OK, SESSION, Line, Server, fast, refusal
from tests.ledger.test_table_errors import PUT

ITEM: Any = {"TableName": "counters", "Item": {"pk": {"S": "p"}, "sk": {"S": "a"}}}
LOST = Line(then="close")
EVENTS = {  # with what the handlers take of each
    "needs-retry": {"request_dict", "caught_exception"},
    "after-call": {"http_response", "parsed"},
    "after-call-error": {"exception", "context"},
}


class NoKeys(Credentials):
    """Credentials that are gone when a request is signed."""

    def get_frozen_credentials(self) -> Any:
        raise NoCredentialsError


def made(server: Server, kind: str, session: Session) -> Any:
    if kind == "FastClient":
        client = fast(server)
        client._credentials = session.get_credentials()
        return client
    config = CONFIG.merge(Config(retries={"mode": "standard", "total_max_attempts": 2}))
    return session.create_client("dynamodb", "eu-west-1", endpoint_url=server.url, config=config)


def emitted(client: Any, event: str) -> list[dict[str, Any]]:
    """What the client hands over with each event of this name from now on."""
    found: list[dict[str, Any]] = []
    meta = vars(client).get("_meta") or client.meta
    meta.events.register(f"{event}.dynamodb", lambda **given: found.append(given))
    return found


@pytest.fixture(params=["boto3's client", "FastClient"])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_needs_retry_comes_after_each_attempt_of_its_call(server: Server, kind: str) -> None:
    client = made(server, kind, SESSION)
    attempts = emitted(client, "needs-retry")
    server.script = [LOST, OK]
    client.put_item(**ITEM)
    (first, *more) = attempts
    assert first.keys() >= EVENTS["needs-retry"]
    assert first["caught_exception"] is not None
    contexts = [id(given["request_dict"]["context"]) for given in attempts]
    assert Counter(contexts).most_common(1)[0][1] == len(attempts) == 1 + len(more)


def test_after_call_comes_with_the_answer_raw_and_read(server: Server, kind: str) -> None:
    client = made(server, kind, SESSION)
    answers = emitted(client, "after-call")
    server.script = [OK]
    client.put_item(**ITEM)
    (given,) = answers
    assert given.keys() >= EVENTS["after-call"]
    assert (given["http_response"].status_code, given["http_response"].content) == (200, b"{}")
    assert "ResponseMetadata" in given["parsed"]


def test_after_call_error_comes_where_nothing_was_sent(server: Server, kind: str) -> None:
    bare = Session()
    vars(bare)["_credentials"] = NoKeys("k", "s")
    client = made(server, kind, bare)
    failures = emitted(client, "after-call-error")
    with pytest.raises(NoCredentialsError):
        client.put_item(**ITEM)
    (given,) = failures
    assert given.keys() >= EVENTS["after-call-error"]
    assert isinstance(given["exception"], NoCredentialsError)
    assert server.requests == []


def test_what_the_library_notes_follows_from_them(server: Server, kind: str) -> None:
    client = note_attempts(made(server, kind, SESSION))
    server.script = [LOST, refusal("AccessDeniedException")]
    table = DynamoTable("counters", "eu-west-1", lambda _: client)
    with pytest.raises(OutcomeUnknown):
        table.answer(PUT)
    server.script = [refusal("AccessDeniedException")]
    with pytest.raises(NotAllowed):
        table.answer(PUT)
