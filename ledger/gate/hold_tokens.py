"""The token of a hold says until when it holds.

Rule 1: the length is part of the token, so a retry cannot name another.
Rule 2: it is rounded up to what two bytes can say, by a thousandth at most.
"""

from ledger import tokens

HOLD = "hold:"
"""What is hashed with the key of a hold, so that no change has its token."""

HOLD_MS_MAX = 400 * 86_400_000
"""No hold is longer."""


def hold_token(counter: str, idempotency_key: str, time_ms: int, length_ms: int) -> str:
    """The token of a hold that names itself: the same arguments always give the same, and no change has it."""
    return with_length(tokens.keyed(counter, idempotency_key, time_ms, HOLD), length_ms)


def with_length(token: str, length_ms: int) -> str:
    """A token whose last two bytes say how long its hold is, so 64 random bits are left.

    `length_ms` is rounded up to what two bytes can say, by a thousandth at most.
    """
    return tokens.from_bytes(tokens.to_bytes(token)[:14] + _packed(length_ms))


def until_ms(token: str) -> int:
    """When the time of a hold is over."""
    number = int.from_bytes(tokens.to_bytes(token)[14:], "big")
    return tokens.time_ms(token) + ((number & 0x7FF) << (number >> 11))


def _packed(length_ms: int) -> bytes:
    """11 bits and 5 bits of exponent, rounded up."""
    exponent = max(0, length_ms.bit_length() - 11)
    mantissa = -(-length_ms >> exponent)
    if mantissa > 0x7FF:
        exponent, mantissa = exponent + 1, -(-length_ms >> exponent + 1)
    return (exponent << 11 | mantissa).to_bytes(2, "big")
