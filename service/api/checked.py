"""What a route checks beyond the description of a request, before it sends anything."""

from ledger.client.holds import Hold
from ledger.client.preparing import ours
from ledger.core.errors import InvalidInput, NoSuchHold, shown
from ledger.core.limit import DOWN, UP
from ledger.core.settings import Settings
from service.api.problems import ELSEWHERE, Problem, invalid
from service.writable import refusal


def check_takes_holds(counter: str, settings: Settings, prefixes: tuple[str, ...]) -> None:
    """Raises Problem. prefixes: of the counters that the API writes."""
    check_writable(counter, prefixes)
    check_limited(counter, settings)


def check_writable(counter: str, prefixes: tuple[str, ...]) -> None:
    """Raises Problem. prefixes: of the counters that the API writes."""
    if refused := refusal(counter, prefixes):
        raise invalid([{"loc": ("counter",), "type": "name", "msg": refused.why}])


def check_limited(counter: str, settings: Settings) -> None:
    """Raises Problem."""
    if settings.limit_of(counter) is None:
        raise Problem("no-limit", "This counter has no limit, so it has no holds and no standing.")


def check_partial(counter: str, change: int, settings: Settings) -> None:
    """Raises Problem unless a limit of the counter may leave a part of the change."""
    limit = settings.limit_of(counter)
    if limit is None:
        raise Problem("no-limit", "This counter has no limit: leave out partial, and all counts.")
    if change == 0 or not limit.has(DOWN if change < 0 else UP):
        raise Problem(
            "invalid-change",
            "partial is for a change below 0 under a floor, or above 0 under a ceiling. For any "
            "other leave it out.",
        )


def check_region(region: str | None, settings: Settings) -> None:
    """Raises Problem."""
    if region is not None and region not in settings.regions:
        raise Problem(
            "no-such-region", f"Name one of the service's Regions: {', '.join(settings.regions)}."
        )


def check_same(in_path: str, in_body: str) -> None:
    """Raises Problem unless the path and the body name the same counter."""
    if in_path != in_body:
        why = "If you sent the same name in both, a gateway changed the path."
        detail = (
            f"The path, as it arrived, has another counter than the body names. {why} {ELSEWHERE}"
        )
        raise Problem("other-counter", detail)


def hold_of(counter: str, id: str, settings: Settings) -> Hold:
    """The hold of an id. Raises NoSuchHold."""
    try:
        return Hold(ours(settings, Hold.parse(counter, id).delta, is_hold=True))
    except InvalidInput:
        # Something damaged the id on its way: no hold of this table can have it.
        raise NoSuchHold(
            f"{shown(id, 120)} is no id of a hold of this table. Nothing was written."
        ) from None
