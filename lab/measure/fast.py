"""`python -m lab.measure.fast`: what a change takes of its client by FastClient, beside bare boto3's put_item.

Rule 1: A figure is the median of ratios of CPU within one run, taken in turns, because machines are noisy; none is
judged. What answers is another process, whose CPU is in no figure.
"""

import statistics
import time
from collections.abc import Callable, Iterator

from botocore.session import Session

from lab.engines.ministack import Engine, end_on_signals
from lab.measure.figure import Figure
from ledger import Ledger, Settings
from ledger.dynamo.fast import FastClient
from ledger.items import delta_item

REGION, TABLE, COUNTER = "eu-west-1", "fast", "stock:85123A"
EACH = 50  # calls between two looks at the clock


def figures(small: bool) -> Iterator[Figure]:
    session = Session()
    session.set_credentials("embedded", "embedded")
    with Engine() as engine:
        engine.create_table(TABLE, REGION)
        bare, fast = engine.client(REGION, None), FastClient(REGION, engine.endpoint_url, session=session)
        ledger = Ledger(Settings(table=TABLE, region=REGION), client=fast)

        def puts() -> None:
            for item in items:
                bare.put_item(TableName=TABLE, Item=item, ConditionExpression="attribute_not_exists(pk)")

        def ours() -> None:
            for _ in items:
                ledger.add(COUNTER, -6)

        ratios = []
        for _ in range(2 if small else 41):
            items = [delta_item(ledger.prepare(COUNTER, -6)) for _ in range(EACH)]
            ratios.append(_cpu_s(ours) / _cpu_s(puts))
        fast.close()
    ratio = statistics.median(ratios[1:])  # the first ones warm up
    yield Figure("client CPU of an add by FastClient / bare boto3 put_item", ratio, 0.4, 0.05, judged=False)


def _cpu_s(call: Callable[[], None]) -> float:
    began = time.process_time()
    call()
    return time.process_time() - began


PARTS = (figures,)


if __name__ == "__main__":
    end_on_signals()
    for figure in figures(small=False):
        print(figure)
