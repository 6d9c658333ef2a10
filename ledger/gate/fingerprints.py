"""What a gate keeps of a token that was filed.

Rule 1: four bytes, of its time and of its random bits: two tokens may have the same, a token never has two.
Rule 2: the time comes round after 2.3 hours, so a fingerprint is kept only while its token lies above `low`, and no
further than an hour.
"""

from ledger import tokens

SLICE_MS = 128
"""The time of a fingerprint is counted in slices of so many milliseconds, modulo 2^16: 2.3 hours."""

_SLICES = 2**16
FINGERPRINT_BYTES = 4


def fingerprint(token: str) -> bytes:
    """Two bytes of the token's time, two of its random bits."""
    return _slice(tokens.time_ms(token)).to_bytes(2, "big") + tokens.to_bytes(token)[6:8]


def distance(mark: bytes, low: str) -> int:
    """How many slices the time of a fingerprint that is kept lies above that of the `low` it is kept with."""
    return (int.from_bytes(mark[:2], "big") - _slice(tokens.time_ms(low))) % _SLICES


def end_ms(low: str, slices: int) -> int:
    """The last millisecond of the slice that lies so many above that of `low`."""
    return (tokens.time_ms(low) // SLICE_MS + slices + 1) * SLICE_MS - 1


def _slice(time_ms: int) -> int:
    return time_ms // SLICE_MS % _SLICES
