"""Numbers as the live page says them."""


def signed(number: int) -> str:
    return f"{number:+,}".replace("-", "\N{MINUS SIGN}") if number else "±0"


def several(number: int, what: str) -> str:
    """How many of what: `1 change`, `2 changes`, `2 items or requests`."""
    many = " or ".join(f"{word}s" for word in what.split(" or "))
    return f"{number:,} {what if number == 1 else many}"
