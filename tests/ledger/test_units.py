"""The size and unit rules against the examples on AWS's pages, worked out by hand."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.cost import item_bytes, number_bytes, read_units, value_bytes, write_units

KB = 1024
SIZES = st.integers(0, 400 * KB)
VALUES = st.recursive(
    st.one_of(
        st.builds(lambda text: {"S": text}, st.text(max_size=20)),
        st.builds(lambda number: {"N": str(number)}, st.integers(-(10**38) + 1, 10**38 - 1)),
        st.builds(lambda raw: {"B": raw}, st.binary(max_size=20)),
        st.builds(lambda flag: {"BOOL": flag}, st.booleans()),
    ),
    lambda inner: st.one_of(
        st.builds(lambda values: {"L": values}, st.lists(inner, max_size=3)),
        st.builds(lambda values: {"M": values}, st.dictionaries(st.text(max_size=5), inner, max_size=3)),
    ),
    max_leaves=5,
)
ITEMS = st.dictionaries(st.text(max_size=10), VALUES, max_size=5)


def test_an_item_is_as_big_as_its_names_and_values() -> None:
    delta = {"pk": {"S": "delta#eu-west-1#0#stock:85123A"}, "sk": {"S": "0" * 26}, "change": {"N": "-6"}}
    assert item_bytes(delta) == (2 + 30) + (2 + 26) + (6 + 3)
    assert item_bytes({"entries": {"B": bytes(24)}}) == 7 + 24  # raw bytes
    assert item_bytes({"é": {"S": "€"}}) == 2 + 3  # UTF-8


@pytest.mark.parametrize(
    ("number", "size"),
    [
        *(("0", 1), ("7", 2), ("42", 2), ("123", 3), ("-6", 3), ("1000000", 2), ("0.0050", 2), ("1E+20", 2), ("-0", 1)),
        *(("9" * 38, 20), ("-" + "9" * 38, 21)),
    ],
)
def test_a_number_takes_a_byte_for_two_significant_digits(number: str, size: int) -> None:
    assert number_bytes(number) == size


@pytest.mark.parametrize(
    ("value", "size"),
    [
        *(({"BOOL": True}, 1), ({"NULL": True}, 1), ({"L": []}, 3), ({"M": {}}, 3), ({"SS": ["a", "bc"]}, 3)),
        ({"L": [{"S": "ab"}, {"N": "1"}]}, 3 + (1 + 2) + (1 + 2)),  # each element takes a byte more
        ({"M": {"key": {"S": "ab"}}}, 3 + (1 + 3 + 2)),
    ],
)
def test_a_value_takes_what_its_type_says_and_an_unknown_type_is_refused(value: dict[str, Any], size: int) -> None:
    assert value_bytes(value) == size
    with pytest.raises(ValueError, match="X"):
        value_bytes({"X": ""})


def test_a_write_costs_a_unit_a_kilobyte_and_two_in_a_transaction() -> None:
    assert (write_units(0), write_units(500), write_units(KB)) == (1, 1, 1)
    assert (write_units(KB + 1), write_units(2 * KB)) == (2, 2)
    assert write_units(2 * KB, transactional=True) == 4


def test_a_read_costs_a_unit_for_4_kb_half_if_eventual_and_two_in_a_transaction() -> None:
    assert read_units(8 * KB, consistent=True) == 2
    assert read_units(8 * KB, consistent=False) == 1
    assert read_units(8 * KB, consistent=True, transactional=True) == 4
    assert read_units(int(40.8 * KB), consistent=True) == 11  # a Query, charged as 44 KB
    assert read_units(1500 * 64, consistent=True) == 24
    assert (read_units(0, consistent=True), read_units(0, consistent=False)) == (1, 0.5)  # an absent item


@given(SIZES, SIZES)
def test_a_larger_item_never_costs_less_and_reading_together_never_more_than_apart(one: int, other: int) -> None:
    small, large = sorted((one, other))
    assert write_units(small) <= write_units(large)
    assert read_units(small, consistent=False) <= read_units(large, consistent=False)
    apart = read_units(one, consistent=True) + read_units(other, consistent=True)
    assert read_units(one + other, consistent=True) <= apart


@given(ITEMS, st.text(min_size=11, max_size=20), VALUES)
def test_one_attribute_more_makes_an_item_larger(item: dict[str, dict[str, object]], name: str, value: object) -> None:
    assert item_bytes({**item, name: value}) > item_bytes(item)  # type: ignore[dict-item]


@given(st.integers(-(10**38) + 1, 10**38 - 1))
def test_no_number_is_larger_than_21_bytes(number: int) -> None:
    assert 1 <= number_bytes(str(number)) <= 21
