"""What befalls the events of one counter, the same for every design.

Rule 1: A scenario is data.
Rule 2: What its callers, the housekeeping and a reader do stands in one_counter.py.
"""

from dataclasses import dataclass, replace

from simulator.faults import NONE, Faults

EU, US = "eu-west-1", "us-east-1"
MINUTE_MS, DAY_MS = 60_000, 86_400_000
OTHERS = 110


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """faults: as the simulator has them. dies: the process of every first delivery does, before it acknowledges,
    and every housekeeping after one answer more than the one before.

    late: every other message waits a minute in the queue before its first delivery.
    again_ms: every message is delivered once more, so long after its first (0: at the same time). others: that many
    more events meanwhile. regions: where the events are asked for, in turn. cut: in the second minute they cannot reach
    each other. elsewhere: what is delivered once more is delivered in the other Region.
    """

    name: str
    faults: Faults = NONE
    dies: bool = False
    late: bool = False
    again_ms: int | None = None
    others: int = 0
    regions: tuple[str, ...] = (EU,)
    cut: bool = False
    elsewhere: bool = False


LAG = Scenario(name="Regions", regions=(EU, US), faults=Faults(slow_replication=True))
ONE = Scenario(name="at once")
SCENARIOS = (
    ONE,
    Scenario(name="no reply", faults=Faults(lost=100)),
    Scenario(name="crash", dies=True),
    LAG,
    replace(LAG, name="cut off", cut=True),
    Scenario(name="late", late=True),
    Scenario(name="twice", again_ms=0),
    Scenario(name="9 min", again_ms=9 * MINUTE_MS),
    Scenario(name="11 min", again_ms=11 * MINUTE_MS),
    Scenario(name="1 day", again_ms=DAY_MS, others=OTHERS),
    Scenario(name="8 days", again_ms=8 * DAY_MS, others=OTHERS),
    replace(LAG, name="failover", again_ms=2 * MINUTE_MS, elsewhere=True),
)
LIMITS = (ONE, LAG)
