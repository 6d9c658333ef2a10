"""What a route checks beyond the description of a request, before it sends anything.

Rule 1: an id that cannot be one in this table names a hold that is not there: something damaged it
on its way.
"""

from collections.abc import Mapping

from ledger import Ledger
from ledger.client.programs import ours
from ledger.core.errors import InvalidInput, NoSuchHold, shown
from ledger.core.settings import Settings
from ledger.gate.hold import Hold
from reader import Reader
from service.api.problems import Problem, invalid
from service.observe import Watch
from service.writable import refusal


class Checked:
    """The base of the routes.

    readers: by whether they read strongly. prefixes: of the counters that the API writes.
    """

    def __init__(
        self,
        ledger: Ledger,
        readers: Mapping[bool, Reader],
        watch: Watch,
        prefixes: tuple[str, ...],
    ) -> None:
        self._ledger, self._readers, self._watch, self._prefixes = ledger, readers, watch, prefixes

    def _must_take_holds(self, counter: str) -> None:
        self._must_be_writable(counter)
        self._must_be_limited(counter)

    def _must_be_writable(self, counter: str) -> None:
        if refused := refusal(counter, self._prefixes):
            raise invalid([{"loc": ("counter",), "type": "name", "msg": refused.why}])

    def _must_be_limited(self, counter: str) -> None:
        if self._ledger.settings.limit_of(counter) is None:
            raise Problem(
                "no-limit", "This counter has no limit, so it has no holds and no standing."
            )

    def _must_be_here(self, region: str | None) -> None:
        regions = self._ledger.settings.regions
        if region is not None and region not in regions:
            raise Problem(
                "no-such-region", f"Name one of the service's Regions: {', '.join(regions)}."
            )


def hold_of(counter: str, id: str, settings: Settings) -> Hold:
    """Raises NoSuchHold."""
    try:
        return Hold(ours(settings, Hold.parse(counter, id).delta, is_hold=True))
    except InvalidInput:
        raise NoSuchHold(
            f"{shown(id, 120)} is no id of a hold of this table. Nothing was written."
        ) from None
