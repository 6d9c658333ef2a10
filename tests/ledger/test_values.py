"""Values that exist are valid: tokens, lanes, deltas, segments, checkpoints; and what a size
costs.
"""

import hashlib
import os
import subprocess
import sys
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import ulid
from hypothesis import example, given
from hypothesis import strategies as st

from ledger.core import tokens
from ledger.core.checks import check_at, check_counter, check_length, check_time, to_datetime, to_ms
from ledger.core.cost import item_bytes, read_units, value_bytes, write_units
from ledger.core.errors import InvalidChange, InvalidCounter, InvalidInput, InvalidTime
from ledger.core.keep import Keep
from ledger.core.requests import Key
from ledger.core.values import Delta, Lane
from ledger.lane import directory
from tests.strategies import Name, Number, made_tokens
from tests.world import A as HOME
from tests.world import Region, settings

LANE = Lane(HOME, 0, "stock:85123A")
A, B = (tokens.make(1_000 + n, bytes(10)) for n in range(2))
SPELLED = "01ARZ3NDEKTSV4RRFFQ69G5FAV"
times = st.integers(0, tokens.TIME_MS_MAX)
random_bytes = st.binary(min_size=tokens.RANDOM_BYTES, max_size=tokens.RANDOM_BYTES)


@given(times, random_bytes, made_tokens)
def test_a_token_holds_its_time_and_its_randomness(
    time_ms: int, randomness: bytes, other: str
) -> None:
    token, data = tokens.make(time_ms, randomness), time_ms.to_bytes(6, "big") + randomness
    assert tokens.is_token(token)
    assert (tokens.time_ms(token), tokens.to_bytes(token), tokens.from_bytes(data)) == (
        time_ms,
        data,
        token,
    )
    number, last = int.from_bytes(data, "big"), tokens.last_of(time_ms)
    assert tokens.before(token) == (
        tokens.from_bytes((number - 1).to_bytes(16, "big")) if number else None
    )
    assert token <= last
    assert time_ms == tokens.TIME_MS_MAX or last < tokens.make(time_ms + 1, bytes(10))
    assert tokens.first_of(time_ms) == tokens.to_bytes(tokens.make(time_ms, bytes(10)))
    assert tokens.first_of(-time_ms) == bytes(16)
    assert tokens.before("0" * 26) is None
    # the order of the text is that of the bytes
    assert (token < other) == (data < tokens.to_bytes(other))


@given(times, random_bytes)
@example(0, bytes(10))
@example(tokens.TIME_MS_MAX, b"\xff" * 10)
@example(tokens.TIME_MS_MAX - 1, b"\x00" + b"\xff" * 9)
def test_a_token_is_the_ulid_of_ulid_py(time_ms: int, randomness: bytes) -> None:
    token, data = tokens.make(time_ms, randomness), time_ms.to_bytes(6, "big") + randomness
    judge = ulid.from_bytes(data)
    assert (token, tokens.from_bytes(data)) == (judge.str, judge.str)
    read = ulid.from_str(token)
    assert (tokens.to_bytes(token), tokens.time_ms(token)) == (read.bytes, read.timestamp().int)
    assert tokens.to_bytes(token)[6:] == read.randomness().bytes


ADDS = """
from datetime import UTC, datetime, timedelta
from ledger import Ledger, Settings
from ledger.memory import MemoryTable
from reader import Reader
settings, table = Settings(table="counters", region="eu-west-1"), MemoryTable()
ledger = Ledger(settings, table=table)
ledger.add("sold", 3, idempotency_key="order-1", at=datetime(2026, 11, 28, tzinfo=UTC))
ledger.add("sold", 4)
print(Reader(settings, table=table).value("sold"))
"""
OTHER_ULIDS = {
    "python-ulid": 'class ULID:\n    """All that this module has."""\n__all__ = ["ULID"]\n',
    "broken": "raise ImportError('this ulid cannot be imported')\n",
}


@pytest.mark.parametrize("name", OTHER_ULIDS)
def test_an_add_needs_no_module_ulid_whoever_has_the_name(name: str, tmp_path: Path) -> None:
    """Two distributions own the name, and pip installs both without a word."""
    (tmp_path / "ulid.py").write_text(OTHER_ULIDS[name])
    environ = os.environ | {"PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path])}
    ran = subprocess.run(
        [sys.executable, "-c", ADDS], env=environ, capture_output=True, text=True, check=False
    )
    assert (ran.stdout, ran.returncode) == ("7\n", 0), ran.stderr


def test_tokens_and_draws_are_the_same_for_ever() -> None:
    """Written down: whoever changes the derivation makes every retry of an older change count
    twice.
    """
    assert tokens.keyed("stock:85123A", "536365/1", 1291191960000) == "015JGGKGE064BG4X58772SZHBM"
    for one, other in (
        (("ab", "c"), ("a", "bc")),
        (("1", "1:x"), ("11", ":x")),
        (("1:a", "b"), ("1", ":ab")),
    ):
        assert tokens.keyed(*one, 5) != tokens.keyed(*other, 5)
    assert tokens.time_ms(SPELLED) == 1469922850259  # the example of the specification
    assert tokens.make(0, bytes(10)) == "0" * 26
    assert tokens.make(tokens.TIME_MS_MAX, b"\xff" * 10) == "7" + "Z" * 25
    for time_ms in (5, 7):  # a draw depends on the randomness alone
        assert (
            tokens.draw(tokens.make(time_ms, b"\x01" + bytes(8) + b"\x02"), 1_000)
            == (2**72 + 2) % 1_000
        )
    drawn = [tokens.draw(tokens.keyed("c", str(n), 5), 4) for n in range(400)]
    assert all(70 < drawn.count(side) < 130 for side in range(4))
    wrong = [
        "",
        SPELLED[:-1],
        SPELLED + "V",
        SPELLED + "\n",
        SPELLED.lower(),
        "8" + SPELLED[1:],
        SPELLED[:-1] + "٣",
    ]
    assert not any(map(tokens.is_token, [*wrong, *(SPELLED[:-1] + other for other in "ILOU")]))


@given(
    st.lists(st.text(max_size=5) | st.sampled_from(["1:a", "a1:b", "ü"])),
    st.lists(st.text(max_size=5)),
)
def test_a_step_is_named_by_its_parts_and_as_no_caller_names(
    parts: list[str], others: list[str]
) -> None:
    name = tokens.step(*parts)
    assert (name == tokens.step(*others)) == (parts == others)
    ends = ((), ("",), ("a", "b"), ("ab",), ("a1:b",), ("1:a", "b"), ("a", "1:b"), ("a", "", "b"))
    assert len({tokens.step(*parts, *end) for end in ends}) == len(ends)
    named = [
        (tokens.keyed("c", key, 5, kind), key, kind)
        for key in (name, str(name))
        for kind in ("", tokens.HOLD)
    ]
    # a change, a hold, and a step of each kind
    assert len({token for token, _, _ in named}) == len(named)


def test_the_token_of_a_step_is_the_same_for_ever() -> None:
    name = tokens.step("budget/rest", "order-7/ü", "a")
    hashed = "step:12:stock:85123A11:budget/rest10:order-7/ü1:a".encode()
    at_ms = 1291191960000
    token = tokens.make(at_ms, hashlib.sha256(hashed).digest()[:10])
    assert tokens.keyed("stock:85123A", name, at_ms) == token == "015JGGKGE0363BR5A0NSRK5XV8"
    held = tokens.make(at_ms, hashlib.sha256(hashed.replace(b"step:", b"step:hold:")).digest()[:10])
    assert tokens.keyed("stock:85123A", name, at_ms, tokens.HOLD) == held


def test_the_text_of_a_lane_names_it_and_another_text_is_none() -> None:
    for named in ((HOME, 0, "c"), (HOME, 0, "a#0#b"), ("us-east-1", 999_999, "#", 999_999)):
        assert Lane.parse(str(Lane(*named))) == Lane(*named)
    for text in (
        "",
        HOME,
        f"{HOME}#0",
        f"{HOME}#0#",
        f"{HOME}#01#a",
        f"{HOME}##a",
        "#0#a",
        "a b#0#c",
        None,
    ):
        with pytest.raises(InvalidInput):
            Lane.parse(text)


REFUSED: list[tuple[Any, tuple[Any, ...], type[Exception]]] = [
    *((Lane, (region, 0, "c"), InvalidInput) for region in ("", "EU", "a#b", "a" * 33, None)),
    *((Lane, ("eu", shard, "c"), InvalidInput) for shard in (-1, True, "0", 1_000_000)),
    *((Lane, ("eu", 0, "c", shards), InvalidInput) for shards in (-1, True, "0", 1_000_000)),
    (Lane, (HOME, 0, "a b"), InvalidCounter),
    *(
        (Delta, (LANE, token, 1), InvalidInput)
        for token in ("", A.lower(), A + "0", None, A.encode())
    ),
    (Delta, ("lane", A, 1), InvalidInput),
    (Delta, (LANE, A, True), InvalidChange),
]


def test_a_value_that_cannot_be_is_refused() -> None:  # the values of items: by test_items
    for cls, arguments, error in REFUSED:
        with pytest.raises(error):
            cls(*arguments)
    with pytest.raises(InvalidCounter, match=r"not 'a b' \(3 characters\)"):
        check_counter("a b")


def test_an_enum_counts_as_its_number_or_under_its_text() -> None:
    change: Any = Delta(LANE, A, Number.ONE).change
    assert (type(change), str(change), str(Lane(HOME, 0, Name.COUNTER))) == (
        int,
        "1",
        f"{HOME}#0#c",
    )


class Nothing(datetime):
    """As pandas.NaT: a datetime by its class, and no time."""

    @property
    def year(self) -> Any:
        return float("nan")


def test_what_is_a_datetime_by_its_class_alone_is_no_time() -> None:
    with pytest.raises(InvalidTime, match=r"^at is an aware datetime, not .*Nothing\(1, 1, 1"):
        check_time("at", Nothing(1, 1, 1))


def test_a_time_of_another_kind_says_what_to_do() -> None:
    for wrong, do in (
        ("2026-11-28", "fromisoformat"),
        (1_700_000_000, r"fromtimestamp\(seconds, UTC\)"),
        (date(2026, 11, 28), r"datetime\.now\(UTC\)"),
    ):
        with pytest.raises(InvalidTime, match=f"Nothing was written.*{do}"):
            check_time("at", wrong)
    with pytest.raises(InvalidTime, match=r"ahead of .*Nothing was written.*set this .*clock"):
        check_at(300_001, lambda: 0)
    with pytest.raises(InvalidTime, match="expires=-0:05:00 is not above 0"):
        check_length(timedelta(minutes=-5))


def test_times_are_milliseconds_since_1970_rounded_down() -> None:
    assert to_ms(datetime(1969, 12, 31, 23, 59, 59, 999_500, tzinfo=UTC)) == -1
    assert Delta(LANE, A, 1).at == datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC)
    ends = to_datetime(-tokens.TIME_MS_MAX).year, to_datetime(tokens.TIME_MS_MAX).year
    assert ends == (1, 9999)  # the nearest ones that a datetime holds


def test_the_directory_has_an_item_a_lane_and_passes_damage_by() -> None:
    lanes = [LANE, Lane(HOME, 3, "stock:85123A"), Lane(HOME, 0, "a#b"), Lane("us-east-1", 0, "x")]
    bucket = "lane#eu-west-1#95"  # of all lanes of this counter in the Region
    assert directory.item_of(LANE) == {"pk": {"S": bucket}, "sk": {"S": "0#stock:85123A"}}
    assert directory.key_of(lanes[1]).pk == bucket
    assert [directory.lane_of(directory.key_of(lane)) for lane in lanes] == lanes
    pks = ("lane#eu-west-1#7", "lane#95", "delta#eu-west-1#95")
    damaged = [Key(pk, "0#stock:85123A") for pk in pks]
    damaged += [Key(bucket, sk) for sk in ("00#stock:85123A", "stock:85123A", "0#", "x")]
    assert [directory.lane_of(key) for key in damaged] == [None] * len(damaged)
    table = Region()
    table.store([*map(directory.item_of, lanes), {"pk": {"S": bucket}, "sk": {"S": "x"}}])
    found = table.run(directory.listing(HOME, settings()))
    assert found == (sorted(lanes[:3]), [Key(bucket, "x")], [])


def test_a_listing_leaves_lanes_out_that_are_retired() -> None:
    old, base = Lane(HOME, 0, "llm:key@1971-01"), Lane(HOME, 0, "llm:key")
    table = Region()
    table.now_ms = 10**12  # in 2001
    table.store([*map(directory.item_of, (old, base))])
    of = settings(periods={"llm:": Keep(late=timedelta(days=1), keep=timedelta(days=9))})
    assert table.run(directory.listing(HOME, of)) == ([base], [], [old])
    every = table.run(directory.listing(HOME, of, including_retired=True))
    assert every == ([base, old], [], [])


KB = 1024
NUMBERS = {
    "0": 1,
    "7": 2,
    "42": 2,
    "123": 3,
    "-6": 3,
    "1000000": 2,
    "0.0050": 2,
    "1E+20": 2,
    "-0": 1,
}
VALUES: list[tuple[dict[str, Any], int]] = [
    *(
        ({"BOOL": True}, 1),
        ({"NULL": True}, 1),
        ({"L": []}, 3),
        ({"M": {}}, 3),
        ({"SS": ["a", "bc"]}, 3),
    ),
    ({"L": [{"S": "ab"}, {"N": "1"}]}, 3 + (1 + 2) + (1 + 2)),  # each element takes a byte more
    ({"M": {"key": {"S": "ab"}}}, 3 + (1 + 3 + 2)),
    *(({"N": number}, size) for number, size in NUMBERS.items()),
    *(({"N": "9" * 38}, 20), ({"N": "-" + "9" * 38}, 21)),
]


def test_an_item_is_as_big_as_its_names_and_values() -> None:
    delta = {
        "pk": {"S": "delta#eu-west-1#0#stock:85123A"},
        "sk": {"S": "0" * 26},
        "change": {"N": "-6"},
    }
    assert item_bytes(delta) == (2 + 30) + (2 + 26) + (6 + 3)
    assert item_bytes({"entries": {"B": bytes(24)}}) == 7 + 24  # raw bytes
    assert item_bytes({"é": {"S": "€"}}) == 2 + 3  # UTF-8
    assert [value_bytes(value) for value, _ in VALUES] == [size for _, size in VALUES]
    with pytest.raises(ValueError, match="X"):
        value_bytes({"X": ""})


def test_a_units_size_is_1_kb_written_and_4_kb_read() -> None:
    assert [write_units(size) for size in (0, 500, KB, KB + 1, 2 * KB)] == [1, 1, 1, 2, 2]
    assert write_units(2 * KB, transactional=True) == 4
    assert [read_units(8 * KB, consistent=consistent) for consistent in (True, False)] == [2, 1]
    assert read_units(8 * KB, consistent=True, transactional=True) == 4
    assert read_units(int(40.8 * KB), consistent=True) == 11  # a Query, charged as 44 KB
    # an absent item
    assert [read_units(0, consistent=consistent) for consistent in (True, False)] == [1, 0.5]
