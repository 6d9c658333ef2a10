"""The tree of errors at the head of their file."""

from ledger.core import errors
from ledger.core.errors import Again, LedgerError


def tree() -> dict[str, tuple[str, bool]]:
    """For each class in the text its base, and whether it has a +."""
    found: dict[str, tuple[str, bool]] = {}
    above: dict[int, str] = {}
    _, text, _ = (errors.__doc__ or "").split("\n\n", 2)
    for line in text.splitlines():
        depth = len(line) - len(line.lstrip())
        name, mark, *_ = line.split()
        above[depth] = name
        assert name not in found
        found[name] = above.get(depth - 2, "Exception"), mark == "+"
    return found


def test_tree_has_every_error_under_its_base() -> None:
    classes = [
        each
        for each in vars(errors).values()
        if isinstance(each, type) and issubclass(each, LedgerError)
    ]
    assert tree() == {
        each.__name__: (each.__bases__[0].__name__, Again in each.__bases__[1:]) for each in classes
    }
