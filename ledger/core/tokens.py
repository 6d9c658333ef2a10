"""Tokens: the ULIDs that name deltas, order them and make retries harmless.

Rule 1: Only this file makes the text of a ULID, without a library: two distributions own the name
`ulid`, and a user may need either. In the tests ulid-py is the judge of every token.
Rule 2: The time and the randomness always come from outside.
Rule 3: A retry of the same (counter, idempotency key, at) yields the same token.
Source of the format: https://github.com/ulid/spec
"""

import hashlib
import re

TIME_MS_MAX = 2**48 - 1
"""The largest time a ULID holds, in milliseconds since 1970 (the year 10889)."""

RANDOM_BYTES, BYTES = 10, 16
_DIGITS = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_PAIRS = [first + second for first in _DIGITS for second in _DIGITS]
_TO_BASE32HEX = bytes.maketrans(_DIGITS.encode(), b"0123456789ABCDEFGHIJKLMNOPQRSTUV")
ULID = "[0-7][0-9A-HJKMNP-TV-Z]{25}"
_CANONICAL = re.compile(ULID)


def make(time_ms: int, randomness: bytes) -> str:
    """The token of `time_ms` (milliseconds since 1970) and 10 bytes of randomness."""
    return from_bytes(time_ms.to_bytes(6, "big") + randomness)


class Step(str):
    """The name of a step of a call of several steps, in a key's place.

    Only `step` makes one, so no caller does.
    """

    __slots__ = ()


def step(*parts: str) -> Step:
    """The name of a step: what kind of step it is, then all that tells its call from others, such
    as its key.

    Each part has its length in bytes in front, so that no two lists of parts give one name.
    """
    return Step("".join(f"{len(part.encode())}:{part}" for part in parts))


def keyed(counter: str, idempotency_key: str, time_ms: int, kind: str = "") -> str:
    """The token of a change whose caller gave it a key: the same arguments always give the same
    token.

    The 80 bits are the head of SHA-256 over the counter and the key, with the counter's length in
    front, so that ("ab", "c") and ("a", "bc") differ. kind: put before these where the key is no
    change's, such as HOLD. STEP comes before all of it where the key is a Step.
    """
    # Rule 7: a Step is of a kind of its own: no caller's key has its token.
    first = STEP if isinstance(idempotency_key, Step) else ""
    text = f"{first}{kind}{len(counter)}:{counter}{idempotency_key}".encode()
    return make(time_ms, hashlib.sha256(text).digest()[:RANDOM_BYTES])


def is_token(text: str) -> bool:
    """Whether `text` is a ULID in its canonical spelling."""
    # Rule 4: only the canonical 26 characters are a token, because the order of the text must be
    # the order of the bytes.
    return _CANONICAL.fullmatch(text) is not None


def to_bytes(token: str) -> bytes:
    """The 16 bytes of a token; their order is the order of the text."""
    return int(token.encode().translate(_TO_BASE32HEX), 32).to_bytes(16, "big")


def from_bytes(data: bytes) -> str:
    """The token of 16 bytes."""
    number = int.from_bytes(data, "big")
    # two digits a line: a loop takes half as long again, and each change has its token made
    return "".join(
        (
            _PAIRS[number >> 120 & 0x3FF],
            _PAIRS[number >> 110 & 0x3FF],
            _PAIRS[number >> 100 & 0x3FF],
            _PAIRS[number >> 90 & 0x3FF],
            _PAIRS[number >> 80 & 0x3FF],
            _PAIRS[number >> 70 & 0x3FF],
            _PAIRS[number >> 60 & 0x3FF],
            _PAIRS[number >> 50 & 0x3FF],
            _PAIRS[number >> 40 & 0x3FF],
            _PAIRS[number >> 30 & 0x3FF],
            _PAIRS[number >> 20 & 0x3FF],
            _PAIRS[number >> 10 & 0x3FF],
            _PAIRS[number & 0x3FF],
        )
    )


def time_ms(token: str) -> int:
    """When the change was first requested, in milliseconds since 1970."""
    return int.from_bytes(to_bytes(token)[:6], "big")


def last_of(time_ms: int) -> str:
    """The highest token of that millisecond."""
    return make(time_ms, b"\xff" * RANDOM_BYTES)


def before(token: str) -> str | None:
    """The next lower token, or None for the lowest."""
    number = int.from_bytes(to_bytes(token), "big")
    return from_bytes((number - 1).to_bytes(16, "big")) if number else None


def draw(token: str, sides: int) -> int:
    """A number below `sides` that depends on the token's 80 random bits alone."""
    return side(to_bytes(token), sides)


def side(token: bytes, sides: int) -> int:
    """`draw` of a token's 16 bytes."""
    return int.from_bytes(token[6:], "big") % sides


def on_side(token: str, side: int, sides: int) -> str:
    """A token of the same time, of which `draw` says `side`: this one if it says so, else one that
    follows from it.
    """
    if draw(token, sides) == side:
        return token
    data = to_bytes(token)
    # All bits are drawn anew: tokens that differ in few bits, as of a test's entropy that counts
    # up, must not become one.
    drawn = int.from_bytes(hashlib.sha256(data).digest(), "big")
    number = drawn % (2 ** (8 * RANDOM_BYTES) // sides) * sides + side
    return from_bytes(data[:6] + number.to_bytes(RANDOM_BYTES, "big"))


def first_of(time_ms: int) -> bytes:
    """The 16 bytes of the lowest token of that millisecond; for times before 1970 the lowest of
    all.
    """
    return max(0, time_ms).to_bytes(6, "big") + bytes(RANDOM_BYTES)


STEP = "step:"
"""Hashed in front of the name of a step, so that nothing that a caller names has its token."""

HOLD = "hold:"
"""Hashed in front of a hold's key, so that no change has its token."""

UP_TO = "up to:"
"""Hashed in front of the key of a change of which a part may count, so that no other change has its
token.
"""

HOLD_MS_MAX = 400 * 86_400_000
"""The longest time of a hold."""


def hold_token(counter: str, idempotency_key: str, time_ms: int, length_ms: int) -> str:
    """The token of a hold whose caller gave it a key: the same arguments always give the same,
    and no change has it.
    """
    return with_length(keyed(counter, idempotency_key, time_ms, HOLD), length_ms)


def with_length(token: str, length_ms: int) -> str:
    """A token whose last two bytes are its hold's length (11 bits, 5 of exponent, rounded up):
    64 random bits stay.
    """
    # Rule 5: the token of a hold says until when it holds, rounded up, by a thousandth at most, to
    # fit two bytes. The length is part of the token, so a retry cannot name another.
    exponent = 0
    while (mantissa := -(-length_ms >> exponent)) > 0x7FF:
        exponent += 1
    return from_bytes(to_bytes(token)[:14] + (exponent << 11 | mantissa).to_bytes(2, "big"))


def until_ms(token: str) -> int:
    """When the time of a hold is over."""
    number = int.from_bytes(to_bytes(token)[14:], "big")
    return time_ms(token) + ((number & 0x7FF) << (number >> 11))


_LENGTH, _NO_LENGTH = 0xFFFF, 0xF800  # an exponent of 31 is no hold's


def name_of(hold: str) -> str:
    """The token that stands for a hold of whatever length: the hold's, with an end that is no
    length in its place.
    """
    # Rule 6: where a call may come with another length, as that of a process, its holds have a
    # name: a token that differs from the hold's in the last two bytes alone, and that is the same
    # for every length.
    data = to_bytes(hold)[:14]
    return from_bytes(
        data + (_NO_LENGTH | int.from_bytes(data[6:8], "big") & 0x7FF).to_bytes(2, "big")
    )


def is_named(token: str, name: str) -> bool:
    """Whether `token` is a hold that this name may stand for."""
    return token != name and to_bytes(token)[:14] == to_bytes(name)[:14]


def ends_of(name: str) -> tuple[str, str]:
    """The lowest and the highest token that is a hold of this name, or the name."""
    data = to_bytes(name)[:14]
    return from_bytes(data + bytes(2)), from_bytes(data + _LENGTH.to_bytes(2, "big"))
