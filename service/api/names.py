"""`GET /counters`: one path for the balance of a counter and for the list of all, told apart by their parameters.

Rule 1: Exactly one of `counter` and `prefix` says which is meant; what belongs to the other one is refused with it.
Rule 2: An item of the directory that names no lane is passed by, counted and logged.
"""

from collections.abc import Mapping

from aws_lambda_powertools.event_handler import Response

from reader import Reader
from service import observe
from service.api import cursor as cursors
from service.api.models import CounterNames
from service.api.problems import invalid
from service.api.responses import json_of
from service.observe import Watch

OF_A_READ, OF_A_LIST = ("max_age", "consistent"), ("after", "limit")


def check_which(given: Mapping[str, object]) -> None:
    """Raises Problem unless the query is that of a balance or that of a list."""
    if ("counter" in given) == ("prefix" in given):
        said = "Give counter, to read one, or prefix (it may be empty), to list them: exactly one of them"
        raise invalid([{"loc": ("query",), "type": "which", "msg": said}])
    one, others = ("counter", OF_A_LIST) if "counter" in given else ("prefix", OF_A_READ)
    if wrong := [name for name in others if name in given]:
        raise invalid({"loc": ("query", name), "type": "which", "msg": f"Does not go with {one}"} for name in wrong)


def names_page(reader: Reader, watch: Watch, prefix: str, after: str | None, limit: int) -> Response[CounterNames]:
    """Raises Problem and what `Reader.counters` raises."""
    page = reader.counters(prefix, after=None if after is None else cursors.place_of(prefix, after), limit=limit)
    for key in page.damaged:
        watch.logger.error("an item of the directory names no lane", extra={"pk": key.pk, "sk": key.sk})
    watch.count(observe.LANES_DAMAGED, len(page.damaged))
    following = None if page.next is None else cursors.text_of_place(prefix, page.next)
    return json_of(CounterNames(counters=list(page.counters), next=following))
