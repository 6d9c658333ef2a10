"""The programs of `add`, driven by hand: what they yield is the test."""

from typing import Any

import pytest

from ledger import tokens
from ledger.conditions import Absent
from ledger.errors import DamagedItem, LedgerError, OutcomeUnknown, TableMismatch, Throttled, TokenConflict
from ledger.lane.add import add, add_many
from ledger.requests import AlreadyThere, Item, Program, Put, PutMany
from ledger.values import Delta, Lane, Receipt

LANE = Lane("eu-west-1", 0, "c")
A, B, C = (tokens.make(1_000 + n, bytes(10)) for n in range(3))
DELTA, OTHER, THIRD = Delta(LANE, A, -6), Delta(LANE, B, 1), Delta(LANE, C, 1)
OF_THE_TOKEN = Delta(LANE, A, 7)
KEY: Item = {"pk": {"S": "delta#eu-west-1#0#c"}, "sk": {"S": A}}


def item(delta: Delta) -> Item:
    return {**KEY, "sk": {"S": delta.token}, "change": {"N": str(delta.change)}}


def sent(program: Program[Any], answer: Any) -> Any:
    """The result of a program that ends with this answer, or failure."""
    with pytest.raises(StopIteration) as end:
        program.throw(answer) if isinstance(answer, LedgerError) else program.send(answer)
    return end.value.value


def begun(*deltas: Delta) -> Program[Any]:
    """The program of one delta, or of a batch, that has asked for its first put."""
    program: Program[Any] = add(*deltas) if len(deltas) == 1 else add_many(deltas)
    first: Any = next(program)
    unique = {delta.token: delta for delta in reversed(deltas)}
    assert first == Put(item(*deltas), Absent()) if len(deltas) == 1 else first.items[0] == item(deltas[0])
    assert len(deltas) == 1 or len(first.items) == len(unique)
    return program


def test_add_is_one_put_if_absent_and_a_change_that_is_there_is_replayed() -> None:
    assert sent(begun(DELTA), None) == Receipt("recorded", DELTA)
    assert sent(begun(DELTA), {**item(DELTA), "trace": {"S": "of the first"}}) == Receipt("replayed", DELTA)
    packed = begun(DELTA)
    assert isinstance(packed.send(AlreadyThere(None)), Put)  # a role that may not look puts a pack of one
    assert sent(packed, None) == Receipt("accepted", DELTA)


def test_what_is_there_in_place_of_a_change_is_no_receipt() -> None:
    theirs: list[tuple[Item, type[LedgerError], str]] = [
        (item(OF_THE_TOKEN), TokenConflict, r"already stands for a change of 7, not -6\. Nothing was written"),
        *(({**KEY, **change}, DamagedItem, A) for change in ({}, {"change": {"N": "x"}}, {"change": {"S": "-6"}})),
        ({}, DamagedItem, "is damaged"),
        (item(Delta(LANE, B, -6)), TableMismatch, "keys are not pk and sk"),  # a table whose only key is pk
    ]
    for there, error, says in theirs:
        with pytest.raises(error, match=says) as raised:
            begun(DELTA).send(there)
        assert raised.value.delta is DELTA
        program = add_many([DELTA])
        next(program)
        if there:
            (value,) = sent(program, (AlreadyThere(there),))
            assert (type(value), value.delta) == (error, DELTA)
    with pytest.raises(OutcomeUnknown, match="counts once") as raised:
        begun(DELTA).throw(OutcomeUnknown("lost"))
    assert raised.value.delta is DELTA


def test_add_many_is_one_request_of_every_delta_in_order_with_an_outcome_each() -> None:
    program = add_many(iter([THIRD, DELTA, OTHER]))
    assert next(program) == PutMany(tuple(map(item, (THIRD, DELTA, OTHER))))
    recorded, replayed, throttled = sent(program, (None, AlreadyThere(item(DELTA)), Throttled("slow")))
    assert (recorded, replayed) == (Receipt("recorded", THIRD), Receipt("replayed", DELTA))
    assert (type(throttled), throttled.delta) == (Throttled, OTHER)
    program = add_many([])
    assert next(program) == PutMany(())
    assert sent(program, ()) == []
    with pytest.raises(ValueError, match="shorter"):  # too few answers acknowledge nothing
        begun(DELTA, OTHER).send((None,))


def test_where_the_store_does_not_show_the_item_a_single_put_does() -> None:
    for answer, outcome in (
        (item(DELTA), "replayed"),
        (item(OF_THE_TOKEN), TokenConflict),
        (OutcomeUnknown("lost"), OutcomeUnknown),
    ):
        program = begun(DELTA, OTHER)
        assert program.send((AlreadyThere(None), None)) == Put(item(DELTA), Absent())
        first, second = sent(program, answer)
        assert first == Receipt("replayed", DELTA) if outcome == "replayed" else type(first) is outcome
        assert first.delta is DELTA
        assert second == Receipt("recorded", OTHER)


def test_a_token_that_comes_twice_is_sent_once_and_with_two_changes_the_table_says_which_is_there() -> None:
    twin = Delta(LANE, A, -6)
    assert [each.outcome for each in sent(begun(DELTA, OTHER, twin), (None, None))] == [
        "recorded",
        "recorded",
        "replayed",
    ]
    failure = OutcomeUnknown("lost")
    assert sent(begun(DELTA, twin), (failure,)) == [failure, failure]
    program = begun(DELTA, OF_THE_TOKEN)
    assert program.send((None,)) == Put(item(OF_THE_TOKEN), Absent())
    recorded, conflict = sent(program, item(DELTA))
    assert recorded == Receipt("recorded", DELTA)
    assert (type(conflict), conflict.delta) == (TokenConflict, OF_THE_TOKEN)
    program = begun(DELTA, OF_THE_TOKEN)
    program.send((Throttled("slow"),))
    throttled, recorded = sent(program, None)
    assert (type(throttled), recorded) == (Throttled, Receipt("recorded", OF_THE_TOKEN))
    elsewhere = Delta(Lane("us-east-1", 0, "c"), A, -6)  # in two lanes it is two deltas
    program = add_many([DELTA, elsewhere])
    next(program)
    assert sent(program, (None, None)) == [Receipt("recorded", DELTA), Receipt("recorded", elsewhere)]
