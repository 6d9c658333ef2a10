"""Makes the streams of an engine that numbers each Region's writes apart look as the demo's replicator wants them.

Rule 1: The replicator orders all Regions' writes by the last ten digits of a sequence number.
Rule 2: Here that is the order in which one process sees them, which agrees with the order of every single stream. An
iterator that expires (after 15 minutes) is not renewed: a round is shorter.
"""

from collections.abc import Iterator
from typing import Any


class Renumbered:
    """A streams client whose records are numbered by `numbers`, which all Regions share."""

    def __init__(self, client: Any, numbers: Iterator[int]) -> None:
        self._client, self._numbers = client, numbers

    def get_records(self, **arguments: Any) -> Any:
        page = self._client.get_records(**arguments)
        for record in page["Records"]:
            record["dynamodb"]["SequenceNumber"] = f"{next(self._numbers):010d}"
        return page

    def describe_stream(self, **arguments: Any) -> Any:
        return self._client.describe_stream(**arguments)

    def get_shard_iterator(self, **arguments: Any) -> Any:
        return self._client.get_shard_iterator(**arguments)
