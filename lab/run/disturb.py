"""What happens to the processes and the Regions of a round: kills, pauses, partitions and storms of faults.

Rule 1: Everything follows from the seed and the passing of time.
Rule 2: `turn` never waits.
Rule 3: When it is over, nothing is paused or cut off any more.
"""

import random
import time
from collections import Counter
from collections.abc import Sequence
from multiprocessing.connection import Connection
from signal import SIGCONT, SIGSTOP

from lab.engines.children import Children
from lab.engines.replicator import Replicator
from lab.run.plan import REGIONS, Plan
from lab.run.processes import Processes

KILL_EVERY_S, PAUSE_EVERY_S = (1.0, 5.0), (1.0, 5.0)
PAUSED_S = (0.3, 5.0)
QUIET_S, PARTITIONED_S = (3.0, 10.0), (1.0, 9.0)
CALM_S, STORM_S, STORM_TIMES = (3.0, 12.0), (0.3, 2.5), 12.0
MOSTLY_COMPACTORS = 0.8


class Disturber:
    """What acts on the processes, on the replicators and, through `proxy`, on every request."""

    def __init__(
        self,
        plan: Plan,
        children: Children,
        processes: Processes,
        replicators: Sequence[Replicator],
        proxy: Connection,
    ) -> None:
        self._rng, self._kills = random.Random(f"{plan.seed} disturber"), plan.profile.kills
        self._children, self._processes, self._replicators, self._proxy = children, processes, replicators, proxy
        self._paused: dict[str, float] = {}
        self._partitioned = self._stormy = False
        self._next_kill, self._next_pause = self._in(KILL_EVERY_S), self._in(PAUSE_EVERY_S)
        self._next_change, self._next_storm = self._in(QUIET_S), self._in(CALM_S)
        self.counts: Counter[str] = Counter()

    def turn(self) -> None:
        """Does what is due."""
        now = time.monotonic()
        for name in [name for name, until in self._paused.items() if until <= now]:
            self._resume(name)
        if self._kills and self._next_kill <= now:
            self._next_kill = self._in(KILL_EVERY_S)
            self._kill()
        if self._next_pause <= now:
            self._next_pause = self._in(PAUSE_EVERY_S)
            self._pause()
        if self._next_change <= now:
            self._next_change = self._in(QUIET_S if self._partitioned else PARTITIONED_S)
            self._cut(not self._partitioned)
        if self._kills and self._next_storm <= now:
            self._next_storm = self._in(CALM_S if self._stormy else STORM_S)
            self._blow(not self._stormy)

    def clear(self) -> None:
        """Ends every pause, partition and storm."""
        self._blow(False)
        for name in list(self._paused):
            self._resume(name)
        if self._partitioned:
            self._cut(False)

    def _kill(self) -> None:
        name = self._someone()
        if not self._children.alive(name):
            return  # a writer that has done its share
        self._paused.pop(name, None)
        self._children.kill(name)
        self.counts[f"kills of {name.split()[0]}s"] += 1
        self._processes.restart(name)

    def _pause(self) -> None:
        name = self._someone()
        if name not in self._paused and self._children.alive(name):
            self._children.signal(name, SIGSTOP)
            self._paused[name] = self._in(PAUSED_S)
            self.counts["pauses"] += 1

    def _resume(self, name: str) -> None:
        del self._paused[name]
        self._children.signal(name, SIGCONT)

    def _cut(self, partitioned: bool) -> None:
        self._partitioned = partitioned
        self._proxy.send(("partition", partitioned))
        self.counts["partitions"] += partitioned
        alone = self._rng.choice(REGIONS)
        for replicator in self._replicators:
            if partitioned:
                replicator.partition(alone)
            else:
                replicator.heal()

    def _blow(self, stormy: bool) -> None:
        self._stormy = stormy
        self._proxy.send(("storm", STORM_TIMES if stormy else 1.0))
        self.counts["storms"] += stormy

    def _someone(self) -> str:
        return self._rng.choice(
            self._processes.compactors if self._rng.random() < MOSTLY_COMPACTORS else self._processes.others
        )

    def _in(self, between_s: tuple[float, float]) -> float:
        return time.monotonic() + self._rng.uniform(*between_s)
