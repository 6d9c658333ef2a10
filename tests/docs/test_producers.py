"""What is told to producers is held against the code: message, Python, state machine, token, and the retry contract."""

import hashlib
import json
import math
import re
import sys
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from importlib.util import find_spec
from types import SimpleNamespace
from typing import Any

import jsonata  # type: ignore[import-untyped]
import pytest

from ledger import Change, Ledger, Receipt, Settings, errors, tokens
from ledger.checks import to_ms
from ledger.dynamo import client
from ledger.memory import MemoryTable
from ledger.message import NAMES, dumps, dumps_many, loads, loads_many
from ledger.queue import MESSAGE_BYTES_MAX
from reader import Reader
from service.add_from_queue.outcomes import outcome_of
from simulator import Faults, Simulation
from tests.docs.pages import RECIPES, ROOT, blocks, instead, run
from tests.ledger.test_queue import Queue, small

PAGE = ROOT / "docs" / "producers.md"
RETRIES = ROOT / "docs" / "retries.md"
ANSWERS = RETRIES.read_text().partition("## What an attempt answered")[2].partition("\n## ")[0]
OF_OTHERS = {"ReadTooSlow", "LaneDamaged", "LaneUnread"}
MESSAGE, MESSAGE_OF_MANY, OUTCOME = (json.loads(block) for block in blocks(PAGE, "json"))
MACHINE, WORKFLOW_MACHINE = (json.loads(block) for block in blocks(RECIPES / "step-functions.md", "json"))
MODEL, TEMPLATE = (json.loads(block) for block in blocks(RECIPES / "api-gateway.md", "json"))
STATES: dict[str, Any] = MACHINE["States"]
WORKFLOW: dict[str, Any] = WORKFLOW_MACHINE["States"]
AT = datetime(2010, 12, 1, 8, 26, tzinfo=UTC)


def expressions(value: object) -> list[str]:
    """Every JSONata expression in a state."""
    match value:
        case str() if value.startswith("{%"):
            return [value.removeprefix("{%").removesuffix("%}")]
        case dict():
            return [found for each in value.values() for found in expressions(each)]
        case list():
            return [found for each in value for found in expressions(each)]
    return []


def evaluated(expression: str, **names: object) -> Any:
    """As Step Functions evaluates it, with its $hash."""
    program = jsonata.Jsonata(expression.removeprefix("{%").removesuffix("%}"))
    for name, value in names.items():
        program.assign(name, value)
    program.register_lambda(
        "hash", lambda text, algorithm: hashlib.new(algorithm.replace("-", ""), text.encode()).hexdigest()
    )
    return program.evaluate(None)


def test_the_message_is_what_the_library_writes_and_reads() -> None:
    sale = Change("stock:85123A", -6, "536365/1", AT)
    assert json.loads(dumps(sale)) == MESSAGE
    assert loads(json.dumps(MESSAGE)) == sale
    both = [sale, Change("stock:71053", -8, "536365/2", AT)]
    assert json.loads(dumps_many(both)) == MESSAGE_OF_MANY
    assert loads_many(json.dumps(MESSAGE_OF_MANY)) == both
    table = PAGE.read_text().partition("| field |")[2].partition("\n\n")[0]
    assert tuple(re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE)) == NAMES


def test_the_message_of_an_outcome_is_what_the_function_writes() -> None:
    order = Change("seats:gig", -1, "order/77", AT)
    delta = Ledger(Settings(table="counters", region="eu-west-1"), table=MemoryTable()).prepare(
        order.counter, order.change, idempotency_key=order.idempotency_key, at=order.at
    )
    refusal = errors.LimitReached("no")
    refusal.delta = delta
    refused, counted = outcome_of(order, refusal), outcome_of(order, Receipt("replayed", delta))
    assert refused is not None
    assert counted is not None
    assert (json.loads(refused), json.loads(counted)) == (OUTCOME, OUTCOME | {"outcome": "counted"})


@pytest.mark.parametrize(("bytes_max", "said"), [(1, "0.3"), (MESSAGE_BYTES_MAX, "0.004")])
def test_transport_costs_what_the_page_on_producers_says(
    monkeypatch: pytest.MonkeyPatch, bytes_max: int, said: str
) -> None:
    """A batch sent, received and deleted; SQS bills a request for each 64 KiB."""
    monkeypatch.setattr("ledger.queue.MESSAGE_BYTES_MAX", bytes_max)
    queue, changes = Queue(), [small(n) for n in range(10_000)]
    queue.open().send_many(changes)
    carried = [sum(len(body.encode()) for body in batch) for batch in queue.batches]
    billed = sum(2 * math.ceil(size / 65_536) + 1 for size in carried)
    assert f"{billed / len(changes):.1g}" == said
    assert re.search(rf"(costs {said} requests of SQS|some 250 changes, {said})", PAGE.read_text())


def test_the_python_compiles() -> None:
    for block in blocks(PAGE, "python"):
        compile(block, "producers.md", "exec")


@pytest.mark.parametrize(
    ("stock_code", "order_line", "invoiced_at"),
    [
        ("85123A", "536365/1", "2010-12-01T08:26:00Z"),
        ("85123A", "536373/1", "2010-12-01T09:02:00Z"),
        ("x", "b\u00fc", "2038-01-19T03:14:07.999Z"),
        ("22423", "", "1970-01-01T00:00:00Z"),
    ],
)
def test_the_state_machine_makes_the_librarys_own_token(stock_code: str, order_line: str, invoiced_at: str) -> None:
    event = {"stock_code": stock_code, "order_line": order_line, "invoiced_at": invoiced_at, "quantity": 6}
    assigned = STATES["Name the change"]["Assign"].items()
    named = {name: evaluated(expression, states={"input": event}) for name, expression in assigned}
    at_ms = to_ms(datetime.fromisoformat(invoiced_at))
    token = tokens.keyed(f"stock:{stock_code}", order_line, at_ms)
    assert named == {"pk": f"delta#eu-west-1#0#stock:{stock_code}", "token": token, "change": "-6"}


@pytest.mark.parametrize("states", [STATES, WORKFLOW], ids=["producers", "recipe"])
def test_a_state_machine_leads_from_state_to_state(states: dict[str, Any]) -> None:
    for state in states.values():
        following = [state.get("Next"), state.get("Default"), *(c["Next"] for c in state.get("Choices", []))]
        following += [catch["Next"] for catch in state.get("Catch", [])]
        assert {name for name in following if name} <= set(states)
        assert state["Type"] in ("Succeed", "Fail") or any(following)
        for expression in expressions(state):
            jsonata.Jsonata(expression)


def test_the_state_machine_puts_with_the_condition_and_looks_at_what_is_there() -> None:
    put = STATES["Put the delta"]["Arguments"]
    assert put["ConditionExpression"] == TEMPLATE["ConditionExpression"] == "attribute_not_exists(pk)"
    assert set(put["Item"]) == set(TEMPLATE["Item"]) == {"pk", "sk", "change"}
    look = STATES["Look what is there"]["Assign"]["there"]
    for result, there in (({"Item": {"change": {"N": "-6"}}}, "-6"), ({}, "nothing")):
        assert evaluated(look, states={"result": result}) == there


def test_the_model_takes_tokens_and_no_other_text() -> None:
    pattern = MODEL["properties"]["token"]["pattern"]
    for text in ("015JGGKGE064BG4X58772SZHBM", "8" * 26, "015jggkge064bg4x58772szhbm", "0" * 25, "0" * 27, "I" * 26):
        assert bool(re.search(pattern, text)) == tokens.is_token(text)


def retry(*, on: type[Exception], attempts: int) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """As `stamina.retry`, which is not among this project's packages, without its pauses."""

    def decorate(call: Callable[..., Any]) -> Callable[..., Any]:
        def again(*args: Any) -> Any:
            for _ in range(attempts - 1):
                with suppress(on):
                    return call(*args)
            return call(*args)

        return again

    return decorate


@pytest.fixture
def contract(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    if find_spec("stamina") is None:
        monkeypatch.setitem(sys.modules, "stamina", SimpleNamespace(retry=retry))
    return run(RETRIES)


def test_the_python_of_the_contract_prints_what_its_comments_say(contract: dict[str, Any]) -> None:
    assert contract["reader"].read("stock:85123A").value == -26


@pytest.mark.parametrize("seed", range(3))
def test_a_sale_that_is_repeated_on_again_counts_once_whatever_fails(contract: dict[str, Any], seed: int) -> None:
    faults = Faults(throttled=100, dropped=100, lost=100, late=100)
    simulation = Simulation(contract["REGIONS"], seed=seed, faults=faults)
    table = simulation.table("eu-west-1")
    with instead(contract, here=Ledger(contract["here"].settings, table=table, clock=simulation.clock)):
        outcomes = {contract["sell"](str(line), "1", 1, simulation.now()) for line in range(40)}
    simulation.come_to_rest()
    assert outcomes == {"recorded", "replayed"}
    assert Reader(contract["here"].settings, table=table, clock=simulation.clock).read("stock:1").value == -40


def test_again_are_the_errors_whose_row_says_the_same_again_and_nothing_to_be_done_before() -> None:
    rows = [line.split("|") for line in ANSWERS.splitlines() if line.startswith("| `") and line.count("|") == 4]
    same = [row[1] for row in rows if "the same again" in row[3] and "then the same" not in row[3]]
    named = {*re.findall(r"`([A-Z]\w+)`", " ".join(same))} - {"ChangeQueue"}
    assert {name for name in leaves() if issubclass(getattr(errors, name), errors.Again)} == named
    assert issubclass(errors.Again, errors.LedgerError)


def leaves() -> set[str]:
    """The names of the errors of which there are no kinds."""
    return {
        name
        for name, kind in vars(errors).items()
        if isinstance(kind, type)
        and issubclass(kind, errors.LedgerError)
        and not any(each.__module__ == errors.__name__ for each in kind.__subclasses__())
    }


def test_every_error_of_an_add_has_its_row_and_the_row_says_whether_anything_was_written() -> None:
    written: dict[str, str] = {}
    for line in ANSWERS.splitlines():
        if line.startswith("| `") and line.count("|") == 4:
            _, what, whether, _, _ = line.split("|")
            written |= {name: whether.strip() for name in re.findall(r"`([A-Z]\w+)`", what)}
    known = {name for name in leaves() if not issubclass(getattr(errors, name), errors.InvalidInput)}
    assert known - OF_OTHERS == set(written) - {"InvalidInput", "ChangeQueue"}
    for name in set(written) - {"ChangeQueue"}:
        says_no = "othing was written" in str(getattr(errors, name).__doc__)
        assert written[name].startswith("no") == says_no, name


def test_the_tries_of_boto3_are_those_of_the_client() -> None:
    assert f"| one put, up to {client.ATTEMPTS} times in all |" in RETRIES.read_text()
