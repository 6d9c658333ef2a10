"""The programs of `add`, driven by hand: what they yield is the test."""

from typing import Any

import pytest

from ledger import tokens
from ledger.conditions import Absent
from ledger.errors import DamagedItem, LedgerError, OutcomeUnknown, Throttled, TokenConflict
from ledger.lane.add import add, add_many
from ledger.requests import AlreadyThere, Item, Program, Put, PutMany
from ledger.values import Delta, Lane, Receipt

LANE = Lane("eu-west-1", 0, "c")
A, B, C = (tokens.make(1_000 + n, bytes(10)) for n in range(3))
DELTA = Delta(LANE, A, -6)


def item(delta: Delta) -> Item:
    return {"pk": {"S": "delta#eu-west-1#0#c"}, "sk": {"S": delta.token}, "change": {"N": str(delta.change)}}


def sent(program: Program[Any], answer: Any) -> Any:
    """The result of a program that ends with this answer."""
    with pytest.raises(StopIteration) as end:
        program.send(answer)
    return end.value.value


def begun(*deltas: Delta) -> Program[Any]:
    """The program of one delta, or of a batch, that has asked for its first put."""
    program: Program[Any] = add(*deltas) if len(deltas) == 1 else add_many(deltas)
    next(program)
    return program


def test_add_is_one_put_if_absent() -> None:
    program = add(DELTA)
    assert next(program) == Put(item(DELTA), Absent())
    assert sent(program, None) == Receipt("recorded", DELTA)


def test_a_batch_whose_answers_are_too_few_acknowledges_nothing() -> None:
    with pytest.raises(ValueError, match="shorter"):
        begun(DELTA, Delta(LANE, B, 1)).send((None,))


def test_a_change_that_is_there_is_replayed() -> None:
    assert sent(begun(DELTA), {**item(DELTA), "trace": {"S": "of the first"}}) == Receipt("replayed", DELTA)


def test_another_change_under_the_same_token_is_a_conflict_that_names_both() -> None:
    says = r"already stands for a change of 7, not -6\. Nothing was written"
    with pytest.raises(TokenConflict, match=says) as raised:
        begun(DELTA).send(item(Delta(LANE, A, 7)))
    assert raised.value.delta is DELTA


@pytest.mark.parametrize("there", [{}, {"change": {"N": "x"}}, {"change": {"S": "-6"}}])
def test_an_item_under_the_key_that_is_no_delta_is_damage_and_no_receipt(there: dict[str, Any]) -> None:
    with pytest.raises(DamagedItem, match=A) as raised:
        begun(DELTA).send({"pk": {"S": "delta#eu-west-1#0#c"}, "sk": {"S": A}, **there})
    assert raised.value.delta is DELTA


def test_an_item_that_was_not_shown_or_is_of_another_key_is_no_receipt() -> None:
    with pytest.raises(DamagedItem):
        begun(DELTA).send({})
    with pytest.raises(LedgerError):  # a table whose only key is pk answers every delta of a lane with the first one
        begun(DELTA).send(item(Delta(LANE, B, -6)))


def test_a_failure_carries_its_delta() -> None:
    with pytest.raises(OutcomeUnknown, match="counts once") as raised:
        begun(DELTA).throw(OutcomeUnknown("lost"))
    assert raised.value.delta is DELTA


# -- add_many ------------------------------------------------------------------------------------------------------


def many(*deltas: Delta, answers: tuple[Any, ...]) -> Any:
    program = add_many(deltas)
    next(program)
    return sent(program, answers)


def test_add_many_is_one_request_of_every_delta_in_order() -> None:
    deltas = [Delta(LANE, token, 1) for token in (C, A, B)]
    program = add_many(iter(deltas))
    assert next(program) == PutMany(tuple(item(delta) for delta in deltas))
    assert sent(program, (None, None, None)) == [Receipt("recorded", delta) for delta in deltas]
    program = add_many([])
    assert next(program) == PutMany(())
    assert sent(program, ()) == []


def test_each_change_of_a_batch_has_an_outcome_of_its_own() -> None:
    one, two, three = (Delta(LANE, token, 1) for token in (A, B, C))
    recorded, replayed, throttled = many(one, two, three, answers=(None, AlreadyThere(item(two)), Throttled("slow")))
    assert recorded == Receipt("recorded", one)
    assert replayed == Receipt("replayed", two)
    assert isinstance(throttled, Throttled)
    assert throttled.delta is three


@pytest.mark.parametrize(
    ("there", "error"),
    [(item(Delta(LANE, A, 7)), TokenConflict), ({"sk": {"S": A}}, DamagedItem)],
    ids=["conflict", "damage"],
)
def test_what_is_there_in_place_of_a_change_of_a_batch_is_a_value(there: Item, error: type[LedgerError]) -> None:
    (told,) = many(DELTA, answers=(AlreadyThere(there),))
    assert isinstance(told, error)
    assert told.delta is DELTA


@pytest.mark.parametrize("there", [-6, 7], ids=["the same", "another"])
def test_where_the_store_does_not_show_the_item_a_single_put_does(there: int) -> None:
    program = add_many([DELTA])
    next(program)
    assert program.send((AlreadyThere(None),)) == Put(item(DELTA), Absent())
    (told,) = sent(program, item(Delta(LANE, A, there)))
    assert isinstance(told, TokenConflict) if there == 7 else told == Receipt("replayed", DELTA)


def test_the_single_put_of_a_batch_may_fail_and_the_others_are_told() -> None:
    other = Delta(LANE, B, 1)
    program = begun(DELTA, other)
    program.send((AlreadyThere(None), None))
    with pytest.raises(StopIteration) as end:
        program.throw(OutcomeUnknown("lost"))
    lost, recorded = end.value.value
    assert isinstance(lost, OutcomeUnknown)
    assert lost.delta is DELTA
    assert recorded == Receipt("recorded", other)


def test_a_token_that_comes_twice_is_sent_once_and_replayed() -> None:
    twin, other = Delta(LANE, A, -6), Delta(LANE, B, 1)
    program = add_many([DELTA, other, twin])
    assert next(program) == PutMany((item(DELTA), item(other)))
    first, second, third = sent(program, (None, None))
    assert (first, second) == (Receipt("recorded", DELTA), Receipt("recorded", other))
    assert third == Receipt("replayed", twin)


def test_a_token_that_comes_twice_with_two_changes_is_a_conflict() -> None:
    other = Delta(LANE, A, 7)
    program = add_many([DELTA, other])
    assert next(program) == PutMany((item(DELTA),))
    assert program.send((None,)) == Put(item(other), Absent())  # only the table knows which of the two is there
    recorded, conflict = sent(program, item(DELTA))
    assert recorded == Receipt("recorded", DELTA)
    assert isinstance(conflict, TokenConflict)
    assert conflict.delta is other


def test_a_token_that_comes_twice_with_two_changes_is_whichever_the_table_holds() -> None:
    other = Delta(LANE, A, 7)
    program = begun(DELTA, other)
    program.send((Throttled("slow"),))
    throttled, recorded = sent(program, None)
    assert isinstance(throttled, Throttled)
    assert recorded == Receipt("recorded", other)


def test_a_token_that_comes_twice_shares_the_failure_and_in_two_lanes_it_is_two_deltas() -> None:
    failure = OutcomeUnknown("lost")
    assert many(DELTA, Delta(LANE, A, -6), answers=(failure,)) == [failure, failure]
    other = Delta(Lane("us-east-1", 0, "c"), A, -6)
    assert many(DELTA, other, answers=(None, None)) == [Receipt("recorded", DELTA), Receipt("recorded", other)]
