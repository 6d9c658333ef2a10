"""A meter whose engine tells what it charges: the answers of its clients say the meter's units as what they consumed.

Rule 1: It tells who asked for it (ReturnConsumedCapacity), and an error tells nothing: as DynamoDB does. No engine here
does so right: MiniStack's batches and statements, and DynamoDB Local's statements and transactions, say something else.
"""

from collections.abc import Mapping
from typing import Any

from lab.meters.charge import Charge
from lab.meters.meter import Meter

LISTS = {"BatchExecuteStatement", "BatchGetItem", "BatchWriteItem", "TransactWriteItems"}
"""The operations whose answers have a list of it."""


class TellingMeter(Meter):
    def _told(self, operation: str, request: Mapping[str, Any], answer: Any, charge: Charge) -> None:
        answer.pop("ConsumedCapacity", None)
        if "Error" not in answer and request.get("ReturnConsumedCapacity", "NONE") != "NONE":
            units = {"ReadCapacityUnits": charge.read_units, "WriteCapacityUnits": float(charge.write_units)}
            told = {"TableName": "counters", "CapacityUnits": sum(units.values())}
            if operation == "TransactWriteItems":
                told |= {name: each for name, each in units.items() if each}
            answer["ConsumedCapacity"] = [told] if operation in LISTS else told
